// Connections (guests) whose peers have not proved their right to connect yet. Every user of this host, or every address of the
// network, can open such connections, and no user may keep out the connections of another. Pure.
//
// W1. A new connection is always admitted. If there are then too many, the oldest connection of the user who has most is turned
//     out. Connections of own users are turned out only if there are no others.

/** The user or host behind a connection: a uid of this host, or an address; null: unknown. */
export type Owner = number | string | null;

export type WaitingRoom<Guest> = {
  /** Admits a connection. */
  enter(guest: Guest, owner: Owner): void;
  /** Called when the connection has proved its right, or has ended. */
  leave(guest: Guest): void;
  readonly guests: Iterable<Guest>;
};

/** Creates a waiting room. own: users whose connections are preferred. turnOut: called for a guest that has just been removed. */
export function waitingRoom<Guest>(options: {
  readonly max: number;
  readonly own: readonly (number | undefined)[];
  readonly turnOut: (guest: Guest) => void;
}): WaitingRoom<Guest> {
  const { max, own, turnOut } = options;
  /** the guests in the order of their arrival, oldest first */
  const present = new Map<Guest, Owner>();
  const isOwn = (owner: Owner): boolean => typeof owner === "number" && own.includes(owner);
  const oldestOfMost = (): Guest => {
    const counts = new Map<Owner, number>();
    for (const uid of present.values()) counts.set(uid, (counts.get(uid) ?? 0) + 1);
    const users = [...counts].sort(([a, many], [b, others]) => Number(isOwn(a)) - Number(isOwn(b)) || others - many);
    const [most] = users[0] as [Owner, number];
    const [oldest] = [...present].find(([, uid]) => uid === most) as [Guest, Owner];
    return oldest;
  };
  return {
    enter(guest, owner) {
      present.set(guest, owner);
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
