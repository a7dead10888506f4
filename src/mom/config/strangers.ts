// Processes of users without a job on an execution host (`$restrict_user` of mom_priv/config, docs/reference/execution.md 7). Pure.
//
// W1. Users up to maxsysid, excepted users, and users with a job here in any phase lose no process.

/** exceptions: names of users. maxsysid: numbers up to it are the system's. */
export type RestrictUser = { readonly on: boolean; readonly exceptions: readonly string[]; readonly maxsysid: number };

export const RESTRICT_NOBODY: RestrictUser = { on: false, exceptions: [], maxsysid: 999 };

/** The pids to kill. uidOf returns null if the user does not exist. */
export function strangersOf(
  processes: readonly { readonly pid: number; readonly uid: number }[],
  owners: ReadonlySet<number>,
  { on, exceptions, maxsysid }: RestrictUser,
  uidOf: (user: string) => number | null,
): number[] {
  if (!on) return [];
  const spared = new Set(exceptions.map(uidOf));
  return processes.filter(({ uid }) => uid > maxsysid && !owners.has(uid) && !spared.has(uid)).map(({ pid }) => pid);
}
