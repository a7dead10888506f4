// The user under which the server in system mode starts programs that need no rights of root: the mail program, and the hook
// hosts of JavaScript hooks.

import type { UserDatabase } from "#support/passwd.ts";

export type Unprivileged = { readonly uid: number; readonly gid: number };

/** Used if the system has no user `nobody`: the number that Linux gives to unknown users. */
const NOBODY: Unprivileged = { uid: 65534, gid: 65534 };

/** The user `nobody`. */
export function nobody(users: UserDatabase): Unprivileged {
  const found = users.userByName("nobody");
  return found === null ? NOBODY : { uid: found.uid, gid: found.gid };
}

/** The user that a setting of pbs.conf names; name undefined: `nobody`. key: the name of the setting. If that user cannot be used, returns the reason. */
export function unprivilegedUser(users: UserDatabase, key: string, name: string | undefined): Unprivileged | string {
  if (name === undefined || name === "") return nobody(users);
  const found = users.userByName(name);
  if (found === null) return `${key} of pbs.conf: no user ${name}`;
  if (found.uid === 0 || found.gid === 0) return `${key} of pbs.conf: ${name} has root's rights`;
  return { uid: found.uid, gid: found.gid };
}
