// The level of a caller: manager, operator or user (docs/reference/attributes.md 1).
//
// I1. Root on the server host (user mode: the complex's own user) is always a manager.
// I2. Lists consist of entries `[+|-]name[@host]`; the first entry that matches decides. A host may begin with `*`.

import type { ServerState } from "../state/state.ts";
import type { Identity } from "./transaction.ts";

/** A client as the socket shows it. */
export type Peer = Omit<Identity, "level">;

export function identify(state: ServerState, peer: Peer): Identity {
  return { ...peer, level: levelOf(state, peer) };
}

function levelOf(state: ServerState, peer: Peer): Identity["level"] {
  if (peer.root || isListed(state.server["managers"], peer)) return "manager";
  return isListed(state.server["operators"], peer) ? "operator" : "user";
}

function isListed(list: unknown, peer: Peer): boolean {
  if (!Array.isArray(list)) return false;
  for (const entry of list as readonly string[]) {
    const allow = !entry.startsWith("-");
    const [name, host] = entry.replace(/^[+-]/, "").split("@");
    if (name !== "*" && name !== peer.user) continue;
    if (host === undefined || matchesHost(host, peer.host)) return allow;
  }
  return false;
}

/** `*` and `*.example.org`. Names of hosts are compared without regard to case; a short name matches the full one. */
function matchesHost(pattern: string, host: string): boolean {
  const wanted = pattern.toLowerCase();
  const given = host.toLowerCase();
  if (wanted === "*" || wanted === given) return true;
  if (wanted.startsWith("*")) return given.endsWith(wanted.slice(1));
  return !given.includes(".") && wanted.startsWith(`${given}.`);
}

/** The identity of the server for its own actions. */
export function serverIdentity(host: string): Identity {
  return { user: "root", uid: 0, groups: [], host, level: "manager", root: true };
}

/** A scheduler's decisions are logged as `Scheduler@host`. */
export function schedulerIdentity(host: string): Identity {
  return { user: "Scheduler", uid: 0, groups: [], host, level: "manager", root: false };
}
