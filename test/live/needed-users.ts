// What a test of system mode needs of the machine: root, and users who own the jobs.

import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { systemUsers } from "#support/passwd.ts";
import { becoming, type ComplexOptions, type RunOptions } from "./complex.ts";
import { ROOT } from "./shared.ts";

/** Why a test of system mode with jobs of these users cannot run here, for `skip`; false: it can. */
export function lackOfUsers(...names: readonly string[]): string | false {
  if (process.geteuid?.() !== 0) return "needs root";
  const users = systemUsers();
  const missing = names.filter((name) => users.userByName(name) === null);
  return missing.length > 0 && `needs the users ${missing.join(", ")} (scripts/test-host.sh makes them)`;
}

/** Why this user cannot run the programs of the checkout itself, for `skip`; false: the user can. A clone in a directory of mktemp is its owner's alone. */
export function lackOfCheckout(user: string): string | false {
  const lack = lackOfUsers(user);
  if (lack !== false) return lack;
  const [program = "", ...args] = [...becoming(user), "test", "-r", join(ROOT, "bin", "partita")];
  return spawnSync(program, args, { cwd: "/" }).status !== 0 && `${user} may not read ${ROOT} (a directory above it is closed)`;
}

/** Who owns a test's jobs: in system mode an ordinary user, in user mode whoever runs the test. */
export type Seat = {
  readonly mode: NonNullable<ComplexOptions["mode"]>;
  readonly owner: string | undefined;
  /** how the owner runs a command */
  readonly as: RunOptions;
};

/** System mode with jobs of this user where root runs the test and the user exists; otherwise user mode. A test that needs system mode skips by lackOfUsers. */
export function seatOf(user: string): Seat {
  return lackOfUsers(user) === false ? { mode: "system", owner: user, as: { as: user } } : { mode: "user", owner: undefined, as: {} };
}
