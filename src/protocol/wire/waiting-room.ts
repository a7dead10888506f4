// Connections that have proved nothing yet. Anybody on this host may make them, and nobody shall keep another's out. Pure.
//
// W1. A newcomer gets in. Where there are too many the oldest of the user who has the most is turned out: others than our own before our own.

export type WaitingRoom<Guest> = {
  /** uid null: nobody knows whose it is */
  enter(guest: Guest, uid: number | null): void;
  /** it has proved itself, or gone */
  leave(guest: Guest): void;
  readonly guests: Iterable<Guest>;
};

/** own: users who are not strangers. turnOut: of a guest who has left already. */
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
