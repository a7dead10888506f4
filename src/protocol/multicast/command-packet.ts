// The form of a datagram from the server to a group of moms. It is a datagram as in ../datagram/packet.ts, of the kind
// `command`. Its sealed content is:
//
//   byte   0 ... 63     64 ... 67   68     69      70 ... 71   72 ...                        ... end
//          signature    command     part   parts   members     number and position of each      part of the text
//
// C1. Every member of the group has the key, so the key proves only that a member has sealed the datagram. The signature
//     proves that the server has sealed it. It covers the header, the start of the server and the rest of the content.
// C2. A command is divided into at most PARTS_MAX parts, each in one datagram. A datagram may contain members and no part: its
//     part is then NO_PART.

import { type ChannelKeys, type Cipher, headerIn, headerOf, openContent, proved, sealContent, TEXT_BYTES_MAX } from "../datagram/packet.ts";

/** Length of a signature (Ed25519, RFC 8032). */
export const SIGNATURE_BYTES = 64;
/** Largest number of parts of a command. */
const PARTS_MAX = 64;
const NO_PART = 255;
const FIXED_BYTES = 8;
const ADDRESSEE_BYTES = 6;
/** Room for the addressees and the text in one datagram, in bytes. */
const ROOM = TEXT_BYTES_MAX - SIGNATURE_BYTES - FIXED_BYTES;
/** Length of the longest command, in bytes. */
export const COMMAND_BYTES_MAX = PARTS_MAX * ROOM;
/** Members have numbers below this one. */
export const MEMBERS_MAX = 2 ** 16;
/** Positions are counted modulo this number. */
export const POSITIONS = 2 ** 32;

/** A member that must carry out the command, and the position of the command in its stream. */
export type Addressee = { readonly member: number; readonly position: number };
/** What one datagram says about a command. text null: no part of the text. */
export type CommandPart = {
  readonly command: number;
  readonly part: number;
  readonly parts: number;
  readonly to: readonly Addressee[];
  readonly text: Uint8Array | null;
};

/** What both ends of a group know. */
export type GroupKeys = Omit<ChannelKeys, "host">;
/** No host has this name. */
const GROUP_HOST = "*";
const channelOf = (keys: GroupKeys): ChannelKeys => ({ ...keys, host: GROUP_HOST });

/** Divides a command into the contents of datagrams. The text must not be longer than COMMAND_BYTES_MAX. */
export function partsOf(command: number, text: Uint8Array, to: readonly Addressee[]): CommandPart[] {
  if (text.length > COMMAND_BYTES_MAX) throw new RangeError(`a command of ${text.length} bytes`);
  const found: CommandPart[] = [];
  let next = 0;
  const take = (room: number): readonly Addressee[] => {
    const taken = to.slice(next, next + Math.floor(room / ADDRESSEE_BYTES));
    next += taken.length;
    return taken;
  };
  // A short text is repeated in each datagram, so that each is complete in itself.
  if (text.length <= ROOM / 2) {
    do found.push({ command, part: 0, parts: 1, to: take(ROOM - text.length), text });
    while (next < to.length);
    return found;
  }
  const parts = Math.ceil(text.length / ROOM);
  for (let part = 0; part < parts; part++) {
    const piece = text.subarray(part * ROOM, (part + 1) * ROOM);
    found.push({ command, part, parts, to: take(ROOM - piece.length), text: piece });
  }
  while (next < to.length) found.push({ command, part: NO_PART, parts, to: take(ROOM), text: null });
  return found;
}

/** Signs and seals a datagram. sign: makes the server's signature of these bytes. */
export function sealPart(
  cipher: Cipher,
  sign: (bytes: Uint8Array) => Uint8Array,
  keys: GroupKeys,
  counter: number,
  part: CommandPart,
): Uint8Array {
  const channel = channelOf(keys);
  const header = headerOf(channel, "command", counter);
  const said = encode(part);
  return sealContent(cipher, channel, header, joined(sign(signedBytes(header, channel, said)), said));
}

/** Opens a datagram whose header was read. null: no member of the group has sealed it. */
export function openPart(cipher: Cipher, keys: GroupKeys, bytes: Uint8Array): OpenedPart | null {
  const channel = channelOf(keys);
  const content = openContent(cipher, channel, bytes);
  if (content === null || content.length < SIGNATURE_BYTES + FIXED_BYTES) return null;
  const said = content.subarray(SIGNATURE_BYTES);
  return { signature: content.subarray(0, SIGNATURE_BYTES), signed: signedBytes(headerIn(bytes), channel, said), said };
}

/** A datagram that a member of the group has sealed. Nothing shows yet that it comes from the server (C1). */
export type OpenedPart = { readonly signature: Uint8Array; readonly signed: Uint8Array; readonly said: Uint8Array };

/** Reads the content of a datagram whose signature was proved; null: it is malformed. */
export function readPart({ said }: OpenedPart): CommandPart | null {
  const view = new DataView(said.buffer, said.byteOffset, said.byteLength);
  const [part, parts, count] = [view.getUint8(4), view.getUint8(5), view.getUint16(6)];
  const start = FIXED_BYTES + count * ADDRESSEE_BYTES;
  if (parts < 1 || parts > PARTS_MAX || start > said.length || (part !== NO_PART && part >= parts)) return null;
  const to = Array.from({ length: count }, (_, index) => {
    const at = FIXED_BYTES + index * ADDRESSEE_BYTES;
    return { member: view.getUint16(at), position: view.getUint32(at + 2) };
  });
  return { command: view.getUint32(0), part, parts, to, text: part === NO_PART ? null : said.subarray(start) };
}

function encode({ command, part, parts, to, text }: CommandPart): Uint8Array {
  const start = FIXED_BYTES + to.length * ADDRESSEE_BYTES;
  const said = new Uint8Array(start + (text?.length ?? 0));
  const view = new DataView(said.buffer);
  view.setUint32(0, command);
  view.setUint8(4, part);
  view.setUint8(5, parts);
  view.setUint16(6, to.length);
  to.forEach(({ member, position }, index) => {
    const at = FIXED_BYTES + index * ADDRESSEE_BYTES;
    view.setUint16(at, member);
    view.setUint32(at + 2, position);
  });
  if (text !== null) said.set(text, start);
  return said;
}

const signedBytes = (header: Uint8Array, channel: ChannelKeys, said: Uint8Array): Uint8Array => joined(proved(header, channel), said);

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}
