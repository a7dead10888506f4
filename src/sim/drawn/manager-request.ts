// Makes requests of qmgr, as the clients of the simulator send them.

import type { ManagerRequest } from "#protocol/messages.ts";

export const set = (
  object: ManagerRequest["object"],
  name: string,
  ...values: readonly (readonly [name: string, value: string, op?: "=" | "+=" | "-=", resource?: string])[]
): ManagerRequest => ({
  kind: "manager",
  verb: "set",
  object,
  name,
  attrs: values.map(([attribute, value, op = "=", resource]) => ({
    name: attribute,
    op,
    value,
    ...(resource === undefined ? {} : { resource }),
  })),
});

export const create = (object: ManagerRequest["object"], name: string, ...values: Parameters<typeof set>[2][]): ManagerRequest => ({
  ...set(object, name, ...values),
  verb: "create",
});
