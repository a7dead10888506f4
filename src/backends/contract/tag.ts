// Tags: the names by which the runners of an order are found in a backend. A tag consists of the complex's key, the name of the backend object and a serial
// number that is never used again. Pure.
//
// T1. A tag has at most TAG_MAX characters: a letter, then letters, digits, `_`, `-` and `.`. Every backend accepts it in the name of a job.
// T2. parseTag(makeTag(x)) is x.

export type TagParts = {
  /** identifies the complex among all that use the same backend: 1 to 16 lower-case letters and digits, a letter first */
  readonly complex: string;
  /** the name of the backend object */
  readonly backend: string;
  readonly serial: number;
};

export const TAG_MAX = 64;

const TAG = /^([a-z][a-z0-9]{0,15})\.([A-Za-z0-9][A-Za-z0-9_-]{0,30})\.([0-9]{1,15})$/;

/** Builds a tag. Parts that cannot be in a tag are a programmer's error. */
export function makeTag({ complex, backend, serial }: TagParts): string {
  const tag = `${complex}.${backend}.${serial}`;
  if (parseTag(tag) === null) throw new RangeError(`no tag can be made of ${JSON.stringify(tag)}`);
  return tag;
}

/** Returns the parts of a tag; null: the text is not a tag. */
export function parseTag(text: string): TagParts | null {
  const match = TAG.exec(text);
  if (match === null || text.length > TAG_MAX) return null;
  const [, complex = "", backend = "", digits = ""] = match;
  const serial = Number(digits);
  return String(serial) === digits ? { complex, backend, serial } : null;
}

/** Whether a tag belongs to a backend object of a complex. */
export function isTagOf(tag: string, of: { readonly complex: string; readonly backend: string }): boolean {
  const parts = parseTag(tag);
  return parts !== null && parts.complex === of.complex && parts.backend === of.backend;
}
