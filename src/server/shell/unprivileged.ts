// The identity of programs that the server starts in system mode and that need none of root's rights: the mail program, and hosts of JavaScript hooks.

import type { UserDatabase } from "#support/passwd.ts";

export type Unprivileged = { readonly uid: number; readonly gid: number };

/** The number that the kernel gives to unknown users, if the system has no user with that name. */
const NOBODY: Unprivileged = { uid: 65534, gid: 65534 };

/** The user `nobody`. */
export function nobody(users: UserDatabase): Unprivileged {
  const found = users.userByName("nobody");
  return found === null ? NOBODY : { uid: found.uid, gid: found.gid };
}

/** The user that a line of pbs.conf names (undefined: `nobody`). A text: why that user cannot be used. key: of the line. */
export function unprivilegedUser(users: UserDatabase, key: string, name: string | undefined): Unprivileged | string {
  if (name === undefined || name === "") return nobody(users);
  const found = users.userByName(name);
  if (found === null) return `${key} of pbs.conf: no user ${name}`;
  if (found.uid === 0 || found.gid === 0) return `${key} of pbs.conf: ${name} has root's rights`;
  return { uid: found.uid, gid: found.gid };
}
