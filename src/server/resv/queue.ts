// The queue of a reservation (docs/reference/commands.md 5). It has the name of the reservation without the server.

import type { ResourceValues } from "#model/attribute.ts";
import { isConsumable } from "#model/resource-table.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Transaction } from "../engine/transaction.ts";
import type { Attrs, ResvAttrs, ServerState } from "../state/state.ts";

/** Makes the queue of a reservation. It is disabled until the reservation is confirmed, and not started until the period begins. */
export function makeQueue(tx: Transaction, attrs: ResvAttrs): void {
  tx.apply({
    kind: "created",
    object: "queue",
    name: attrs.queue,
    attrs: { queue_type: "Execution", enabled: false, started: false, ...accessOf(attrs), ...amountsOf(tx.state, attrs) },
  });
  logQueue(tx, attrs.queue, "created");
}

/** Deletes the queue of a reservation. Called when the reservation is deleted. */
export function removeQueue(tx: Transaction, queue: string): void {
  if (!tx.state.queues.has(queue)) return;
  tx.apply({ kind: "deleted", object: "queue", name: queue });
  logQueue(tx, queue, "deleted");
}

/** Logs that the queue was created or deleted by the server, whoever made the reservation. */
function logQueue(tx: Transaction, queue: string, what: "created" | "deleted"): void {
  tx.log({ event: LOG_EVENT.ADMIN, class: "Que", object: queue, text: `${what} at request of pbs_server@${tx.config.host}` });
}

/** Makes the access lists of the queue from those of the reservation. */
export function accessOf(attrs: ResvAttrs): Attrs {
  const access: Attrs = { acl_user_enable: true, acl_users: attrs.Authorized_Users };
  const groups = attrs["Authorized_Groups"];
  const hosts = attrs["Authorized_Hosts"];
  if (Array.isArray(groups)) Object.assign(access, { acl_group_enable: true, acl_groups: groups });
  if (Array.isArray(hosts)) Object.assign(access, { acl_host_enable: true, acl_hosts: hosts });
  return access;
}

/** Makes limits of the queue from the reserved amounts, both for each job and for all jobs together. */
export function amountsOf(state: Pick<ServerState, "resources">, attrs: ResvAttrs): Attrs {
  const amounts: { [resource: string]: string | number | boolean } = {};
  for (const [name, value] of Object.entries(attrs.Resource_List as ResourceValues)) {
    const def = state.resources.get(name);
    if (def !== undefined && name !== "nodect" && isConsumable(def)) amounts[name] = value;
  }
  return Object.keys(amounts).length === 0 ? {} : { resources_max: amounts, resources_available: amounts };
}
