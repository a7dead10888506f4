// Identities: of a client as the socket shows it, of the server for its own actions, and of a scheduler for its decisions.

import type { Identity } from "./transaction.ts";

/** A client as the socket shows it. */
export type Peer = Omit<Identity, "level">;

/** The identity of the server for its own actions. */
export function serverIdentity(host: string): Identity {
  return { user: "root", uid: 0, groups: [], host, level: "manager", root: true };
}

/** A scheduler's decisions are logged as `Scheduler@host`. */
export function schedulerIdentity(host: string): Identity {
  return { user: "Scheduler", uid: 0, groups: [], host, level: "manager", root: false };
}
