// Finds the identity under which a program of a backend acts on runners. It is the identity of the runners' user, so that no right over jobs of others is needed.

import { systemUsers, type UserDatabase } from "#support/passwd.ts";
import type { Owner, RunnerSighting } from "../contract/backend.ts";

let users: UserDatabase | null = null;

/** Returns the identity of a user; null: the user is unknown, or is root. */
export function ownerOf(name: string): Owner | null {
  users ??= systemUsers();
  const user = users.userByName(name);
  return user === null || user.uid === 0 || user.gid === 0 ? null : { name, uid: user.uid, gid: user.gid, groups: users.gidsOf(user) };
}

/**
 * Groups runners by the identity that acts on them. Runners of users that this machine does not know are left out: nobody could have submitted them from here.
 * complex_user: the user of the complex; null: system mode.
 */
export function byOwner(
  runners: readonly RunnerSighting[],
  complex_user: string | null,
): readonly (readonly [Owner | null, readonly RunnerSighting[]])[] {
  if (complex_user !== null) return runners.length === 0 ? [] : [[null, runners]];
  const groups = Map.groupBy(runners, ({ user }) => user ?? "");
  return [...groups].flatMap(([name, own]) => {
    const owner = ownerOf(name);
    return owner === null ? [] : [[owner, own] as const];
  });
}
