// The mom's end of a group: opens the datagrams of the server, puts commands together, and carries out each command once, in
// its place among the frames of the connection (stream.ts).
//
// S1. The work for a datagram is bounded: length, header, counter and rate are checked before anything is decrypted, and the
//     signature is checked only if a member of the group has sealed the datagram.
// S2. A command whose place is not reached yet waits for the frames before it. A command whose place was passed has been
//     carried out: it is acknowledged again.
// S3. Nothing of a connection outlives it.

import { type Allowance, allowance } from "../datagram/allowance.ts";
import { type Cipher, DATAGRAM_BYTES_MAX, readHeader } from "../datagram/packet.ts";
import { type ReplayWindow, replayWindow } from "../datagram/replay-window.ts";
import { type CommandPart, type GroupKeys, openPart, readPart } from "./command-packet.ts";
import type { GroupOrder } from "./group-desk.ts";
import { isGroupType } from "./stream.ts";

export type GroupSeatOptions = {
  readonly cipher: Cipher;
  /** Whether the signature of these bytes was made with the key to this public key (in base64). */
  readonly verify: (public_key: string, bytes: Uint8Array, signature: Uint8Array) => boolean;
  readonly now_ms: () => number;
  /** carries out a command whose content is not checked yet */
  readonly carryOut: (type: string, data: unknown) => void;
  /** acknowledges everything before a place, within spread_ms */
  readonly acknowledge: (place: number, spread_ms: number) => void;
  /** receives the datagrams of this group from now on; null: of no group */
  readonly listen: (group: { readonly address: string; readonly port: number } | null) => void;
  readonly note: (text: string) => void;
};

type Seat = {
  readonly keys: GroupKeys;
  readonly member: number;
  readonly signer: string;
  readonly spread_ms: number;
  readonly window: ReplayWindow;
  readonly allowance: Allowance;
  /** a datagram without the server's signature was logged */
  is_warned: boolean;
};
/** A command of which parts have come. place null: not known to be for this mom. */
type Partial = { readonly texts: (Uint8Array | undefined)[]; missing: number; place: number | null };

/** Number of datagrams that are decrypted at once, and per second. */
const BURST = 1000;
const RATE_PER_S = 200;
/** Largest numbers of incomplete commands, and of commands that wait for their place. */
const PARTIALS_MAX = 8;
const WAITING_MAX = 256;

export class GroupSeat {
  readonly #options: GroupSeatOptions;
  #seat: Seat | null = null;
  /** the place of the next frame or command */
  #place = 0;
  readonly #partials = new Map<number, Partial>();
  /** complete commands by place (S2) */
  readonly #waiting = new Map<number, { readonly type: string; readonly data: unknown }>();
  /** datagrams that did not count, by reason. forged: sealed by a member, but not signed by the server */
  readonly dropped = { oversized: 0, unknown: 0, replayed: 0, flood: 0, foreign: 0, forged: 0 };

  constructor(options: GroupSeatOptions) {
    this.#options = options;
  }

  /** Called when a connection is made, and when it is lost (S3). */
  reset(): void {
    this.#place = 0;
    this.#waiting.clear();
    this.take({ keys: null });
  }

  /** Takes the key of the group. */
  take({ keys }: GroupOrder): void {
    this.#partials.clear();
    const { listen, now_ms } = this.#options;
    if (keys === null) {
      if (this.#seat !== null) listen(null);
      this.#seat = null;
      return;
    }
    const { channel, key, boot, member, signer, spread_ms, address, port } = keys;
    this.#seat = {
      keys: { channel, key: Uint8Array.from(atob(key), (letter) => letter.charCodeAt(0)), boot },
      member,
      signer,
      spread_ms,
      window: replayWindow(),
      allowance: allowance({ burst: BURST, rate_per_s: RATE_PER_S, now_ms: now_ms() }),
      is_warned: false,
    };
    listen({ address, port });
  }

  /** Handles a frame of the connection that takes a place in the stream, and then the commands that waited for it. */
  counted(handle: () => void): void {
    this.#place++;
    handle();
    this.#advance();
  }

