// One item of the job attributes stagein and stageout: `LOCAL@HOST:PATH` (docs/reference/commands.md 1, qsub -W).

export type StageItemText = { readonly local: string; readonly host: string; readonly path: string };

/** Returns null if the text is malformed. A host may be an IPv6 address in brackets. */
export function parseStageItem(text: string): StageItemText | null {
  const match = /^([^@]+)@([^:@]+|\[[\da-f:]+\]):(.+)$/is.exec(text.trim());
  return match === null ? null : { local: match[1] as string, host: match[2] as string, path: match[3] as string };
}
