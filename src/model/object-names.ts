// Checks names of objects: their characters and their lengths (docs/reference/attributes.md 3-5, docs/reference/errors.md 1).

import { PBSE, reject } from "./pbse.ts";

export const QUEUE_NAME_LENGTH_MAX = 15;
const SCHED_NAME_LENGTH_MAX = 15;
const BACKEND_NAME_LENGTH_MAX = 15;
const NODE_NAME_LENGTH_MAX = 79;
const RESOURCE_NAME_LENGTH_MAX = 64;

export type NamedObject = "queue" | "sched" | "node" | "resource" | "backend";

type NameRule = { readonly form: RegExp; readonly length_max: number; readonly tooLong: number };

const RULES: { readonly [type in NamedObject]: NameRule } = {
  queue: { form: /^[A-Za-z][A-Za-z0-9_-]*$/, length_max: QUEUE_NAME_LENGTH_MAX, tooLong: PBSE.QUENBIG },
  sched: { form: /^[A-Za-z][A-Za-z0-9_-]*$/, length_max: SCHED_NAME_LENGTH_MAX, tooLong: PBSE.SCHED_NAME_BIG },
  node: { form: /^[A-Za-z0-9][A-Za-z0-9._[\]-]*$/, length_max: NODE_NAME_LENGTH_MAX, tooLong: PBSE.NODENBIG },
  resource: { form: /^[A-Za-z][A-Za-z0-9_-]*$/, length_max: RESOURCE_NAME_LENGTH_MAX, tooLong: PBSE.IVAL_OBJ_NAME },
  backend: { form: /^[A-Za-z][A-Za-z0-9_]*$/, length_max: BACKEND_NAME_LENGTH_MAX, tooLong: PBSE.IVAL_OBJ_NAME },
};

/**
 * Refuses an illegal name of an object: a name that is too long with 15028, 15212 or 15065, any other illegal name with
 * 15172.
 */
export function checkObjectName(object: NamedObject, name: string): void {
  const rule = RULES[object];
  if (name.length > rule.length_max) throw reject(rule.tooLong);
  if (!rule.form.test(name)) throw reject(PBSE.IVAL_OBJ_NAME);
}

/** Whether a name is legal for an object of that type. */
export function isObjectName(object: NamedObject, name: string): boolean {
  return name.length <= RULES[object].length_max && RULES[object].form.test(name);
}