  /** Handles a command that came over the connection. Returns false if its place cannot be right: the connection must be made anew. */
  copy({ place, type, data }: { readonly place: number; readonly type: string; readonly data: unknown }): boolean {
    if (place > this.#place) return false;
    if (place === this.#place) this.counted(() => this.#options.carryOut(type, data));
    return true;
  }

  /** Called with a datagram that has arrived. */
  datagram(bytes: Uint8Array): void {
    const seat = this.#seat;
    const part = seat === null ? null : this.#open(seat, bytes);
    if (seat === null || part === null) return;
    const mine = part.to.find(({ member }) => member === seat.member);
    if (mine !== undefined && mine.place < this.#place) {
      this.#partials.delete(part.command);
      return this.#options.acknowledge(this.#place, seat.spread_ms);
    }
    const place = this.#add(part, mine?.place ?? null);
    if (place !== null && this.#advance()) this.#options.acknowledge(this.#place, seat.spread_ms);
  }

  /** Checks and opens a datagram; null: it does not count (S1). */
  #open(seat: Seat, bytes: Uint8Array): CommandPart | null {
    const { cipher, verify, now_ms, note } = this.#options;
    if (bytes.length > DATAGRAM_BYTES_MAX) return this.#drop("oversized");
    const header = readHeader(bytes, "command");
    if (header?.channel !== seat.keys.channel) return this.#drop("unknown");
    if (seat.window.look(header.counter) !== "new") return this.#drop("replayed");
    if (!seat.allowance.take(now_ms())) return this.#drop("flood");
    const opened = openPart(cipher, seat.keys, bytes);
    if (opened === null) return this.#drop("foreign");
    if (!verify(seat.signer, opened.signed, opened.signature)) {
      if (!seat.is_warned) note("a host of this complex sends multicast commands in the name of the server: they are ignored");
      seat.is_warned = true;
      return this.#drop("forged");
    }
    seat.window.note(header.counter);
    return readPart(opened);
  }

  #drop(why: keyof GroupSeat["dropped"]): null {
    this.dropped[why]++;
    return null;
  }

  /** Adds a part to its command. Returns the place of the command if it is complete and for this mom, otherwise null. */
  #add({ command, part, parts, text }: CommandPart, place: number | null): number | null {
    const partial = this.#partials.get(command) ?? { texts: new Array<Uint8Array | undefined>(parts), missing: parts, place: null };
    if (partial.texts.length !== parts) return null;
    this.#partials.set(command, partial);
    if (place !== null) partial.place = place;
    if (text !== null && partial.texts[part] === undefined) {
      partial.texts[part] = text;
      partial.missing--;
    }
    const [oldest] = this.#partials.keys();
    if (this.#partials.size > PARTIALS_MAX && oldest !== undefined) this.#partials.delete(oldest);
    if (partial.missing > 0 || partial.place === null) return null;
    this.#partials.delete(command);
    const said = contentOf(partial.texts);
    if (said === null || this.#waiting.size >= WAITING_MAX) return null;
    this.#waiting.set(partial.place, said);
    return partial.place;
  }

  /** Carries out the commands whose places are reached. Returns false if there is none. */
  #advance(): boolean {
    const before = this.#place;
    for (let next = this.#waiting.get(this.#place); next !== undefined; next = this.#waiting.get(this.#place)) {
      this.#waiting.delete(this.#place);
      this.#place++;
      this.#options.carryOut(next.type, next.data);
    }
    for (const place of this.#waiting.keys()) if (place < this.#place) this.#waiting.delete(place);
    return this.#place > before;
  }
}

/** Returns the command that the parts contain; null: it is none that may go to a group. */
function contentOf(texts: readonly (Uint8Array | undefined)[]): { readonly type: string; readonly data: unknown } | null {
  const decoder = new TextDecoder();
  const text = texts.map((piece) => decoder.decode(piece, { stream: true })).join("");
  try {
    const said: unknown = JSON.parse(text);
    if (!Array.isArray(said) || said.length !== 2) return null;
    const [type, data] = said as readonly unknown[];
    return typeof type === "string" && isGroupType(type) ? { type, data } : null;
  } catch {
    return null;
  }
}
