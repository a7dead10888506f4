// The text of a trace file, which may be compressed.

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { AdminError } from "../complex/complex-home.ts";

/** Returns the text of a file. A gzip file is recognised by its first bytes. */
export function traceText(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") throw new AdminError(`${path}: there is no such file`);
    throw error;
  }
  return (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes).toString("utf8");
}
