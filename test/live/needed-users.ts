// What a test of system mode needs of the machine: root, and users who own the jobs.

import { systemUsers } from "#support/passwd.ts";

/** Why a test of system mode with jobs of these users cannot run here, for `skip`; false: it can. */
export function lackOfUsers(...names: readonly string[]): string | false {
  if (process.geteuid?.() !== 0) return "needs root";
  const users = systemUsers();
  const missing = names.filter((name) => users.userByName(name) === null);
  return missing.length > 0 && `needs the users ${missing.join(", ")} (scripts/test-host.sh makes them)`;
}
