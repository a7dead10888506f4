// Who may write to a database that several servers can reach. The database has one row about its leader. A leader has a term;
// each change of the leader, and each new connection of the same leader, begins a new term. Pure.
//
// E1. Every commit checks in its own transaction that its term is the present one (batch-function.ts). A deposed leader can
//     therefore write nothing, however late it learns that it was deposed.
// E2. A leader shows that it is alive by changing the row: with each commit, and with a beat while there are none. Another
//     server takes over if it has seen no change for the time of silence on its own monotonic clock. The clocks of hosts are
//     never compared.
// E3. The take-over names the row that was seen. If the leader has changed the row meanwhile, nothing is taken.
// E4. A leader whose last confirmation is older than half of the silence confirms its term before it acts on a commit, so that
//     a process that was stopped (SIGSTOP) does not act on what it has committed before another server took over.

/** The row about the leader. holder: the PBS_HOME that it serves; null: the last leader has ended. instance: its process. */
export type LeaderRow = {
  readonly store: number;
  readonly term: number;
  readonly last_commit: number;
  readonly beat: number;
  readonly holder: string | null;
  readonly instance: string | null;
  readonly host: string | null;
  readonly pid: number | null;
};

/** A server that wants to lead. holder: as in LeaderRow. Only one process at a time can have a PBS_HOME, because the process locks it. */
export type Candidate = { readonly holder: string; readonly instance: string };

/** A row, and the time of the monotonic clock at which the row was first seen in this form. */
export type Sighting = { readonly row: LeaderRow; readonly since_ms: number };

/** Combines a new look at the row with what was seen before. */
export function seen(before: Sighting | null, row: LeaderRow, now_ms: number): Sighting {
  return before !== null && isUnchanged(before.row, row) ? before : { row, since_ms: now_ms };
}

const isUnchanged = (a: LeaderRow, b: LeaderRow): boolean =>
  a.store === b.store && a.term === b.term && a.last_commit === b.last_commit && a.beat === b.beat && a.instance === b.instance;

/** take: the candidate may take the row as it was seen. again: the candidate leads already. wait: the leader has until until_ms to change the row. */
export type Decision =
  | { readonly kind: "take"; readonly why: "nobody leads" | "same PBS_HOME" | "silence" }
  | { readonly kind: "again" }
  | { readonly kind: "wait"; readonly until_ms: number };

/** Whether a candidate may take over, given what it has seen so far. silence_ms: see E2. */
export function mayTake(candidate: Candidate, { row, since_ms }: Sighting, now_ms: number, silence_ms: number): Decision {
  if (row.instance === candidate.instance) return { kind: "again" };
  if (row.holder === null) return { kind: "take", why: "nobody leads" };
  if (row.holder === candidate.holder) return { kind: "take", why: "same PBS_HOME" };
  if (now_ms - since_ms >= silence_ms) return { kind: "take", why: "silence" };
  return { kind: "wait", until_ms: since_ms + silence_ms };
}

/** Whether the leader has shown that it is alive since it was first seen. */
export const isAlive = (first: LeaderRow, row: LeaderRow): boolean => !isUnchanged(first, row) && row.holder !== null;

/** Whether a leader must confirm its term before it acts (E4). begun_ms: when the statement that confirmed it last was sent. */
export const mustConfirm = (begun_ms: number, now_ms: number, silence_ms: number): boolean => now_ms - begun_ms > silence_ms / 2;

/**
 * What a leader finds when it has connected again. last_commit: the number that the database has. known: the number of the last commit that it has confirmed.
 * is_open: whether a further commit was under way when the connection was lost. lost: confirmed commits are missing (a standby without them was promoted, or an
 * old copy put in its place).
 */
export function afterReconnect(last_commit: number, known: number, is_open: boolean): "as before" | "written" | "lost" | "foreign" {
  if (last_commit === known) return "as before";
  if (last_commit < known) return "lost";
  return is_open && last_commit === known + 1 ? "written" : "foreign";
}
