// The user and group of a job's processes: the first of User_List and group_list that is meant for this host, else the owner and the owner's first group.
//
// I1. A job runs only as its owner, because there is no way yet to prove that two names are one person (15023).
// I2. Root owns jobs only if acl_roots allows it; in user mode the complex's own user owns all jobs.
// I3. A group must be one of the owner's (15045).

import { PBSE, reject } from "#model/pbse.ts";
import { hostMatches } from "#model/values/acl.ts";
import { mayRootOwnJobs } from "../attributes/permission.ts";
import type { Transaction } from "../engine/transaction.ts";

export type ExecutionUser = { readonly euser: string; readonly egroup: string };

export function executionUser(
  tx: Transaction,
  lists: { readonly User_List?: readonly string[]; readonly group_list?: readonly string[] },
): ExecutionUser {
  const { who, config } = tx;
  const euser = chosen(lists.User_List, config.host) ?? who.user;
  if (euser !== who.user) throw reject(PBSE.BADUSER);
  if (config.own_user !== null) {
    if (euser !== config.own_user) throw reject(PBSE.BADUSER);
  } else {
    if ((who.uid === 0 || euser === "root") && !mayRootOwnJobs(tx.state, who.host)) throw reject(PBSE.BADUSER);
    if (!config.userExists(euser)) throw reject(PBSE.BADUSER);
  }
  const egroup = chosen(lists.group_list, config.host);
  if (egroup !== undefined && !who.groups.includes(egroup)) throw reject(PBSE.BADGRP);
  return { euser, egroup: egroup ?? who.groups[0] ?? euser };
}

/** Of `name[@host]` entries the one for this host, else the first without a host. */
function chosen(list: readonly string[] | undefined, host: string): string | undefined {
  let general: string | undefined;
  for (const entry of list ?? []) {
    const at = entry.indexOf("@");
    if (at < 0) general ??= entry;
    else if (hostMatches(entry.slice(at + 1), host)) return entry.slice(0, at);
  }
  return general;
}
