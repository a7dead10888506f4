// Access lists: entries [+|-]name[@host] for users and groups, [+|-]host for hosts. The first entry that matches decides; if
// none matches, access is refused (docs/reference/attributes.md 1). A host may start with `*`: `*` alone is every host,
// `*.example.org` is every host in that domain. In managers and operators, each entry must have a host.
//
// I1. A list contains an entry only once; a repeated entry is refused with 15055.

import type { AttributeDef } from "../attribute.ts";
import { isPrintable } from "../attribute-checks.ts";
import { PBSE, reject } from "../pbse.ts";
import { splitList } from "./string-array.ts";

export type AclType = "acl_user" | "acl_group" | "acl_host" | "acl_manager";

const HOST = /^(\*|\*?[A-Za-z0-9._-]+)$/;
const NAME = /^(\*|[^\s,@+*/:;()[\]"'\\-][^\s,@*/:;()[\]"'\\]*)$/;

/**
 * Parses the entries of a list. Refuses malformed entries with 15014, a manager without a host with 15008, repeated entries
 * with 15055.
 */
export function parseAcl(def: AttributeDef, text: string): string[] {
  if (!isPrintable(text)) throw reject(PBSE.BADATVAL);
  const entries = splitList(text);
  for (const entry of entries) checkEntry(def, entry);
  return addToAcl(def, [], entries);
}

/** Adds entries to a list (operator +=). Refuses an entry that the list already contains with 15055. */
export function addToAcl(def: { readonly name: string }, old: readonly string[], added: readonly string[]): string[] {
  const entries = new Set(old);
  for (const entry of added) {
    if (entries.has(entry)) throw reject(PBSE.DUPLIST, def.name);
    entries.add(entry);
  }
  return [...entries];
}

/** A user and the host from which the request comes. */
export type AclSubject = { readonly name: string; readonly host: string };

/** Whether a list of users admits this user. An absent list admits nobody. */
export function aclAdmitsUser(entries: readonly string[] | undefined, who: AclSubject): boolean {
  return firstMatch(entries, (body) => {
    const at = body.indexOf("@");
    const name = at < 0 ? body : body.slice(0, at);
    return (name === "*" || name === who.name) && (at < 0 || hostMatches(body.slice(at + 1), who.host));
  });
}

/** Whether a list of groups admits a user with these groups. The first entry that names one of the groups decides. */
export function aclAdmitsGroups(entries: readonly string[] | undefined, groups: readonly string[], host: string): boolean {
  return firstMatch(entries, (body) => {
    const at = body.indexOf("@");
    const name = at < 0 ? body : body.slice(0, at);
    return (name === "*" || groups.includes(name)) && (at < 0 || hostMatches(body.slice(at + 1), host));
  });
}

/** Whether a list of hosts admits requests from this host. */
export function aclAdmitsHost(entries: readonly string[] | undefined, host: string): boolean {
  return firstMatch(entries, (body) => hostMatches(body, host));
}

/**
 * Whether the host in an entry matches a host. Upper and lower case are the same. If the host is known by its short name (as
 * the server and nodes are), an entry with a full name that begins with it matches. An entry with a short name does not
 * match a full name, because any domain may have a host with that short name.
 */
export function hostMatches(pattern: string, host: string): boolean {
  const want = pattern.toLowerCase();
  const have = host.toLowerCase();
  if (want.startsWith("*")) return have.endsWith(want.slice(1));
  return want === have || (!have.includes(".") && want.startsWith(`${have}.`));
}

function firstMatch(entries: readonly string[] | undefined, matches: (body: string) => boolean): boolean {
  for (const entry of entries ?? []) {
    const sign = entry[0];
    if (matches(sign === "+" || sign === "-" ? entry.slice(1) : entry)) return sign !== "-";
  }
  return false;
}

function checkEntry(def: AttributeDef, entry: string): void {
  const signed = entry.startsWith("+") || entry.startsWith("-");
  if (signed && def.type === "acl_manager") throw reject(PBSE.BADATVAL);
  const body = signed ? entry.slice(1) : entry;
  if (def.type === "acl_host") {
    if (!HOST.test(body)) throw reject(PBSE.BADATVAL);
    return;
  }
  const at = body.indexOf("@");
  if (at < 0 && def.type === "acl_manager") throw reject(PBSE.BADHOST);
  if (!NAME.test(at < 0 ? body : body.slice(0, at))) throw reject(PBSE.BADATVAL);
  if (at >= 0 && !HOST.test(body.slice(at + 1))) throw reject(def.type === "acl_manager" ? PBSE.BADHOST : PBSE.BADATVAL);
}
