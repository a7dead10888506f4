// Decides whose work is done next: fair queueing by user, then by connection, with the time that the work took as
// cost (start-time fair queueing, Goyal, Vin and Cheng 1996).
//
// F1. Users who always have work waiting get equal time, regardless of the number of their connections. The connections
//     of one user also get equal time.
// F2. A user who has work again after a pause is served soon: only users who have used less time come first. Time that a
//     user did not use is neither saved nor charged.
// F3. Work of one connection is done in the order in which it came.
// F4. A pause does not cancel what was charged before it: a connection whose next request is still on its way waits
//     behind connections that have used less time.

type Work = () => void;
type Piece = { readonly work: Work; readonly dropped: Work | undefined };
/** The work of one connection. spent_ms: the time charged to it; after a pause, at least the time charged to the queue that was served last (F2). */
type Queue = { spent_ms: number; readonly pieces: Piece[] };
/** waiting: the user's queues that have work. now_ms: spent_ms of the queue that was served last, at the moment when it was chosen. */
type User = { spent_ms: number; now_ms: number; readonly queues: Map<number, Queue>; readonly waiting: Set<Queue> };

export type Turns = {
  /** dropped: called in place of work if the connection is gone before its turn */
  add(uid: number, connection: number, work: Work, dropped?: Work): void;
  /** removes a connection that is gone, with its work */
  drop(uid: number, connection: number): void;
  /** Does work for about ms_max milliseconds, but at least one piece. Returns whether more work waits. */
  serve(ms_max: number): boolean;
};

/** The minimum that is charged for a piece of work, because the clock may not move while the work is done. */
const PIECE_MS_MIN = 0.001;

/** clock: returns milliseconds. */
export function createTurns(clock: () => number): Turns {
  /** all users that have connections from which work came */
  const users = new Map<number, User>();
  const waiting = new Set<User>();
  /** spent_ms of the user that was served last, at the moment when it was chosen (F2) */
  let now_ms = 0;

  const turn = (): number => {
    const user = leastSpent(waiting);
    const queue = user && leastSpent(user.waiting);
    if (user === null || queue === null) return 0;
    now_ms = user.spent_ms;
    user.now_ms = queue.spent_ms;
    const piece = queue.pieces.shift();
    if (queue.pieces.length === 0) user.waiting.delete(queue);
    if (user.waiting.size === 0) waiting.delete(user);
    const begun_ms = clock();
    try {
      piece?.work();
    } finally {
      const spent_ms = Math.max(PIECE_MS_MIN, clock() - begun_ms);
      user.spent_ms += spent_ms;
      queue.spent_ms += spent_ms;
    }
    return clock() - begun_ms;
  };

  return {
    add(uid, connection, work, dropped) {
      const user = users.get(uid) ?? { spent_ms: now_ms, now_ms: 0, queues: new Map<number, Queue>(), waiting: new Set<Queue>() };
      users.set(uid, user);
      const queue = user.queues.get(connection) ?? { spent_ms: user.now_ms, pieces: [] };
      user.queues.set(connection, queue);
      if (user.waiting.size === 0) user.spent_ms = Math.max(user.spent_ms, now_ms);
      if (queue.pieces.length === 0) queue.spent_ms = Math.max(queue.spent_ms, user.now_ms);
      queue.pieces.push({ work, dropped });
      user.waiting.add(queue);
      waiting.add(user);
    },
    drop(uid, connection) {
      const user = users.get(uid);
      const queue = user?.queues.get(connection);
      if (user === undefined || queue === undefined) return;
      user.queues.delete(connection);
      user.waiting.delete(queue);
      if (user.waiting.size === 0) waiting.delete(user);
      if (user.queues.size === 0) users.delete(uid);
      for (const { dropped } of queue.pieces) dropped?.();
    },
    serve(ms_max) {
      for (let left_ms = ms_max; waiting.size > 0 && left_ms > 0; ) left_ms -= Math.max(PIECE_MS_MIN, turn());
      return waiting.size > 0;
    },
  };
}

function leastSpent<T extends { readonly spent_ms: number }>(entries: Iterable<T>): T | null {
  let least: T | null = null;
  for (const entry of entries) if (least === null || entry.spent_ms < least.spent_ms) least = entry;
  return least;
}
