// Access lists: entries [+|-]name[@host] for users and groups, [+|-]host for hosts. The first matching entry decides; no match refuses (docs/reference/attributes.md 1).
// A host may start with `*`: `*` alone is every host, `*.example.org` every host below that domain. Managers and operators need the host part.
//
// I1. A list holds an entry once (15055 otherwise).

import type { AttributeDef } from "../attribute.ts";
import { isPrintable } from "../attribute-checks.ts";
import { PBSE, reject } from "../pbse.ts";
import { splitList } from "./string-array.ts";

export type AclType = "acl_user" | "acl_group" | "acl_host" | "acl_manager";

const HOST = /^(\*|\*?[A-Za-z0-9._-]+)$/;
const NAME = /^(\*|[^\s,@+*/:;()[\]"'\\-][^\s,@*/:;()[\]"'\\]*)$/;

/** Entries of a list text. Refuses malformed ones with 15014, a missing host of managers with 15008, entries given twice with 15055. */
export function parseAcl(def: AttributeDef, text: string): string[] {
  if (!isPrintable(text)) throw reject(PBSE.BADATVAL);
  const entries = splitList(text);
  for (const entry of entries) checkEntry(def, entry);
  return addToAcl(def, [], entries);
}

/** += : refuses an entry that is already there with 15055. */
export function addToAcl(def: { readonly name: string }, old: readonly string[], added: readonly string[]): string[] {
  const entries = new Set(old);
  for (const entry of added) {
    if (entries.has(entry)) throw reject(PBSE.DUPLIST, def.name);
    entries.add(entry);
  }
  return [...entries];
}

/** user and the host he comes from. */
export type AclSubject = { readonly name: string; readonly host: string };

/** Whether a list of users lets this user in. Absent list: nobody. */
export function aclAdmitsUser(entries: readonly string[] | undefined, who: AclSubject): boolean {
  return firstMatch(entries, (body) => {
    const at = body.indexOf("@");
    const name = at < 0 ? body : body.slice(0, at);
    return (name === "*" || name === who.name) && (at < 0 || hostMatches(body.slice(at + 1), who.host));
  });
}

/** Whether a list of groups lets somebody with these groups in: the first entry that names one of them decides. */
export function aclAdmitsGroups(entries: readonly string[] | undefined, groups: readonly string[], host: string): boolean {
  return firstMatch(entries, (body) => {
    const at = body.indexOf("@");
    const name = at < 0 ? body : body.slice(0, at);
    return (name === "*" || groups.includes(name)) && (at < 0 || hostMatches(body.slice(at + 1), host));
  });
}

/** Whether a list of hosts lets requests from this host in. */
export function aclAdmitsHost(entries: readonly string[] | undefined, host: string): boolean {
  return firstMatch(entries, (body) => hostMatches(body, host));
}

/**
 * Whether a host is meant by the host part of an entry. Case does not count. A host known by its short name (the server and nodes are)
 * is meant by a full name that begins with it; the other way round nothing is assumed, because anybody's domain may have a host of that name.
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
