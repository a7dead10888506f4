// The server's end of the channels over which moms of other hosts report. It hands out keys, opens datagrams and seals answers.
//
// S1. The work for a datagram is bounded: its length, its header, its channel, its counter and the rate of its channel are
//     checked before anything is decrypted, and at most one text of DATAGRAM_BYTES_MAX is decrypted. Every datagram that
//     does not count is dropped and counted, and nobody gets an answer to it.
// S2. A key is replaced after some time (rotation). The mom gets the next key over its link. The former key is accepted
//     until the mom uses the new one, but not longer than GRACE_MS. A link has at most two channels.
// S3. A channel ends with the link over which its key was handed out.

import { type Allowance, allowance } from "./allowance.ts";
import {
  CHANNEL_DIGITS,
  type ChannelKeys,
  type Cipher,
  DATAGRAM_BYTES_MAX,
  KEY_BYTES,
  openPacket,
  readHeader,
  sealPacket,
} from "./packet.ts";
import { type ReplayWindow, replayWindow } from "./replay-window.ts";

/** Why a datagram was dropped. foreign: not sealed in the channel that it names; late: too old to know whether it was seen; flood: more than a mom may send */
export const DROPS = ["oversized", "unknown", "foreign", "replayed", "late", "flood"] as const;
export type Drop = (typeof DROPS)[number];

/** A report that was opened. answer: seals an answer to it; is_due: the mom needs a new key (S2) */
export type Opened = { readonly link: number; readonly text: string; readonly is_due: boolean; answer(text: string): Uint8Array };

export type StatusDeskOptions = {
  readonly cipher: Cipher;
  /** random bytes */
  readonly random: (count: number) => Uint8Array;
  /** identifies this start of the server */
  readonly boot: string;
  /** time after which a mom gets a new key */
  readonly rotation_ms: number;
};

type Channel = {
  readonly keys: ChannelKeys;
  readonly link: number;
  readonly since_ms: number;
  readonly window: ReplayWindow;
  /** counter of the next answer */
  next: number;
  /** time at which the next key was handed out; null: this key is the newest */
  retired_ms: number | null;
  readonly allowance: Allowance;
};

/** How long a former key is accepted after a new one was handed out. */
const GRACE_MS = 300_000;
/** Number of datagrams that a channel may send at once, and per second. A report is one datagram, plus one for about ten jobs whose usage has changed. */
const BURST = 400;
const RATE_PER_S = 40;

export class StatusDesk {
  readonly #options: StatusDeskOptions;
  readonly #channels = new Map<string, Channel>();
  /** channels of a link: the newest last */
  readonly #of_link = new Map<number, Channel[]>();
  /** number of datagrams that were dropped */
  readonly dropped: { -readonly [K in Drop]: number } = { oversized: 0, unknown: 0, foreign: 0, replayed: 0, late: 0, flood: 0 };
  /** number of datagrams that counted */
  opened = 0;

  constructor(options: StatusDeskOptions) {
    this.#options = options;
  }

  /** Makes the keys of a new channel for the mom of this host, which is connected by this link. now_ms: time of a clock that is never set */
  admit(link: number, host: string, now_ms: number): ChannelKeys {
    const { random, boot } = this.#options;
    const former = this.#of_link.get(link) ?? [];
    // A mom that has not used its last key yet gets another one instead of it.
    for (const channel of former) if (channel.retired_ms === null) channel.retired_ms = now_ms;
    const name = hex(random(CHANNEL_DIGITS / 2));
    const channel: Channel = {
      keys: { channel: name, key: random(KEY_BYTES), host: host.toLowerCase(), boot },
      link,
      since_ms: now_ms,
      window: replayWindow(),
      next: 0,
      retired_ms: null,
      allowance: allowance({ burst: BURST, rate_per_s: RATE_PER_S, now_ms }),
    };
    this.#channels.set(name, channel);
    this.#of_link.set(link, [...former, channel]);
    const latest = former.at(-1);
    this.#forget(link, (other) => other !== channel && other !== latest);
    this.#forget(link, (other) => other.retired_ms !== null && now_ms - other.retired_ms > GRACE_MS);
    return channel.keys;
  }

  /** Ends the channels of a link (S3). */
  dismiss(link: number): void {
    this.#forget(link, () => true);
  }

  /** Opens a datagram; null: it was dropped (S1). */
  open(bytes: Uint8Array, now_ms: number): Opened | null {
    if (bytes.length > DATAGRAM_BYTES_MAX) return this.#drop("oversized");
    const header = readHeader(bytes, "report");
    const channel = header === null ? undefined : this.#channels.get(header.channel);
    if (header === null || channel === undefined) return this.#drop("unknown");
    if (channel.retired_ms !== null && now_ms - channel.retired_ms > GRACE_MS) return this.#drop("late");
    const look = channel.window.look(header.counter);
    if (look !== "new") return this.#drop(look);
    if (!channel.allowance.take(now_ms)) return this.#drop("flood");
    const { cipher, rotation_ms } = this.#options;
    const text = openPacket(cipher, channel.keys, bytes);
    if (text === null) return this.#drop("foreign");
    channel.window.note(header.counter);
    this.opened++;
    // The mom uses this key, so its former keys are no longer needed.
    if (channel.retired_ms === null) this.#forget(channel.link, (other) => other.retired_ms !== null);
    return {
      link: channel.link,
      text,
      is_due: channel.retired_ms === null && now_ms - channel.since_ms >= rotation_ms,
      answer: (answer) => sealPacket(cipher, channel.keys, "heard", channel.next++, answer),
    };
  }

  #drop(why: Drop): null {
    this.dropped[why]++;
    return null;
  }

  #forget(link: number, isOver: (channel: Channel) => boolean): void {
    const channels = this.#of_link.get(link) ?? [];
    for (const channel of channels) if (isOver(channel)) this.#channels.delete(channel.keys.channel);
    const left = channels.filter((channel) => !isOver(channel));
    if (left.length > 0) this.#of_link.set(link, left);
    else this.#of_link.delete(link);
  }
}

/** Returns bytes as hexadecimal digits. */
export const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
