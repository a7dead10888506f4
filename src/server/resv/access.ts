// Who may make reservations (acl_resv_* of the server), and who may change and delete them.

import { parseResvId } from "#model/job-id.ts";
import { limitOf } from "#model/limits/server-limits.ts";
import { PBSE, pbseText, Reject, reject } from "#model/pbse.ts";
import { aclAdmitsGroups, aclAdmitsHost, aclAdmitsUser } from "#model/values/acl.ts";
import { checkOperator, isOwner, mayRootOwnJobs } from "../attributes/permission.ts";
import type { Transaction } from "../engine/transaction.ts";
import type { Resv } from "../state/state.ts";

/**
 * Refuses a caller who may not make reservations: with 15094 and a text if reservations are switched off, with 15092 to
 * 15094 a caller whom an access list excludes, with 15095 root, unless acl_roots admits it.
 */
export function checkMayReserve(tx: Transaction): void {
  const { state, who, config } = tx;
  const { server } = state;
  const list = (name: string): readonly string[] | undefined => server[name] as readonly string[] | undefined;
  if (server["resv_enable"] === false) throw new Reject(PBSE.RESVAUTH_U, `reservations disallowed on ${state.name}`);
  if (config.own_user === null && who.uid === 0 && !mayRootOwnJobs(state, who.host)) throw reject(PBSE.R_UID);
  if (server["acl_resv_host_enable"] === true && !aclAdmitsHost(list("acl_resv_hosts"), who.host)) throw reject(PBSE.RESVAUTH_H);
  if (server["acl_resv_group_enable"] === true && !aclAdmitsGroups(list("acl_resv_groups"), who.groups, who.host))
    throw reject(PBSE.RESVAUTH_G);
  const user = { name: who.user, host: who.host };
  if (server["acl_resv_user_enable"] === true && !aclAdmitsUser(list("acl_resv_users"), user)) throw reject(PBSE.RESVAUTH_U);
}

/** Refuses with 15044 a reservation with which the user would have more occurrences than max_user_occurrences. */
export function checkOccurrences({ state, who }: Transaction, added: number): void {
  const max = limitOf(state, "max_user_occurrences");
  let present = 0;
  for (const { attrs, starts } of state.resvs.values()) if (attrs["euser"] === who.user) present += starts.length;
  if (present + added <= max) return;
  throw new Reject(PBSE.RESCUNAV, `${pbseText(PBSE.RESCUNAV) ?? ""}: more than ${max} occurrences of reservations (max_user_occurrences)`);
}

/** The reservation with this id, as the user has typed it. Refuses an unknown id with 15084. */
export function resvNamed(tx: Transaction, text: string): Resv {
  const resv = tx.state.resvs.get(fullResvId(tx.state.name, text));
  if (resv === undefined) throw reject(PBSE.UNKRESVID);
  return resv;
}

/** The full id of a reservation: if the text has no server name, the name of this server is added. */
export function fullResvId(server: string, text: string): string {
  const id = parseResvId(text);
  if (id !== null) return `${id.letter}${id.seq}.${id.server === "" ? server : id.server}`;
  return text.includes(".") ? text : `${text}.${server}`;
}

/** Refuses with 15007 a caller who neither made the reservation nor is an operator or manager. */
export function checkResvOwner(tx: Transaction, resv: Resv): void {
  if (!isOwner(tx, resv.attrs.Reserve_Owner)) checkOperator(tx.who);
}
