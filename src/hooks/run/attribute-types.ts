// The types of PBS's attributes by kind of object, from the tables of src/model. Hook hosts need them to convert values. Pure.

import type { AttributeTable } from "#model/attribute.ts";
import { JOB_ATTRIBUTES } from "#model/tables/job-attributes.ts";
import { NODE_ATTRIBUTES } from "#model/tables/node-attributes.ts";
import { QUEUE_ATTRIBUTES } from "#model/tables/queue-attributes.ts";
import { RESV_ATTRIBUTES } from "#model/tables/resv-attributes.ts";
import { SERVER_ATTRIBUTES } from "#model/tables/server-attributes.ts";

export type TypeTables = { readonly [kind: string]: { readonly [attribute: string]: string } };

const typesOf = (table: AttributeTable): { readonly [attribute: string]: string } =>
  Object.fromEntries(table.rows.map((row) => [row.name, row.type]));

export const ATTRIBUTE_TYPES: TypeTables = {
  job: typesOf(JOB_ATTRIBUTES),
  vnode: typesOf(NODE_ATTRIBUTES),
  queue: typesOf(QUEUE_ATTRIBUTES),
  resv: typesOf(RESV_ATTRIBUTES),
  server: typesOf(SERVER_ATTRIBUTES),
};
