// Requirements of tests of system mode: root, and users who own the jobs.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { systemUsers } from "#support/passwd.ts";
import { becoming, type ComplexOptions, type RunOptions } from "./complex.ts";
import { ROOT } from "./shared.ts";

/** The reason why a test of system mode with jobs of these users cannot run here, for `skip`; false: it can run. */
export function lackOfUsers(...names: readonly string[]): string | false {
  if (process.geteuid?.() !== 0) return "needs root";
  const users = systemUsers();
  const missing = names.filter((name) => users.userByName(name) === null);
  return missing.length > 0 && `needs the users ${missing.join(", ")} (scripts/test-host.sh makes them)`;
}

/**
 * The reason why this user cannot run the programs of the checkout, for `skip`; false: the user can. A clone in a directory of
 * mktemp is accessible only to its owner.
 */
export function lackOfCheckout(user: string): string | false {
  const lack = lackOfUsers(user);
  if (lack !== false) return lack;
  const [program = "", ...args] = [...becoming(user), "test", "-r", join(ROOT, "bin", "partita")];
  return spawnSync(program, args, { cwd: "/" }).status !== 0 && `${user} may not read ${ROOT} (a directory above it is closed)`;
}

/** The owner of a test's jobs: in system mode an ordinary user, in user mode the user who runs the test. */
export type Seat = {
  readonly mode: NonNullable<ComplexOptions["mode"]>;
  readonly owner: string | undefined;
  /** how the owner runs a command */
  readonly as: RunOptions;
};

/**
 * System mode with jobs of this user if root runs the test and the user exists; otherwise user mode. A test that needs system
 * mode must skip by lackOfUsers.
 */
export function seatOf(user: string): Seat {
  return lackOfUsers(user) === false ? { mode: "system", owner: user, as: { as: user } } : { mode: "user", owner: undefined, as: {} };
}
