// The accounting files of a complex (docs/reference/files.md 4): which ones a period needs, and their text in pieces.

import { createReadStream, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { createGunzip } from "node:zlib";
import { AdminError } from "../complex/complex-home.ts";

/** One file. bytes: its size on the disk. */
type AccountingFile = { readonly path: string; readonly bytes: number };

const FILE_NAME = /^(\d{4})(\d\d)(\d\d)(\.gz)?$/;
const PIECE_BYTES = 1 << 22;

/**
 * Returns the files with records of these days, oldest first. from, to: YYYY-MM-DD, both included; null: no bound. A file has the records of the day in its
 * name. Throws AdminError if the directory cannot be read or has no accounting file at all.
 */
export function accountingFiles(directory: string, from: string | null, to: string | null): readonly AccountingFile[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    throw new AdminError(`${directory}: the accounting files cannot be read: ${error instanceof Error ? error.message : error}`);
  }
  const files = names.sort().flatMap((name) => {
    const match = FILE_NAME.exec(name);
    return match === null ? [] : [{ path: join(directory, name), day: `${match[1]}-${match[2]}-${match[3]}` }];
  });
  if (files.length === 0) throw new AdminError(`${directory} has no accounting files (their names are YYYYMMDD)`);
  const wanted = files.filter(({ day }) => (from === null || day >= from) && (to === null || day <= to));
  return wanted.map(({ path }) => ({ path, bytes: statSync(path).size }));
}

/**
 * Reads a file in pieces, compressed or not. take: called with each piece, the rest of the piece before it in front; returns the position in the text up to
 * which it has read. The text is latin1, one character for each byte, because that is fastest: text that is shown must pass through utf8Of.
 */
export async function readPieces(file: AccountingFile, take: (text: string) => number): Promise<void> {
  const source = createReadStream(file.path, { highWaterMark: PIECE_BYTES });
  const stream = file.path.endsWith(".gz") ? source.pipe(createGunzip({ chunkSize: PIECE_BYTES })) : source;
  // A fault of the file itself must also end the stream that is read.
  if (stream !== source) source.on("error", (error) => stream.destroy(error));
  let rest = "";
  try {
    for await (const chunk of stream) {
      const text = rest + (chunk as Buffer).toString("latin1");
      rest = text.slice(take(text));
    }
  } catch (error) {
    throw new AdminError(`${file.path}: ${error instanceof Error ? error.message : error}`);
  }
  // The last line of a file that was copied by hand may have no end.
  if (rest !== "") take(`${rest}\n`);
}

/** Returns a text that was read as latin1 in its true characters. */
export const utf8Of = (latin1: string): string => Buffer.from(latin1, "latin1").toString("utf8");
