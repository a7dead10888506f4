// One item of the job attributes stagein and stageout: `LOCAL@HOST:PATH` (docs/reference/commands.md 1, qsub -W).

import { nth } from "#support/assert.ts";

export type StageItemText = { readonly local: string; readonly host: string; readonly path: string };

/** Parses an item. Returns null if the text is malformed. The host may be an IPv6 address in brackets. */
export function parseStageItem(text: string): StageItemText | null {
  const match = /^([^@]+)@([^:@]+|\[[\da-f:]+\]):(.+)$/is.exec(text.trim());
  return match === null ? null : { local: nth(match, 1), host: nth(match, 2), path: nth(match, 3) };
}
