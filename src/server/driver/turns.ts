// Whose work is done next: fair queueing by user, then by connection, by the time that work took (start-time fair queueing, Goyal, Vin and Cheng 1996).
//
// F1. Users who always have work waiting get equal time, however many connections they have; so do the connections of one user.
// F2. A user with work after a pause is served next, except behind users who had less: unused time is neither saved nor charged.
// F3. Work of one connection is done in the order in which it came.

type Work = () => void;
type Piece = { readonly work: Work; readonly dropped: Work | undefined };
type Queue = { readonly key: number; spent_ms: number; readonly pieces: Piece[] };
type User = { readonly key: number; spent_ms: number; readonly queues: Map<number, Queue>; now_ms: number };

export type Turns = {
  /** dropped: called in place of work if the connection is gone before its turn */
  add(uid: number, connection: number, work: Work, dropped?: Work): void;
  /** the connection is gone, and its work with it */
  drop(uid: number, connection: number): void;
  /** Does work for about this time, at least one piece. Returns whether more waits. */
  serve(ms_max: number): boolean;
};

/** Every piece costs at least this much, because a clock may stand still. */
const PIECE_MS_MIN = 0.001;

/** clock: milliseconds. */
export function createTurns(clock: () => number): Turns {
  const users = new Map<number, User>();
  /** time of the user that was served last, when it was chosen (F2) */
  let now_ms = 0;

  const turn = (): number => {
    const user = leastSpent(users);
    if (user === null) return 0;
    const queue = leastSpent(user.queues) as Queue;
    now_ms = user.spent_ms;
    user.now_ms = queue.spent_ms;
    const { work } = queue.pieces.shift() as Piece;
    if (queue.pieces.length === 0) {
      user.queues.delete(queue.key);
      if (user.queues.size === 0) users.delete(user.key);
    }
    const begun_ms = clock();
    try {
      work();
    } finally {
      const spent_ms = Math.max(PIECE_MS_MIN, clock() - begun_ms);
      // Work that follows from the end of this piece (the next request, the next page) has joined meanwhile: it is charged as if it had waited.
      charge(users, user, spent_ms);
      charge(users.get(user.key)?.queues ?? user.queues, queue, spent_ms);
    }
    return clock() - begun_ms;
  };

  return {
    add(uid, connection, work, dropped) {
      let user = users.get(uid);
      if (user === undefined) users.set(uid, (user = { key: uid, spent_ms: now_ms, queues: new Map(), now_ms: 0 }));
      let queue = user.queues.get(connection);
      if (queue === undefined) user.queues.set(connection, (queue = { key: connection, spent_ms: user.now_ms, pieces: [] }));
      queue.pieces.push({ work, dropped });
    },
    drop(uid, connection) {
      const user = users.get(uid);
      const pieces = user?.queues.get(connection)?.pieces ?? [];
      user?.queues.delete(connection);
      if (user?.queues.size === 0) users.delete(uid);
      for (const { dropped } of pieces) dropped?.();
    },
    serve(ms_max) {
      for (let left_ms = ms_max; users.size > 0 && left_ms > 0; ) left_ms -= Math.max(PIECE_MS_MIN, turn());
      return users.size > 0;
    },
  };
}

/** Adds to the time of the entry with that key: the one that was chosen, or the one that replaced it meanwhile. */
function charge<T extends { readonly key: number; spent_ms: number }>(entries: ReadonlyMap<number, T>, chosen: T, spent_ms: number): void {
  const present = entries.get(chosen.key);
  if (present === undefined) return;
  present.spent_ms = Math.max(present.spent_ms, chosen.spent_ms) + spent_ms;
}

function leastSpent<T extends { readonly spent_ms: number }>(entries: ReadonlyMap<number, T>): T | null {
  let least: T | null = null;
  for (const entry of entries.values()) if (least === null || entry.spent_ms < least.spent_ms) least = entry;
  return least;
}
