// Identities under which requests and actions are carried out: that of a client, of the server for its own actions, and of a
// scheduler for its decisions.

import type { Identity } from "./transaction.ts";

/** The user of a client, as the operating system reports it for the socket. */
export type Peer = Omit<Identity, "level">;

/** The identity of the server for its own actions. */
export function serverIdentity(host: string): Identity {
  return { user: "root", uid: 0, groups: [], host, level: "manager", root: true };
}

/** The identity of a scheduler for its decisions, which are logged as requests of `Scheduler@host`. */
export function schedulerIdentity(host: string): Identity {
  return { user: "Scheduler", uid: 0, groups: [], host, level: "manager", root: false };
}
