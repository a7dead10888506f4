// Datagrams between moms and the server. Whether one is lost, doubled or delayed is independent of the others, and a later
// one may arrive first. In a direction that is cut, all are lost.

import type { Prng } from "#support/prng.ts";
import type { Cuts, Way } from "./cuts.ts";

export type DatagramOptions = {
  /** loss, doubled: the shares of datagrams that are lost, and that arrive twice */
  readonly loss: number;
  readonly doubled: number;
  readonly delay_ms_max: number;
};

/** Called with a datagram that has arrived. */
export type Hears = (bytes: Uint8Array) => void;

export type Datagrams = {
  /** Connects a mom, which then receives datagrams. seat: the server to which it sends them. Returns its end of the connection. */
  mom(host: string, hears: Hears, seat?: () => number): { send(bytes: Uint8Array): void; close(): void };
  /** Lets a mom receive the datagrams of the server's group from now on. hears null: the mom receives them no longer. */
  listen(host: string, hears: Hears | null): void;
  /** Sends a datagram of the server to all moms that listen. Each gets it, or loses it, independently of the others. */
  toGroup(bytes: Uint8Array, seat?: number): void;
  /** Connects a server in place of an earlier one at the same seat. hears: called with each datagram that arrives; answer sends a datagram to its mom */
  serve(hears: (bytes: Uint8Array, answer: Hears) => void, seat?: number): void;
  /** number of datagrams sent, of those that did not arrive, and of those that went to the group */
  readonly counts: { readonly sent: number; readonly lost: number; readonly to_group: number };
};

type Surroundings = { readonly random: Prng; after(delay_ms: number, act: () => void): void };

export function createDatagrams({ random: all, after }: Surroundings, cuts: Cuts, options: DatagramOptions): Datagrams {
  const random = all.split("datagrams");
  const moms = new Map<string, Hears>();
  const group = new Map<string, Hears>();
  const counts = { sent: 0, lost: 0, to_group: 0 };
  const servers = new Map<number, (bytes: Uint8Array, answer: Hears) => void>();

  const carry = (host: string, seat: number, way: Way, bytes: Uint8Array, arrive: Hears): void => {
    counts.sent++;
    const slowness = cuts.slowness(host, way);
    const is_cut = cuts.left_ms(host, way) > 0 || cuts.left_ms(`${host}@${seat}`, way) > 0;
    if (random.chance(options.loss) || is_cut || (slowness !== null && random.chance(slowness.loss))) {
      counts.lost++;
      return;
    }
    const copies = random.chance(options.doubled) ? 2 : 1;
    for (let copy = 0; copy < copies; copy++) {
      const whole = bytes.slice();
      after(random.int(0, options.delay_ms_max), () => arrive(whole));
    }
  };

  return {
    counts,
    mom(host, hears, seatOf = () => 0) {
      moms.set(host, hears);
      const answerOf = (seat: number): Hears => {
        return (bytes) => carry(host, seat, "down", bytes, (arrived) => moms.get(host)?.(arrived));
      };
      return {
        send(bytes) {
          const seat = seatOf();
          carry(host, seat, "up", bytes, (arrived) => servers.get(seat)?.(arrived, answerOf(seat)));
        },
        close: () => {
          if (moms.get(host) === hears) moms.delete(host);
        },
      };
    },
    listen(host, hears) {
      if (hears === null) group.delete(host);
      else group.set(host, hears);
    },
    toGroup(bytes, seat = 0) {
      counts.to_group++;
      for (const host of [...group.keys()]) carry(host, seat, "down", bytes, (arrived) => group.get(host)?.(arrived));
    },
    serve(hears, seat = 0) {
      servers.set(seat, hears);
    },
  };
}
