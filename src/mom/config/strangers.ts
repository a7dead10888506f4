// Processes of users who have no business on an execution host (`$restrict_user` of mom_priv/config, docs/reference/execution.md 7). Pure.
//
// W1. Nobody up to maxsysid, nobody excepted and nobody with a job here, in whatever stage of it, loses a process.

/** exceptions: names of users. maxsysid: numbers up to it are the system's. */
export type RestrictUser = { readonly on: boolean; readonly exceptions: readonly string[]; readonly maxsysid: number };

export const RESTRICT_NOBODY: RestrictUser = { on: false, exceptions: [], maxsysid: 999 };

/** Pids to be killed. uidOf: null: no such user. */
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
