// A path with a host, as in Output_Path and Error_Path: `[HOST:]PATH`. Pure.

/** host null: the text names no host. */
export type HostPath = { readonly host: string | null; readonly path: string };

/** Splits a text. A colon after a slash is part of the path. */
export function parseHostPath(text: string): HostPath {
  const colon = text.indexOf(":");
  const host = colon > 0 && !text.slice(0, colon).includes("/") ? text.slice(0, colon) : null;
  return { host, path: host === null ? text : text.slice(colon + 1) };
}

/** Puts the index of a subjob in the place of `^array_index^`. index null: the job is no subjob. */
export const withIndex = (text: string, index: string | null): string => (index === null ? text : text.replaceAll("^array_index^", index));
