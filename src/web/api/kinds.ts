// The objects that the interface shows, and their names in paths.

import type { AttributeTable } from "#model/attribute.ts";
import { ATTRIBUTE_TABLES } from "#model/tables/tables.ts";

export type Kind = {
  /** the name in paths: /api/v1/jobs */
  readonly path: string;
  readonly noun: string;
  readonly object: "job" | "node" | "queue" | "sched" | "resv";
  readonly table: AttributeTable;
};

const kind = (path: string, noun: string, object: Kind["object"]): Kind => ({ path, noun, object, table: ATTRIBUTE_TABLES[object] });

export const JOBS = kind("jobs", "job", "job");
export const KINDS: readonly Kind[] = [
  JOBS,
  kind("nodes", "vnode", "node"),
  kind("queues", "queue", "queue"),
  kind("schedulers", "scheduler", "sched"),
  kind("reservations", "reservation", "resv"),
];
