// The form of a datagram between the server and a mom on another host: a header that everybody can read, and a sealed text.
//
//   byte   0      1      2 ... 9     10 ... 17    18 ... end
//          form   kind   channel     counter      sealed text with its tag
//
// D1. A channel is a key with everything that belongs to it: one mom, one connection of this mom, one start of the server.
//     The tag proves all of these, so a datagram counts only between the two ends for which it was sealed.
// D2. A key seals at most one text with each pair of kind and counter, because both are the nonce (NIST SP 800-38D, 8.2.1: deterministic construction).

/** A cipher that also authenticates (AEAD). Keys have KEY_BYTES, nonces NONCE_BYTES. */
export type Cipher = {
  /** Returns the sealed text, which ends in a tag of TAG_BYTES. header: is proved by the tag, but not encrypted */
  seal(key: Uint8Array, nonce: Uint8Array, header: Uint8Array, text: Uint8Array): Uint8Array;
  /** Returns the text; null: the key has not sealed this. */
  open(key: Uint8Array, nonce: Uint8Array, header: Uint8Array, sealed: Uint8Array): Uint8Array | null;
};

export const KEY_BYTES = 32;
const NONCE_BYTES = 12;
export const TAG_BYTES = 16;
/** Length of a channel's name in hexadecimal digits. */
export const CHANNEL_DIGITS = 16;
/** No network splits a datagram of this length: IPv6 guarantees 1280 bytes, of which its header and the header of UDP take 48. */
export const DATAGRAM_BYTES_MAX = 1232;

const FORM = 0xb1;
const HEADER_BYTES = 18;
/** report: from a mom; heard: the server's answer; command: from the server to a group of moms (../multicast) */
const KINDS = { report: 1, heard: 2, command: 3 } as const;
export type Kind = keyof typeof KINDS;

/** Longest text in one datagram, in bytes. */
export const TEXT_BYTES_MAX = DATAGRAM_BYTES_MAX - HEADER_BYTES - TAG_BYTES;

/** What both ends of a channel know. channel: its name; host: the mom's host; boot: identifies the start of the server. */
export type ChannelKeys = { readonly channel: string; readonly key: Uint8Array; readonly host: string; readonly boot: string };

export type Header = { readonly channel: string; readonly counter: number };

/** Reads the header of a datagram. Returns null if it cannot be a datagram of that kind. Nothing in it is proved yet. */
export function readHeader(bytes: Uint8Array, kind: Kind): Header | null {
  if (bytes.length < HEADER_BYTES + TAG_BYTES || bytes[0] !== FORM || bytes[1] !== KINDS[kind]) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const counter = view.getUint32(10) * 2 ** 32 + view.getUint32(14);
  if (!Number.isSafeInteger(counter)) return null;
  const digits = (at: number): string => view.getUint32(at).toString(16).padStart(8, "0");
  return { channel: digits(2) + digits(6), counter };
}

/** Makes a datagram. counter: greater than the counters of all earlier datagrams of this kind in the channel (D2). Throws if the text is too long. */
export function sealPacket(cipher: Cipher, keys: ChannelKeys, kind: Kind, counter: number, text: string): Uint8Array {
  const content = new TextEncoder().encode(text);
  if (content.length > TEXT_BYTES_MAX) throw new RangeError(`a text of ${content.length} bytes for one datagram`);
  return sealContent(cipher, keys, headerOf(keys, kind, counter), content);
}

/** Makes a datagram from its header and its content, which has at most TEXT_BYTES_MAX. */
export function sealContent(cipher: Cipher, keys: ChannelKeys, header: Uint8Array, content: Uint8Array): Uint8Array {
  const sealed = cipher.seal(keys.key, nonceOf(header), proved(header, keys), content);
  const packet = new Uint8Array(HEADER_BYTES + sealed.length);
  packet.set(header);
  packet.set(sealed, HEADER_BYTES);
  return packet;
}

/** Returns the text of a datagram whose header was read; null: it was not sealed in this channel (D1). */
export function openPacket(cipher: Cipher, keys: ChannelKeys, bytes: Uint8Array): string | null {
  const content = openContent(cipher, keys, bytes);
  return content === null ? null : new TextDecoder().decode(content);
}

/** Like openPacket, for a content that need not be a text. */
export function openContent(cipher: Cipher, keys: ChannelKeys, bytes: Uint8Array): Uint8Array | null {
  const header = headerIn(bytes);
  return cipher.open(keys.key, nonceOf(header), proved(header, keys), bytes.subarray(HEADER_BYTES));
}

/** Returns the header of a datagram. */
export const headerIn = (bytes: Uint8Array): Uint8Array => bytes.subarray(0, HEADER_BYTES);

export function headerOf({ channel }: ChannelKeys, kind: Kind, counter: number): Uint8Array {
  const header = new Uint8Array(HEADER_BYTES);
  const view = new DataView(header.buffer);
  header[0] = FORM;
  header[1] = KINDS[kind];
  view.setUint32(2, Number.parseInt(channel.slice(0, 8), 16));
  view.setUint32(6, Number.parseInt(channel.slice(8), 16));
  view.setUint32(10, Math.floor(counter / 2 ** 32));
  view.setUint32(14, counter % 2 ** 32);
  return header;
}

/** Makes the nonce from the kind and the counter (D2). */
function nonceOf(header: Uint8Array): Uint8Array {
  const nonce = new Uint8Array(NONCE_BYTES);
  nonce[0] = header[1] ?? 0;
  nonce.set(header.subarray(10), NONCE_BYTES - 8);
  return nonce;
}

/** Returns what the tag must prove besides the text: the header, and the host and boot of the channel (D1). */
export function proved(header: Uint8Array, { host, boot }: ChannelKeys): Uint8Array {
  const names = new TextEncoder().encode(`${host}\0${boot}`);
  const all = new Uint8Array(header.length + names.length);
  all.set(header);
  all.set(names, header.length);
  return all;
}
