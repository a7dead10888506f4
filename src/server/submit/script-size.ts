// jobscript_max_size (15175).

import { PBSE, reject } from "#model/pbse.ts";
import { isMarkedScript, scriptCharacters } from "#model/script-text.ts";
import { parseSize, sizeBytes } from "#model/values/size.ts";
import type { ServerState } from "../state/state.ts";

const SIZE_DEFAULT = "100mb";

export function checkScriptSize(state: ServerState, script: string | null): void {
  if (script === null) return;
  const size = parseSize(String(state.server["jobscript_max_size"] ?? SIZE_DEFAULT));
  const max = size === null ? Number.POSITIVE_INFINITY : sizeBytes(size);
  // A character takes three bytes at most: only scripts near the limit are counted.
  if (script.length * 3 <= max) return;
  if (bytesOf(script) > max) throw reject(PBSE.JOBSCRIPTMAXSIZE);
}

const bytesOf = (script: string): number => (isMarkedScript(script) ? scriptCharacters(script).length : utf8Length(script));

function utf8Length(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes;
}
