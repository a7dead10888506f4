// What a daemon that follows the leader of two servers does when a server names the leader. Pure.
//
// F1. A follower goes over to a server that names a newer leader, even if its present connection seems to work: the server of this connection may have been stopped,
//     or cut off from its database, and not know it.
// F2. A follower obeys no server whose leader is older than the one that it knows (leader.ts L1).
// F3. Before a follower obeys a leader of another store, it asks the other server (leader.ts L2). If the other server does not name the known store either, the
//     complex was moved to another database.
// F4. A scheduler on another host is dialled by servers and cannot ask. It has looked for the known store in vain when no server
//     has had its link for some time: a leader of that store would have dialled it (src/sched/shell/leaders.ts).

import { compareLeaders, type Leader } from "./leader.ts";

/** known: the newest leader that the follower has heard of; null: none. sought: it has asked the other server for the known store in vain (F3). */
export type Following = { readonly known: Leader | null; readonly sought: boolean };

export const followNobody = (known: Leader | null): Following => ({ known, sought: false });

/** obey: the server is the leader. leave: it is not. seek: the other server must be asked first (F3). */
export type Judgement = "obey" | "leave" | "seek";

/** Judges the server that has welcomed the follower. said: its leader; null: it has named none. */
export function judgeWelcome(
  { known, sought }: Following,
  said: Leader | null,
): { readonly judgement: Judgement; readonly next: Following } {
  switch (compareLeaders(known, said)) {
    case "newer":
    case "same":
      return { judgement: "obey", next: followNobody(said) };
    case "older":
      return { judgement: "leave", next: { known, sought } };
    case "foreign":
      return sought ? { judgement: "obey", next: followNobody(said) } : { judgement: "seek", next: { known, sought } };
  }
}

/**
 * Judges the answer of the other server, to which the follower is not connected. said: its leader; undefined: it has not
 * answered. is_welcomed: whether the follower obeys the server of its present connection. goes: the follower connects to the other server
 */
export function judgeOther(
  { known }: Following,
  said: Leader | null | undefined,
  is_welcomed: boolean,
): { readonly goes: boolean; readonly next: Following } {
  if (said === undefined) return { goes: false, next: { known, sought: true } };
  const found = compareLeaders(known, said);
  if (found === "newer") return { goes: true, next: followNobody(said) };
  if (found === "same") return { goes: !is_welcomed, next: { known, sought: false } };
  return { goes: false, next: { known, sought: true } };
}
