// Reads a dump of a configuration: what `qmgr -c "print server"`, `print node @default` and `print hook` print, in one file or one after the other.

import { NO_PENDING, type PendingLine, takeLine } from "#qmgr/language/line-reader.ts";

/** A request of qmgr. line: its number in the file, from 1; contents: the lines in base64 that follow an import of a hook from `-`; "" if there are none. */
export type DumpRequest = { readonly line: number; readonly text: string; readonly contents: string };

const IMPORT_FROM_HERE = /^\s*i(mport)?\s+(hook|pbshook)\s.*\s-\s*$/;
const BASE64 = /^[A-Za-z0-9+/=]+$/;

/** Splits a dump into its requests. Comments are dropped; a line that ends in a backslash continues on the next line. */
export function readDump(text: string): readonly DumpRequest[] {
  const lines = text.split(/\r?\n/);
  const requests: DumpRequest[] = [];
  let pending: PendingLine = NO_PENDING;
  let first = 1;
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? "";
    if (!pending.continued) first = at + 1;
    const taken = takeLine(pending, line);
    pending = taken.pending;
    for (const request of taken.requests) {
      let contents = "";
      if (IMPORT_FROM_HERE.test(request)) while (BASE64.test((lines[at + 1] ?? "").trim())) contents += `${lines[++at]?.trim()}\n`;
      requests.push({ line: first, text: request.trim(), contents });
    }
  }
  return requests;
}
