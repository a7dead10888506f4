// Connections that have not proved themselves yet. Every user of this host can open such connections, and none may keep another
// user's out. Pure.
//
// W1. A newcomer is always admitted. If there are too many connections, the oldest one of the user with the most is turned out;
//     connections of other users go before our own.

export type WaitingRoom<Guest> = {
  /** uid null: the owner is unknown */
  enter(guest: Guest, uid: number | null): void;
  /** the connection has proved itself, or has ended */
  leave(guest: Guest): void;
  readonly guests: Iterable<Guest>;
};

/** own: users who are not strangers. turnOut: called for a guest who is already removed. */
export function waitingRoom<Guest>(options: {
  readonly max: number;
  readonly own: readonly (number | undefined)[];
  readonly turnOut: (guest: Guest) => void;
}): WaitingRoom<Guest> {
  const { max, own, turnOut } = options;
  /** oldest first */
  const present = new Map<Guest, number | null>();
  const isOwn = (uid: number | null): boolean => uid !== null && own.includes(uid);
  const oldestOfMost = (): Guest => {
    const counts = new Map<number | null, number>();
    for (const uid of present.values()) counts.set(uid, (counts.get(uid) ?? 0) + 1);
    const users = [...counts].sort(([a, many], [b, others]) => Number(isOwn(a)) - Number(isOwn(b)) || others - many);
    const [most] = users[0] as [number | null, number];
    const [oldest] = [...present].find(([, uid]) => uid === most) as [Guest, number | null];
    return oldest;
  };
  return {
    enter(guest, uid) {
      present.set(guest, uid);
      if (present.size <= max) return;
      const out = oldestOfMost();
      present.delete(out);
      turnOut(out);
    },
    leave: (guest) => void present.delete(guest),
    get guests() {
      return present.keys();
    },
  };
}
