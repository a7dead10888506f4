// The rights of callers: the levels user, operator and manager, the access lists of server and queues, holds, and resources
// of a job (docs/reference/qmgr.md 5, docs/reference/attributes.md 1).
//
// I1. An access list is used only while its *_enable attribute is True. Such a list refuses whoever matches no entry.
// I2. The server's list of hosts (acl_hosts) never refuses the server's own host. Its list of users (acl_users) never refuses managers and operators.
// I3. Root on the server's host is always a manager; in user mode, so is the user of the complex.
// I4. The attributes managers and operators have entries `[+|-]name[@host]`; the first entry that matches decides. A host
//     may begin with `*`.

import { type AttributeDef, checkSettable, maySet, valueName } from "#model/attribute.ts";
import { PBSE, reject } from "#model/pbse.ts";
import { parseSelect } from "#model/request/select.ts";
import type { ResourceDef, Resources } from "#model/resource-table.ts";
import { aclAdmitsGroups, aclAdmitsHost, aclAdmitsUser } from "#model/values/acl.ts";
import type { Peer } from "../engine/identity.ts";
import type { Identity, Transaction } from "../engine/transaction.ts";
import type { Attrs, ServerState } from "../state/state.ts";

/** The caller with its level (I3, I4). */
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

/** Whether a host matches a pattern: a name, `*` or `*.example.org`. Upper and lower case are the same. A short name matches the full name. */
function matchesHost(pattern: string, host: string): boolean {
  const wanted = pattern.toLowerCase();
  const given = host.toLowerCase();
  if (wanted === "*" || wanted === given) return true;
  if (wanted.startsWith("*")) return given.endsWith(wanted.slice(1));
  return !given.includes(".") && wanted.startsWith(`${given}.`);
}

/** Refuses with 15007 a caller who is not a manager. */
export function checkManager(who: Identity): void {
  if (who.level !== "manager") throw reject(PBSE.PERM);
}

/** Refuses with 15007 a caller who is neither operator nor manager. */
export function checkOperator(who: Identity): void {
  if (who.level === "user") throw reject(PBSE.PERM);
}

/**
 * Checks the access lists of the server, for every request. Refuses with 15008 a host, but never the server's own host. Refuses
 * with 15007 a user, but never a manager or operator. So a manager on the server's host can always correct the lists.
 */
export function checkAccess(state: ServerState, server_host: string, who: Identity): void {
  const { server } = state;
  if (server["acl_host_enable"] === true && who.host !== server_host && !admitsHost(server, who.host, state)) throw reject(PBSE.BADHOST);
  if (server["acl_user_enable"] !== true || who.level !== "user") return;
  if (!aclAdmitsUser(list(server, "acl_users"), { name: who.user, host: who.host })) throw reject(PBSE.PERM);
}

function admitsHost(server: Attrs, host: string, state: ServerState): boolean {
  if (aclAdmitsHost(list(server, "acl_hosts"), host)) return true;
  return server["acl_host_moms_enable"] === true && state.hosts.has(host);
}

/** Whom the access lists of a queue are about: the job's owner, the owner's groups, and the host of the submission. */
export type Submitter = { readonly user: string; readonly host: string; readonly groups: readonly string[] };

/** Checks the access lists of a queue: hosts, users, groups. Each refuses with 15007 (docs/reference/commands.md 1.2). */
export function checkQueueLists(queue: Attrs, who: Submitter): void {
  if (queue["acl_host_enable"] === true && !aclAdmitsHost(list(queue, "acl_hosts"), who.host)) throw reject(PBSE.PERM);
  if (queue["acl_user_enable"] === true && !aclAdmitsUser(list(queue, "acl_users"), { name: who.user, host: who.host }))
    throw reject(PBSE.PERM);
  if (queue["acl_group_enable"] === true && !aclAdmitsGroups(list(queue, "acl_groups"), who.groups, who.host)) throw reject(PBSE.PERM);
}

/** Whether root on that host may own jobs (acl_roots). */
export function mayRootOwnJobs(state: ServerState, host: string): boolean {
  return aclAdmitsUser(list(state.server, "acl_roots"), { name: "root", host });
}

/**
 * Whether the caller is the owner: the same user on the same host, or, if flatuid of the server is set, on any host.
 */
export function isOwner(tx: Transaction, owner: string): boolean {
  const at = owner.lastIndexOf("@");
  if (owner.slice(0, at) !== tx.who.user) return false;
  return tx.state.server["flatuid"] === true || owner.slice(at + 1).toLowerCase() === tx.who.host.toLowerCase();
}

/** Whether the caller may see the jobs of all users (query_other_jobs). */
export function seesOthers(tx: Transaction): boolean {
  return tx.who.level !== "user" || tx.state.server["query_other_jobs"] !== false;
}

function list(attrs: Attrs, name: string): readonly string[] | undefined {
  const value = attrs[name];
  return Array.isArray(value) ? (value as readonly string[]) : undefined;
}

// --- holds

/**
 * The levels that may set and release each hold. u: owners of the job, operators and managers; o: operators and managers; s
 * and p: managers (docs/reference/commands.md 3).
 */
const SETTERS: { readonly [letter: string]: readonly Identity["level"][] } = {
  u: ["user", "operator", "manager"],
  o: ["operator", "manager"],
  s: ["manager"],
  p: ["manager"],
};

/** Refuses with 15007 a change of holds if the caller may not set one of the letters that are added or removed. */
export function checkHoldRight(who: Identity, before: string, after: string): void {
  for (const letter of "uosp") {
    if (before.includes(letter) !== after.includes(letter) && !SETTERS[letter]?.includes(who.level)) throw reject(PBSE.PERM);
  }
}

// --- resources

/**
 * Refuses with 15003 a resource that the caller may not set, or a select with such a resource in a chunk. Refuses with 15014
 * an empty select or nodes; an empty value of any other resource removes that resource. text: the value; null: the resource
 * is removed.
 */
export function checkAskable(def: AttributeDef, resource: ResourceDef, text: string | null, who: Identity, resources: Resources): void {
  checkSettable(def, who, resource);
  if (text === null) return;
  const is_select = resource.name === "select";
  if ((is_select || resource.name === "nodes") && text.trim() === "") throw reject(PBSE.BADATVAL, valueName(def, resource.name));
  if (!is_select || who.level === "manager") return;
  for (const { pairs } of parseSelect(text).chunks) {
    for (const { name } of pairs) {
      const named = resources.get(name);
      if (named !== undefined && !maySet(named, who)) throw reject(PBSE.ATTRRO, valueName(def, name));
    }
  }
}
