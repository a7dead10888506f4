// Links between simulated processes. They behave like unix sockets: in each direction, frames arrive in order, after a delay.
// A frame is lost only if its link breaks or its sender is killed. Each end then notices the loss of the link at a time of its
// own, after it has received the last frame that still arrives.
//
// N1. A frame is transferred as text, so processes share only data that JSON can express.
// N2. While a direction is cut (far/cuts.ts), the frames sent in it wait, because TCP sends them again. The receiving end does
//     not notice a loss of the link until the cut is over. No link is made to a host that is cut off.
// N3. Every frame is checked against the schema for frames from its sender, as in the real shells. A frame that fails the check ends the
//     simulation.

import { type FrameOf, parseFrame } from "#protocol/schema-link.ts";
import { type Cuts, createCuts, type Way } from "./far/cuts.ts";
import type { World } from "./world.ts";

type Direction = "sched-to-server" | "server-to-sched" | "mom-to-server" | "server-to-mom";

/** The handlers of a process for a connection. */
export type End<In extends Direction> = {
  receive(frame: FrameOf<In>): void;
  lost(): void;
};

export type Link<Out extends Direction, In extends Direction> = {
  readonly peer: string;
  /** Sets the handlers of this end. Called once. */
  listen(end: End<In>): void;
  send<T extends FrameOf<Out>["type"]>(type: T, data: Extract<FrameOf<Out>, { type: T }>["data"]): void;
  /** Closes this end. Frames sent before still arrive; then the other end notices the close. */
  close(): void;
  readonly open: boolean;
};

export type NetworkOptions = {
  /** longest delay of a frame */
  readonly delay_ms_max: number;
  /** longest time until an end notices a loss */
  readonly notice_ms_max: number;
};

type Side = {
  readonly direction: Direction;
  end: End<Direction> | null;
  closed: boolean;
  arrives_ms: number;
  in_flight: number;
  /** number of frames that are still delivered after a break */
  allowed: number;
};

/** What fault.ts can do to a link. */
export type Cable = {
  readonly name: string;
  readonly kind: "sched" | "mom";
  breakOff(): void;
  /** Must be called when the process at end a (0) or b (1) was killed. */
  killed(end: 0 | 1): void;
  readonly up: boolean;
};

export type Network = {
  readonly cables: ReadonlySet<Cable>;
  readonly cuts: Cuts;
  /** Makes a link. Between moms and the server, end a connects; end b is the server. ways: names of the ways between the ends (far/cuts.ts) */
  connect<Out extends Direction, In extends Direction>(
    kind: "sched" | "mom",
    name: string,
    out: Out,
    back: In,
    ways?: readonly string[],
  ): { readonly a: Link<Out, In>; readonly b: Link<In, Out>; readonly cable: Cable };
  /** number of frames in transit on intact links */
  readonly in_flight: number;
  /** Returns a random delay in one direction, for communication without a link. */
  delay(): number;
};

export function createNetwork(world: World, options: NetworkOptions): Network {
  const random = world.random.split("network");
  const cables = new Set<Cable>();
  const cuts = createCuts(() => world.now_ms);
  const delay = (): number => (random.chance(0.8) ? random.int(0, Math.min(5, options.delay_ms_max)) : random.int(0, options.delay_ms_max));

  let in_flight = 0;
  return {
    cables,
    cuts,
    delay,
    get in_flight() {
      return in_flight;
    },
    connect(kind, name, out, back, ways = []) {
      // sides[0] transfers frames from a to b
      const sides: [Side, Side] = [newSide(out), newSide(back)];
      let up = true;
      const wayOf = (side: Side): Way => (side === sides[0] ? "up" : "down");
      const cutOf = (side: Side): number => Math.max(0, ...ways.map((way) => cuts.left_ms(way, wayOf(side))));
      const slowOf = (side: Side): number => {
        const slow = ways.flatMap((way) => cuts.slowness(way, wayOf(side)) ?? []);
        return slow.reduce((sum, { delay_ms }) => sum + random.int(0, delay_ms), 0);
      };
      const tellLoss = (side: Side): void => {
        const way_ms = Math.max(side.arrives_ms - world.now_ms, cutOf(side), 0);
        const notice = way_ms + random.int(0, options.notice_ms_max);
        world.after(notice, () => {
          if (side.closed) return;
          side.closed = true;
          side.end?.lost();
        });
      };
      /** Breaks the link. In each direction, the first few frames in transit may still arrive. */
      const down = (cut: readonly [boolean, boolean]): void => {
        if (!up) return;
        up = false;
        cables.delete(cable);
        sides.forEach((side, index) => {
          if (cut[index] === true) side.allowed = random.int(0, side.in_flight);
          tellLoss(side);
        });
      };
      const cable: Cable = {
        name,
        kind,
        get up() {
          return up;
        },
        breakOff: () => down([true, true]),
        killed(end) {
          // The killed end receives nothing more.
          const own = sides[end === 0 ? 1 : 0];
          own.closed = true;
          down(end === 0 ? [true, false] : [false, true]);
        },
      };
      cables.add(cable);
      const link = (sending: Side, hearing: Side): Link<Direction, Direction> => ({
        peer: name,
        listen: (end) => void (hearing.end = end as End<Direction>),
        send(type, data) {
          if (!up || hearing.closed) return;
          const text = JSON.stringify(data);
          sending.in_flight++;
          in_flight++;
          sending.arrives_ms = Math.max(world.now_ms + cutOf(sending) + slowOf(sending) + delay(), sending.arrives_ms);
          world.after(sending.arrives_ms - world.now_ms, () => {
            sending.in_flight--;
            in_flight--;
            if (!up && sending.allowed-- <= 0) return;
            if (sending.closed) return;
            const parsed = parseFrame(sending.direction, type as string, JSON.parse(text));
            if (!parsed.ok) throw new Error(`frame ${name}: ${parsed.text}`);
            world.trace.add(
              sending.direction,
              type as string,
              `${name} ${text.length > 1500 ? `${text.slice(0, 1500)} ... (${text.length})` : text}`,
            );
            sending.end?.receive(parsed.frame as FrameOf<Direction>);
          });
        },
        close() {
          hearing.closed = true;
          down([false, false]);
        },
        get open() {
          return up && !hearing.closed;
        },
      });
      return { a: link(sides[0], sides[1]), b: link(sides[1], sides[0]), cable } as never;
    },
  };
}

/** Returns the name of the way between a host and one of two servers. */
export const wayTo = (host: string, seat: number): string => `${host}@${seat}`;

/** Returns whether no connection over these ways can be made now: a connection needs both directions of each way, and one of them is cut. */
export const isCutOff = ({ cuts }: Pick<Network, "cuts">, ways: readonly string[]): boolean =>
  ways.some((way) => cuts.left_ms(way, "up") > 0 || cuts.left_ms(way, "down") > 0);

const newSide = (direction: Direction): Side => ({
  direction,
  end: null,
  closed: false,
  arrives_ms: 0,
  in_flight: 0,
  allowed: Number.POSITIVE_INFINITY,
});
