// The resources by which vnodes are grouped into placement sets, as set at server and queue (docs/placement-sets.md).

import type { Queue } from "../shapes/job-line.ts";
import type { Universe } from "../shapes/universe.ts";

/** The attributes of server and queue, and those of the scheduler, that form placement sets. */
export const GROUP_ATTRS = ["node_group_enable", "node_group_key"] as const;
export const SCHED_GROUP_ATTRS = ["only_explicit_psets"] as const;

/** Returns the resources by which vnodes are grouped for the jobs of a queue that ask for no grouping themselves. The list is empty for the queue of a reservation. */
export function groupResources({ server, resv_queues }: Universe, queue: Queue | undefined): readonly string[] {
  if (server.attrs["node_group_enable"] !== true || resv_queues.has(queue?.name ?? "")) return [];
  const own = listOf(queue?.attrs["node_group_key"]);
  return own.length > 0 ? own : listOf(server.attrs["node_group_key"]);
}

/** Returns whether a job's vnodes are grouped in another way because it is in this queue. */
export function hasOwnGrouping({ server }: Universe, queue: Queue): boolean {
  return server.attrs["node_group_enable"] === true && listOf(queue.attrs["node_group_key"]).length > 0;
}

function listOf(value: unknown): readonly string[] {
  const names = Array.isArray(value) ? value.map(String) : typeof value === "string" ? value.split(",") : [];
  return names.map((name) => name.trim()).filter((name) => name !== "");
}
