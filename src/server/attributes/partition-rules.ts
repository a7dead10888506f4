// Rules for partitions. They make sure that every queue and every vnode belongs to exactly one scheduler
// (docs/reference/errors.md 2, docs/reference/scheduler.md 2):
//
// I1. Nobody can assign `pbs-default`: queues and vnodes without a partition belong to the default scheduler (15228, 15223).
// I2. A partition belongs to at most one scheduler (15224).
// I3. Routing queues have no partition (15217, 15218).
// I4. If a vnode has a queue, and both have a partition, the two partitions are the same (15219, 15220, 15221).
// I5. The partition of a busy vnode cannot be changed (15227).

import { textOf } from "#model/attribute-reader.ts";
import { PBSE, Reject, reject } from "#model/pbse.ts";
import { DEFAULT_PARTITION } from "#model/tables/sched-attributes.ts";
import type { Attrs, Queue, ServerState, Vnode } from "../state/state.ts";
import type { Changed } from "./change.ts";

const partitionOf = (attrs: Attrs): string | undefined => textOf(attrs, "partition");

/** Checks a queue after a change. queue: the present queue; null: the queue is being created. */
export function checkQueuePartition(state: ServerState, changed: Changed, queue: Queue | null): void {
  const { after, touched } = changed;
  const partition = partitionOf(after);
  if (partition === undefined) return;
  if (touched.has("partition") && partition === DEFAULT_PARTITION) throw reject(PBSE.DEFAULT_PARTITION);
  if (after["queue_type"] === "Route") {
    if (queue === null) throw reject(PBSE.CANNOT_SET_ROUTE_QUE, "partition");
    throw touched.has("queue_type") ? reject(PBSE.CANNOT_SET_ROUTE_QUE, "queue_type") : reject(PBSE.ROUTE_QUE_NO_PARTITION);
  }
  if (queue === null || queue.nodes === 0 || !touched.has("partition")) return;
  for (const vnode of state.vnodes.values()) {
    if (vnode.attrs["queue"] !== queue.name) continue;
    if ((partitionOf(vnode.attrs) ?? partition) !== partition) throw reject(PBSE.INVALID_PARTITION_QUE);
  }
}

/** Checks a vnode after a change. vnode: the present vnode; null: the vnode is being created. */
export function checkNodePartition(state: ServerState, changed: Changed, vnode: Vnode | null): void {
  const { before, after, touched } = changed;
  if (!touched.has("partition") && !touched.has("queue")) return;
  const partition = partitionOf(after);
  if (touched.has("partition")) {
    if (partition === DEFAULT_PARTITION) throw reject(PBSE.DEFAULT_PARTITION);
    if (vnode !== null && vnode.jobs.size + vnode.resvs.size > 0 && partition !== partitionOf(before)) throw reject(PBSE.NODE_BUSY);
  }
  const name = textOf(after, "queue");
  const theirs = name === undefined ? undefined : partitionOf(state.queues.get(name)?.attrs ?? {});
  if (partition === undefined || theirs === undefined || partition === theirs) return;
  // PBS checks the new queue first, and compares it with the old partition of the vnode.
  if (touched.has("queue"))
    throw new Reject(PBSE.PARTITION_NOT_IN_QUE, `Partition ${partitionOf(before) ?? partition} is not part of queue for node`);
  throw new Reject(PBSE.QUE_NOT_IN_PARTITION, `Queue ${name} is not part of partition for node`);
}

/** Checks the partitions that a scheduler will have. sched: its name; it is not the default scheduler. */
export function checkSchedPartitions(state: ServerState, sched: string, partitions: readonly string[]): void {
  for (const partition of partitions) {
    if (partition === DEFAULT_PARTITION) throw reject(PBSE.DEFAULT_PARTITION);
    for (const other of state.scheds.values()) {
      if (other.name === sched) continue;
      const theirs = other.attrs["partition"];
      if (Array.isArray(theirs) && theirs.includes(partition)) throw reject(PBSE.SCHED_PARTITION_ALREADY_EXISTS);
    }
  }
}
