// The attribute table of each type of object.

import type { AttributeTable, ObjectType } from "../attribute.ts";
import { BACKEND_ATTRIBUTES } from "./backend-attributes.ts";
import { HOOK_ATTRIBUTES } from "./hook-attributes.ts";
import { JOB_ATTRIBUTES } from "./job-attributes.ts";
import { NODE_ATTRIBUTES } from "./node-attributes.ts";
import { QUEUE_ATTRIBUTES } from "./queue-attributes.ts";
import { RESV_ATTRIBUTES } from "./resv-attributes.ts";
import { SCHED_ATTRIBUTES } from "./sched-attributes.ts";
import { SERVER_ATTRIBUTES } from "./server-attributes.ts";

export const ATTRIBUTE_TABLES: { readonly [type in ObjectType]: AttributeTable } = {
  server: SERVER_ATTRIBUTES,
  sched: SCHED_ATTRIBUTES,
  queue: QUEUE_ATTRIBUTES,
  node: NODE_ATTRIBUTES,
  job: JOB_ATTRIBUTES,
  resv: RESV_ATTRIBUTES,
  hook: HOOK_ATTRIBUTES,
  backend: BACKEND_ATTRIBUTES,
};
