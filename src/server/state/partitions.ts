// Finds the scheduler of a queue or vnode, which is the scheduler of its partition.

import { DEFAULT_PARTITION, DEFAULT_SCHED } from "#model/tables/sched-attributes.ts";
import { isOwnName, type OwnHost } from "./own-host.ts";
import type { Queue, Sched, ServerState, Vnode } from "./state.ts";

/** The partitions of a scheduler: for the default scheduler pbs-default, for others those of its attribute partition. */
export function partitionsOf(sched: Sched): readonly string[] {
  if (sched.name === DEFAULT_SCHED) return [DEFAULT_PARTITION];
  const list = sched.attrs["partition"];
  return Array.isArray(list) ? (list as string[]) : [];
}

/** The partition of a queue or vnode; if it has none, that of the default scheduler. */
export function partitionOf(object: Queue | Vnode): string {
  const partition = object.attrs["partition"];
  return typeof partition === "string" && partition !== "" ? partition : DEFAULT_PARTITION;
}

/** The scheduler of a partition. */
export function schedOfPartition(state: ServerState, partition: string): Sched | undefined {
  if (partition === DEFAULT_PARTITION) return state.scheds.get(DEFAULT_SCHED);
  for (const sched of state.scheds.values()) if (partitionsOf(sched).includes(partition)) return sched;
  return undefined;
}

export const schedOfQueue = (state: ServerState, queue: Queue): Sched | undefined => schedOfPartition(state, partitionOf(queue));

/** Whether the server keeps a process for the scheduler (docs/reference/differences.md): it has scheduling=True and a partition. */
export function shouldRun(sched: Sched, own: OwnHost): boolean {
  return sched.attrs["scheduling"] === true && partitionsOf(sched).length > 0 && !isRemote(sched, own);
}

/** Whether a scheduler belongs to another host or has a sched_port. This release does not support such schedulers. */
export function isRemote(sched: Sched, own: OwnHost): boolean {
  if (sched.name === DEFAULT_SCHED) return false;
  const { sched_host, sched_port } = sched.attrs;
  return sched_port !== undefined || (typeof sched_host === "string" && !isOwnName(own, sched_host));
}
