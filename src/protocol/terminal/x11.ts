// X11 forwarding (qsub -X): display names, cookies, and the first message of an X client. In that message qsub replaces the
// cookie of the job by the real one. Pure. Formats: X Window System Protocol, chapter 8; Xau(3).
//
// X1. The real cookie never leaves qsub's host. A client that does not present the job's cookie is refused.

import { nth } from "#support/assert.ts";

const MIT_COOKIE = "MIT-MAGIC-COOKIE-1";
/** TCP port of display 0 */
export const X11_PORT = 6000;
/** First display number for jobs; smaller numbers are left to real displays. */
export const FIRST_DISPLAY = 10;

export type Display = {
  /** host of the display; null: this host, reached through a unix socket */
  readonly host: string | null;
  readonly number: number;
  readonly screen: number;
};

/** Parses `host:number.screen`, `:number`, `unix:number`. Returns null if the text is not a display. */
export function parseDisplay(text: string): Display | null {
  const match = /^(?:([\w.-]*)(?:\/unix)?):(\d{1,5})(?:\.(\d{1,3}))?$/.exec(text);
  if (match === null || Number(match[2]) + X11_PORT > 0xffff) return null;
  const host = match[1] ?? "";
  const local = host === "" || host === "unix" || text.includes("/unix:");
  return { host: local ? null : host, number: Number(match[2]), screen: Number(match[3] ?? 0) };
}

type Entry = { readonly family: number; readonly address: string; readonly number: string; readonly name: string; readonly data: Buffer };
const FAMILY_LOCAL = 256;
const FAMILY_WILD = 65535;

function entriesOf(file: Buffer): Entry[] {
  const entries: Entry[] = [];
  let at = 0;
  const field = (): Buffer | null => {
    if (at + 2 > file.length) return null;
    const length = file.readUInt16BE(at);
    const bytes = file.subarray(at + 2, at + 2 + length);
    at += 2 + length;
    return bytes.length === length ? bytes : null;
  };
  while (at + 2 <= file.length) {
    const family = file.readUInt16BE(at);
    at += 2;
    const [address, number, name, data] = [field(), field(), field(), field()];
    if (address == null || number == null || name == null || data == null) break;
    entries.push({ family, address: address.toString("latin1"), number: number.toString("latin1"), name: name.toString("latin1"), data });
  }
  return entries;
}

/** Finds the cookie of a display in the contents of an Xauthority file. own: the name of this host. Returns null if the file has no such cookie. */
export function cookieFor(file: Buffer, display: Display, own: string): Buffer | null {
  const fits = (entry: Entry): boolean =>
    entry.name === MIT_COOKIE &&
    (entry.number === "" || entry.number === String(display.number)) &&
    (entry.family === FAMILY_WILD || isAt(entry, display, own));
  return entriesOf(file).find(fits)?.data ?? null;
}

/** Whether an entry is for the host of a display. An entry of this host counts for every connection type; other addresses are not looked up. */
function isAt({ family, address }: Entry, { host }: Display, own: string): boolean {
  return family === FAMILY_LOCAL && (host === null || host === "localhost" || host === "127.0.0.1" || host === own) && address === own;
}

/** Returns the contents of an Xauthority file with one cookie for display `number`, for every connection type. */
export function authorityFile(number: number, cookie: Buffer): Buffer {
  const field = (bytes: Buffer): Buffer[] => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(bytes.length, 0);
    return [length, bytes];
  };
  const family = Buffer.alloc(2);
  family.writeUInt16BE(FAMILY_WILD, 0);
  const fields = [Buffer.alloc(0), Buffer.from(String(number)), Buffer.from(MIT_COOKIE), cookie];
  return Buffer.concat([family, ...fields.flatMap(field)]);
}

const SETUP_BYTES = 12;
/** Longest name and cookie that are read; no real ones are so long. */
const SETUP_BYTES_MAX = 1024;
const padded = (length: number): number => (length + 3) & ~3;

/**
 * Checks the bytes that a client has sent so far. Returns null until the first message is complete, "refused" if the message
 * does not contain `expected`, and otherwise the message for the display: `real` takes the place of the job's cookie. real
 * null: the display needs no cookie.
 */
export function clientSetup(bytes: Buffer, expected: Buffer, real: Buffer | null): Buffer | "refused" | null {
  if (bytes.length < SETUP_BYTES) return null;
  const order = bytes[0];
  if (order !== 0x42 && order !== 0x6c) return "refused";
  const read = (at: number): number => (order === 0x42 ? bytes.readUInt16BE(at) : bytes.readUInt16LE(at));
  const [name_bytes, data_bytes] = [read(6), read(8)];
  const end = SETUP_BYTES + padded(name_bytes) + padded(data_bytes);
  if (end > SETUP_BYTES_MAX) return "refused";
  if (bytes.length < end) return null;
  const name = bytes.toString("latin1", SETUP_BYTES, SETUP_BYTES + name_bytes);
  const data_at = SETUP_BYTES + padded(name_bytes);
  if (name !== MIT_COOKIE || !sameBytes(bytes.subarray(data_at, data_at + data_bytes), expected)) return "refused";
  const head = Buffer.from(bytes.subarray(0, SETUP_BYTES));
  const write = (value: number, at: number): void => void (order === 0x42 ? head.writeUInt16BE(value, at) : head.writeUInt16LE(value, at));
  write(real === null ? 0 : MIT_COOKIE.length, 6);
  write(real === null ? 0 : real.length, 8);
  const proof = real === null ? [] : [pad(Buffer.from(MIT_COOKIE)), pad(real)];
  return Buffer.concat([head, ...proof, bytes.subarray(end)]);
}

const pad = (bytes: Buffer): Buffer => Buffer.concat([bytes], padded(bytes.length));

/** Compares byte strings. Takes the same time wherever they differ. */
function sameBytes(a: Buffer, b: Buffer): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let at = 0; at < a.length; at++) difference |= nth(a, at) ^ nth(b, at);
  return difference === 0;
}
