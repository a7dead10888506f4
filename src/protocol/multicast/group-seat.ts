// The mom's end of a group: opens the datagrams of the server, puts commands together, and carries out each command once, in
// its position among the frames of the connection (stream.ts).
//
// S1. The work for a datagram is bounded: length, header, counter and rate are checked before anything is decrypted, and the
//     signature is checked only if a member of the group has sealed the datagram.
// S2. A command whose position is not reached yet waits for the frames before it. A command whose position was passed has been
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
  /** acknowledges everything before a position, within spread_ms */
  readonly acknowledge: (position: number, spread_ms: number) => void;
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
/** A command of which parts have come. position null: no part has named this mom as an addressee yet. */
type Partial = { readonly texts: (Uint8Array | undefined)[]; missing: number; position: number | null };

/** Number of datagrams that are decrypted at once, and per second. */
const BURST = 1000;
const RATE_PER_S = 200;
/** Largest numbers of incomplete commands, and of commands that wait for their position. */
const PARTIALS_MAX = 8;
const WAITING_MAX = 256;

export class GroupSeat {
  readonly #options: GroupSeatOptions;
  #seat: Seat | null = null;
  /** the position of the next frame or command */
  #position = 0;
  readonly #partials = new Map<number, Partial>();
  /** complete commands by position (S2) */
  readonly #waiting = new Map<number, { readonly type: string; readonly data: unknown }>();
  /** datagrams that did not count, by reason. forged: sealed by a member, but not signed by the server */
  readonly dropped = { oversized: 0, unknown: 0, replayed: 0, flood: 0, foreign: 0, forged: 0 };

  constructor(options: GroupSeatOptions) {
    this.#options = options;
  }

  /** Called when a connection is made, and when it is lost (S3). */
  reset(): void {
    this.#position = 0;
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

  /** Handles a frame of the connection that takes a position in the stream, and then the commands that waited for it. */
  counted(handle: () => void): void {
    this.#position++;
    handle();
    this.#advance();
  }

  /** Handles a command that came over the connection. Returns false if its position cannot be right: the connection must be made anew. */
  copy({ position, type, data }: { readonly position: number; readonly type: string; readonly data: unknown }): boolean {
    if (position > this.#position) return false;
    if (position === this.#position) this.counted(() => this.#options.carryOut(type, data));
    return true;
  }

  /** Called with a datagram that has arrived. */
  datagram(bytes: Uint8Array): void {
    const seat = this.#seat;
    const part = seat === null ? null : this.#open(seat, bytes);
    if (seat === null || part === null) return;
    const mine = part.to.find(({ member }) => member === seat.member);
    if (mine !== undefined && mine.position < this.#position) {
      this.#partials.delete(part.command);
      return this.#options.acknowledge(this.#position, seat.spread_ms);
    }
    const position = this.#add(part, mine?.position ?? null);
    if (position !== null && this.#advance()) this.#options.acknowledge(this.#position, seat.spread_ms);
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

  /** Adds a part to its command. Returns the position of the command if it is complete and for this mom, otherwise null. */
  #add({ command, part, parts, text }: CommandPart, position: number | null): number | null {
    const partial = this.#partials.get(command) ?? { texts: new Array<Uint8Array | undefined>(parts), missing: parts, position: null };
    if (partial.texts.length !== parts) return null;
    this.#partials.set(command, partial);
    if (position !== null) partial.position = position;
    if (text !== null && partial.texts[part] === undefined) {
      partial.texts[part] = text;
      partial.missing--;
    }
    const [oldest] = this.#partials.keys();
    if (this.#partials.size > PARTIALS_MAX && oldest !== undefined) this.#partials.delete(oldest);
    if (partial.missing > 0 || partial.position === null) return null;
    this.#partials.delete(command);
    const said = contentOf(partial.texts);
    if (said === null || this.#waiting.size >= WAITING_MAX) return null;
    this.#waiting.set(partial.position, said);
    return partial.position;
  }

  /** Carries out the commands whose positions are reached. Returns false if there is none. */
  #advance(): boolean {
    const before = this.#position;
    for (let next = this.#waiting.get(this.#position); next !== undefined; next = this.#waiting.get(this.#position)) {
      this.#waiting.delete(this.#position);
      this.#position++;
      this.#options.carryOut(next.type, next.data);
    }
    for (const position of this.#waiting.keys()) if (position < this.#position) this.#waiting.delete(position);
    return this.#position > before;
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
