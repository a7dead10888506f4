// A server and moms of a multicast group, with a network that the test moves.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { MulticastSettings } from "#model/tables/multicast-attributes.ts";
import { GroupDesk, type GroupOrder } from "#protocol/multicast/group-desk.ts";
import { GroupSeat } from "#protocol/multicast/group-seat.ts";
import { isCounted } from "#protocol/multicast/stream.ts";
import { aesGcm } from "#protocol/udp/aes-gcm.ts";
import { makeSigner, verifier } from "#protocol/udp/ed25519.ts";

export const SETTINGS: MulticastSettings = {
  address: "239.192.150.1",
  port: 15_009,
  interface: null,
  ttl: 1,
  repeats: 2,
  interval_ms: 200,
  moms_min: 1,
};
export const ROTATION_MS = 3_600_000;
export const MINUTE_MS = 60_000;

/** A clock that the test moves. */
function handClock() {
  let now_ms = 0;
  let timers: { readonly at_ms: number; readonly work: () => void }[] = [];
  return {
    steady_ms: () => now_ms,
    after(delay_ms: number, work: () => void) {
      const timer = { at_ms: now_ms + delay_ms, work };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    pass(ms: number) {
      const end_ms = now_ms + ms;
      for (;;) {
        const next = timers.filter(({ at_ms }) => at_ms <= end_ms).sort((a, b) => a.at_ms - b.at_ms)[0];
        if (next === undefined) break;
        timers = timers.filter((other) => other !== next);
        now_ms = next.at_ms;
        next.work();
      }
      now_ms = end_ms;
    },
  };
}

export type Mom = {
  readonly link: number;
  readonly seat: GroupSeat;
  /** frames and commands in the order in which the mom handled them */
  readonly done: string[];
  /** frames on their way over the connection */
  readonly wire: { readonly type: string; readonly data: unknown }[];
  /** the last key of the group that the mom got */
  order: GroupOrder | null;
  /** whether datagrams to this mom are lost, and whether its acknowledgements are */
  is_deaf: boolean;
  is_mute: boolean;
};

export type Bed = {
  readonly clock: ReturnType<typeof handClock>;
  readonly desk: GroupDesk;
  readonly moms: Mom[];
  readonly links: readonly number[];
  readonly notes: string[];
  /** datagrams that were sent and not delivered yet */
  readonly sent: Uint8Array[];
  join(link: number): Mom;
  /** sends a frame over the connection, as the gate does */
  frame(mom: Mom, job: string): void;
  /** Returns the connections over which the command must be sent. */
  command(job: string, links?: readonly number[]): readonly number[];
  /** delivers what is on its way over the connection */
  read(mom: Mom, most?: number): void;
  readAll(): void;
  multicast(bytes?: readonly Uint8Array[]): void;
};

export function bed(count: number, settings: MulticastSettings | null = SETTINGS): Bed {
  const clock = handClock();
  const sent: Uint8Array[] = [];
  const notes: string[] = [];
  const desk = new GroupDesk({
    cipher: aesGcm,
    random: randomBytes,
    boot: "boot1",
    signer: makeSigner,
    clock,
    open: () => ({ send: (bytes) => void sent.push(bytes), close: () => undefined }),
    rotation_ms: ROTATION_MS,
    note: (text) => void notes.push(text),
  });
  desk.configure(settings);
  const moms: Mom[] = [];
  const join = (link: number): Mom => {
    const done: string[] = [];
    const verify = verifier();
    const seat = new GroupSeat({
      cipher: aesGcm,
      verify,
      now_ms: clock.steady_ms,
      carryOut: (_type, data) => void done.push(String((data as { readonly job: unknown }).job)),
      acknowledge: (position) => {
        if (!mom.is_mute) desk.heard(link, position);
      },
      listen: () => undefined,
      note: (text) => void notes.push(text),
    });
    const mom: Mom = { link, seat, done, wire: [], order: null, is_deaf: false, is_mute: false };
    desk.admit(link, { host: `n${link}`, address: "", send: (type, data) => void mom.wire.push({ type, data }) });
    moms.push(mom);
    return mom;
  };
  for (let link = 1; link <= count; link++) join(link);
  const made: Bed = {
    clock,
    desk,
    moms,
    notes,
    sent,
    join,
    links: moms.map(({ link }) => link),
    frame(mom: Mom, job: string) {
      desk.passes(mom.link, "mom-start");
      mom.wire.push({ type: "mom-start", data: { job } });
    },
    command: (job: string, links = made.links): readonly number[] => desk.command(links, "mom-discard", { job }),
    read(mom: Mom, most = Number.POSITIVE_INFINITY) {
      for (const { type, data } of mom.wire.splice(0, most)) {
        if (type === "mom-group") {
          mom.order = data as GroupOrder;
          mom.seat.take(mom.order);
        } else if (type === "mom-command") assert.ok(mom.seat.copy(data as Parameters<GroupSeat["copy"]>[0]));
        else {
          assert.ok(isCounted(type));
          mom.seat.counted(() => void mom.done.push(String((data as { readonly job: unknown }).job)));
        }
      }
    },
    multicast(bytes = sent.splice(0)) {
      for (const one of bytes) for (const mom of moms) if (!mom.is_deaf) mom.seat.datagram(one);
    },
    readAll() {
      for (const mom of moms) made.read(mom);
    },
  };
  made.readAll();
  return made;
}
