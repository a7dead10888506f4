// Finds processes of users who have no job on this host (`$restrict_user` of mom_priv/config, docs/reference/execution.md
// 7). Pure.
//
// W1. No process of these users is killed: users whose number is not above maxsysid, excepted users, and users with a job
//     here in any phase.

/** $restrict_user. exceptions: names of users. maxsysid: users with a number up to this are system users. */
export type RestrictUser = { readonly on: boolean; readonly exceptions: readonly string[]; readonly maxsysid: number };

export const RESTRICT_NOBODY: RestrictUser = { on: false, exceptions: [], maxsysid: 999 };

/** Returns the pids of processes to kill. owners: users with a job here. uidOf: returns null if the user does not exist. */
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
