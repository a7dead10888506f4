// The server's end of a group of moms: sends commands to many moms at once, and makes sure that each mom gets each command.
//
// G1. Every command has a position in the stream to each of its moms (stream.ts). Before another frame goes to a mom over its connection, the commands that the mom
//     has not acknowledged go over this connection. So the connection alone carries the whole stream in its order, and the mom recognizes by its position a command
//     that it has got already.
// G2. A command that a mom does not acknowledge is repeated, and goes over the mom's connection in the end.
// G3. After a member has left, nothing is sealed with a key that it knows. Until the others have the next key, commands go
//     over connections. Members that leave one after the other cause one new key, not one each.
// G4. A member counts as deaf when it got several successive commands only over its connection: it gets further commands there at once. From time to time a command
//     goes to it in both ways, to find out whether it hears the group again.
// G5. Numbers of members are not used twice with the same key.

import type { MulticastSettings } from "#model/tables/multicast-attributes.ts";
import { CHANNEL_DIGITS, type Cipher, KEY_BYTES } from "../datagram/packet.ts";
import { hex } from "../datagram/status-desk.ts";
import { type Addressee, COMMAND_BYTES_MAX, type GroupKeys, MEMBERS_MAX, POSITIONS, partsOf, sealPart } from "./command-packet.ts";
import { type GroupType, isCounted } from "./stream.ts";

/** What a mom must know of the group. keys null: there is no group now. key: base64; signer: the public key of the server in base64 */
export type GroupOrder = {
  readonly keys: {
    readonly channel: string;
    readonly key: string;
    readonly boot: string;
    readonly member: number;
    readonly signer: string;
    readonly address: string;
    readonly port: number;
    /** acknowledgements are spread over this time, so that they do not arrive all at once */
    readonly spread_ms: number;
  } | null;
};
type Send = (type: "mom-group" | "mom-command", data: unknown) => void;
/** Sends datagrams to the group. */
export type GroupSocket = { send(bytes: Uint8Array): void; close(): void };

export type GroupDeskOptions = {
  readonly cipher: Cipher;
  readonly random: (count: number) => Uint8Array;
  /** identifies this start of the server */
  readonly boot: string;
  /** makes the server's signatures; public_key in base64. Called when the first group is made */
  readonly signer: () => { readonly public_key: string; sign(bytes: Uint8Array): Uint8Array };
  readonly clock: { steady_ms(): number; after(delay_ms: number, work: () => void): () => void };
  /** opens a socket to the group. near: address of a mom */
  readonly open: (settings: MulticastSettings, near: string) => GroupSocket;
  readonly rotation_ms: number;
  readonly note: (text: string) => void;
};

/** number: in the group; null: the mom has no key. position: of the next frame or command */
type Member = {
  readonly host: string;
  readonly address: string;
  readonly send: Send;
  number: number | null;
  position: number;
  /** commands that are not acknowledged, in the order of their positions */
  unheard: { readonly command: Command; readonly position: number }[];
  /** successive commands that were not acknowledged, and the time at which a deaf member is tried again (G4) */
  misses: number;
  retry_ms: number;
};
type Command = {
  readonly number: number;
  readonly type: GroupType;
  readonly data: unknown;
  readonly text: Uint8Array;
  /** members that have not acknowledged it, with its position in the stream of each */
  readonly waiting: Map<Member, number>;
  repeats_left: number;
  cancel: () => void;
};

/**
 * A new key is made LEAVE_MS after a member has left, so that it serves for all members that leave meanwhile (G3), but not before the present key is KEY_MS_MIN
 * old: a host that connects again and again must not cause frames to all members each time.
 */
const LEAVE_MS = 1000;
const KEY_MS_MIN = 10_000;
/** Number of successive unacknowledged commands after which a member counts as deaf, and after what time it is tried again (G4). */
const MISSES_MAX = 3;
const RETRY_MS = 60_000;
/** Largest number of unacknowledged commands of one member. Further commands go over its connection. */
const UNHEARD_MAX = 64;
/** Acknowledgements are spread over this time multiplied by the number of members, but over no more than half of the interval of repeats. */
const SPREAD_MS_EACH = 0.2;
/** Number of hosts that one line of the log names. */
const HOSTS_NAMED = 10;

export class GroupDesk {
  readonly #options: GroupDeskOptions;
  readonly #members = new Map<number, Member>();
  #settings: MulticastSettings | null = null;
  #signer: ReturnType<GroupDeskOptions["signer"]> | null = null;
  #socket: GroupSocket | null = null;
  /** counter: of the next datagram; next: number of the next member; is_stale: a member that knows the key has left (G3) */
  #key: { readonly keys: GroupKeys; readonly made_ms: number; counter: number; next: number; is_stale: boolean } | null = null;
  #cancelRotation: () => void = () => undefined;
  #commands = 0;
  /** commands and datagrams sent to the group, the bytes of the datagrams, and commands that had to go over a connection */
  readonly counts = { commands: 0, datagrams: 0, bytes: 0, copies: 0 };

