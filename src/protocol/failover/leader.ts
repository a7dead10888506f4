// The leader of a complex with two servers: which of the two is active, and since which take-over. Pure.
//
// The database of the two servers counts take-overs: each begins a new *term* (src/store/postgres/leadership.ts). A leader is
// therefore the number of the database's store and the term in it, written `STORE/TERM`. A complex with a SQLite store has one
// server and no leader; null stands for it.
//
// L1. A follower that knows a leader never follows an older leader of the same store: the older one was replaced, and may not know it yet.
// L2. Terms of different stores cannot be compared. A leader of another store is not followed in place of the known one, unless
//     the follower has looked for the known store and has not found it (an administrator has moved the complex to that store).

/** store: a number that each database gets at random when it is made. term: begins with 1. */
export type Leader = { readonly store: number; readonly term: number };

/**
 * What a follower finds when it compares what a server said with the leader that it knows. newer: also if no leader was known. foreign: a leader of another
 * store, or no leader although one is known.
 */
export type Comparison = "newer" | "same" | "older" | "foreign";

const LEADER = /^([1-9][0-9]{0,14})\/(0|[1-9][0-9]{0,14})$/;

/** The longest text of a leader has so many characters. */
export const LEADER_CHARS_MAX = 31;

/** Reads the text of a leader. Returns null if the text names no leader. */
export function parseLeader(text: string): Leader | null {
  const [, store, term] = LEADER.exec(text) ?? [];
  return store === undefined || term === undefined ? null : { store: Number(store), term: Number(term) };
}

export const leaderText = ({ store, term }: Leader): string => `${store}/${term}`;

/** Compares what a server said with the leader that a follower knows. null: no leader is known, or the server has none. */
export function compareLeaders(known: Leader | null, said: Leader | null): Comparison {
  if (known === null) return said === null ? "same" : "newer";
  if (said === null || said.store !== known.store) return "foreign";
  if (said.term === known.term) return "same";
  return said.term > known.term ? "newer" : "older";
}

/** Whether a follower of the leader `known` goes over to the leader `said` without a question to the other server. */
export const isNewer = (known: Leader | null, said: Leader | null): boolean => compareLeaders(known, said) === "newer";
