// The names of the files that belong to a day of a daemon's log: YYYYMMDD, and its rotated or compressed pieces YYYYMMDD.1,
// YYYYMMDD.2.gz, YYYYMMDD.gz. Pure.

import { nth } from "./assert.ts";

/** A file of a log. day: YYYYMMDD. piece: its number, 1 is the oldest; null: the file of the day itself, which is the newest. */
export type LogPiece = { readonly name: string; readonly day: string; readonly piece: number | null; readonly compressed: boolean };

const NAME = /^(\d{8})(?:\.([1-9]\d{0,5}))?(\.gz)?$/;

/** Parses the name of a file. Returns null if the file does not belong to a log. */
export function parseLogName(name: string): LogPiece | null {
  const match = NAME.exec(name);
  if (match === null) return null;
  return { name, day: nth(match, 1), piece: match[2] === undefined ? null : Number(match[2]), compressed: match[3] !== undefined };
}

/** Returns the files of a log in a directory, oldest first. */
export function logPieces(names: readonly string[]): LogPiece[] {
  const pieces = names.flatMap((name) => parseLogName(name) ?? []);
  const rank = ({ piece }: LogPiece): number => piece ?? Number.POSITIVE_INFINITY;
  // If a piece exists both compressed and uncompressed, its compression was interrupted: only the uncompressed file is complete.
  const plain = new Set(pieces.filter(({ compressed }) => !compressed).map(({ name }) => name));
  return pieces
    .filter(({ name, compressed }) => !compressed || !plain.has(name.slice(0, -3)))
    .sort((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : rank(a) - rank(b) || (a.compressed ? -1 : 1)));
}