  constructor(options: GroupDeskOptions) {
    this.#options = options;
  }

  /** Takes the settings. null: commands go over connections. */
  configure(settings: MulticastSettings | null): void {
    if (JSON.stringify(settings) === JSON.stringify(this.#settings)) return;
    this.#settings = settings;
    this.#socket?.close();
    this.#socket = null;
    for (const member of this.#members.values()) this.#flush(member);
    if (settings !== null) return this.#rotate();
    this.#cancelRotation();
    this.#key = null;
    for (const member of this.#members.values()) {
      if (member.number !== null) member.send("mom-group", { keys: null } satisfies GroupOrder);
      member.number = null;
    }
  }

  /** Admits the mom of a connection that has just been made. send: sends a frame over this connection */
  admit(link: number, mom: { readonly host: string; readonly address: string; readonly send: Send }): void {
    const member: Member = { ...mom, number: null, position: 0, unheard: [], misses: 0, retry_ms: 0 };
    this.#members.set(link, member);
    if (this.#settings === null) return;
    if (this.#key === null) this.#rotate();
    else if (!this.#key.is_stale) this.#hand(member);
  }

  /** Called when a connection is lost. */
  dismiss(link: number): void {
    const member = this.#members.get(link);
    if (member === undefined) return;
    this.#members.delete(link);
    for (const { command } of member.unheard) settle(command, member);
    if (this.#key === null || member.number === null || this.#key.is_stale) return;
    this.#key.is_stale = true;
    this.#rotateAfter(Math.max(LEAVE_MS, this.#key.made_ms + KEY_MS_MIN - this.#options.clock.steady_ms()));
  }

  /** Called before a frame is sent over a connection (G1). */
  passes(link: number, type: string): void {
    const member = this.#members.get(link);
    if (member === undefined || !isCounted(type)) return;
    this.#flush(member);
    member.position++;
  }

  /**
   * Sends a command to the moms of these connections. Returns those connections over which the caller must send it instead: all of them if the command cannot
   * go to the group.
   */
  command(links: readonly number[], type: GroupType, data: unknown): readonly number[] {
    const { clock } = this.#options;
    const now_ms = clock.steady_ms();
    if (this.#settings === null || this.#key === null || this.#key.is_stale) return links;
    const able = links.filter((link) => this.#isAble(link, now_ms));
    if (able.length < this.#settings.moms_min) return links;
    const text = new TextEncoder().encode(JSON.stringify([type, data]));
    if (text.length > COMMAND_BYTES_MAX) return links;
    const command: Command = {
      number: this.#commands++ % POSITIONS,
      type,
      data,
      text,
      waiting: new Map(),
      repeats_left: this.#settings.repeats,
      cancel: () => undefined,
    };
    const members = able.flatMap((link) => this.#members.get(link) ?? []);
    for (const member of members) {
      const position = member.position++;
      command.waiting.set(member, position);
      member.unheard.push({ command, position });
    }
    this.counts.commands++;
    this.#transmit(command);
    this.#watch(command, this.#settings.interval_ms);
    for (const member of members) if (member.misses >= MISSES_MAX) this.#retry(member, now_ms);
    const reached = new Set(able);
    return links.filter((link) => !reached.has(link));
  }

  /** Called when a mom has acknowledged everything before a position. */
  heard(link: number, position: number): void {
    const member = this.#members.get(link);
    if (member === undefined || position > member.position) return;
    if (member.misses >= MISSES_MAX) this.#options.note(`multicast: ${member.host} gets multicast commands again`);
    member.misses = 0;
    const left = member.unheard.findIndex((sent) => sent.position >= position);
    const heard = left < 0 ? member.unheard.splice(0) : member.unheard.splice(0, left);
    for (const { command } of heard) settle(command, member);
  }

  /** Whether a mom hears the group; null: there is no such mom or no group. */
  hears(link: number): boolean | null {
    const member = this.#members.get(link);
    return member === undefined || member.number === null ? null : member.misses < MISSES_MAX;
  }

  /** Whether a mom has not acknowledged a command yet. */
  get is_waiting(): boolean {
    return [...this.#members.values()].some(({ unheard }) => unheard.length > 0);
  }

  /** Called when the server ends: nothing is repeated any more, so what is not acknowledged goes over connections at once. */
  close(): void {
    this.#settings = null;
    this.#cancelRotation();
    for (const member of this.#members.values()) this.#flush(member);
    this.#socket?.close();
    this.#socket = null;
  }

  #isAble(link: number, now_ms: number): boolean {
    const member = this.#members.get(link);
    if (member === undefined || member.number === null || member.unheard.length >= UNHEARD_MAX || member.position >= POSITIONS - 1)
      return false;
    return member.misses < MISSES_MAX || now_ms >= member.retry_ms;
  }

  /** Tries a deaf member again: the present command goes to it in both ways (G4). */
  #retry(member: Member, now_ms: number): void {
    member.retry_ms = now_ms + RETRY_MS;
    this.#flush(member);
  }

  #transmit(command: Command): void {
    const key = this.#key;
    if (key === null) return;
    const { cipher } = this.#options;
    const to: Addressee[] = [];
    for (const [{ number }, position] of command.waiting) if (number !== null) to.push({ member: number, position });
    for (const part of partsOf(command.number, command.text, to)) {
      const bytes = sealPart(cipher, this.#sign, key.keys, key.counter++, part);
      this.counts.datagrams++;
      this.counts.bytes += bytes.length;
      this.#socket?.send(bytes);
    }
  }

  readonly #sign = (bytes: Uint8Array): Uint8Array => this.#signed().sign(bytes);

  #signed(): ReturnType<GroupDeskOptions["signer"]> {
    this.#signer ??= this.#options.signer();
    return this.#signer;
  }

  #watch(command: Command, interval_ms: number): void {
    command.cancel = this.#options.clock.after(interval_ms, () => {
      if (command.waiting.size === 0) return;
      if (command.repeats_left > 0 && this.#key?.is_stale === false) {
        command.repeats_left--;
        this.#transmit(command);
        return this.#watch(command, interval_ms);
      }
      this.#giveUp(command);
    });
  }

  /** Sends a command over the connections of the moms that have not acknowledged it (G2). */
  #giveUp(command: Command): void {
    const members = [...command.waiting.keys()];
    const deaf: string[] = [];
    for (const member of members) {
      member.misses++;
      if (member.misses === MISSES_MAX) {
        member.retry_ms = this.#options.clock.steady_ms() + RETRY_MS;
        deaf.push(member.host);
      }
      this.#flush(member);
    }
    if (deaf.length === 0) return;
    const more = deaf.length > HOSTS_NAMED ? ` and ${deaf.length - HOSTS_NAMED} more` : "";
    const names = deaf.slice(0, HOSTS_NAMED).join(", ");
    this.#options.note(`multicast: no acknowledgement from ${names}${more}: commands go over these connections`);
  }

  /** Sends the unacknowledged commands of a member over its connection (G1). */
  #flush(member: Member): void {
    for (const { command, position } of member.unheard.splice(0)) {
      settle(command, member);
      this.counts.copies++;
      member.send("mom-command", { position, type: command.type, data: command.data });
    }
  }

  // --- the key

  #rotateAfter(delay_ms: number): void {
    this.#cancelRotation();
    this.#cancelRotation = this.#options.clock.after(delay_ms, () => this.#rotate());
  }

  /** Makes a new key and hands it to all members. */
  #rotate(): void {
    this.#cancelRotation();
    this.#key = null;
    const first = this.#members.values().next().value;
    if (first === undefined || this.#settings === null) return;
    const { random, boot, rotation_ms, open, clock } = this.#options;
    this.#socket ??= open(this.#settings, first.address);
    const keys = { channel: hex(random(CHANNEL_DIGITS / 2)), key: random(KEY_BYTES), boot };
    this.#key = { keys, made_ms: clock.steady_ms(), counter: 0, next: 0, is_stale: false };
    for (const member of this.#members.values()) this.#hand(member);
    this.#rotateAfter(rotation_ms);
  }

  #hand(member: Member): void {
    member.number = null;
    if (this.#settings === null || this.#key === null || this.#key.next >= MEMBERS_MAX) return;
    const { address, port, interval_ms } = this.#settings;
    const { channel, key, boot } = this.#key.keys;
    member.number = this.#key.next++;
    const spread_ms = Math.ceil(Math.min(interval_ms / 2, this.#members.size * SPREAD_MS_EACH));
    const text = btoa(String.fromCharCode(...key));
    const order: GroupOrder = {
      keys: { channel, key: text, boot, member: member.number, signer: this.#signed().public_key, address, port, spread_ms },
    };
    member.send("mom-group", order);
  }
}

/** Notes that a member no longer needs the command by multicast. */
function settle(command: Command, member: Member): void {
  command.waiting.delete(member);
  if (command.waiting.size === 0) command.cancel();
}
