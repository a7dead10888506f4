// The four kinds of faults that a backend can have, and the error that carries a fault. Also cleans the texts of other programs, which may contain anything. Pure.
//
// F1. A text is one line of at most FAULT_TEXT_MAX characters without control characters, and has none of the secrets that the caller names.

/**
 * transient: the backend does not answer, or not now; asked again with backoff for ever. configuration: the backend object is not set up correctly, or its
 * program or account is missing; a person must act, but it is asked again too, because the person may act at the backend. impossible: the backend can never run
 * a runner of this request. limit: the backend takes no more at present (a quota, a number of jobs).
 */
export const FAULT_KINDS = ["transient", "configuration", "impossible", "limit"] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/** text: in the backend's own words where it has any. */
export type Fault = { readonly kind: FaultKind; readonly text: string };

export const FAULT_TEXT_MAX = 500;

export class BackendError extends Error {
  override readonly name = "BackendError";
  readonly kind: FaultKind;
  /** whether a submission may have happened although this error was reported: submit again with isFirst = false */
  readonly uncertain: boolean;

  constructor(fault: Fault, options: { readonly uncertain?: boolean; readonly cause?: unknown } = {}) {
    super(fault.text, options.cause === undefined ? {} : { cause: options.cause });
    this.kind = fault.kind;
    this.uncertain = options.uncertain ?? false;
  }
}

/** Returns a text of another program as one clean line (F1). */
export function cleanText(text: string, secrets: readonly string[] = []): string {
  let clean = text.slice(0, FAULT_TEXT_MAX * 20);
  for (const secret of secrets) if (secret !== "") clean = clean.replaceAll(secret, "***");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed
  clean = clean.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g, " ").replace(/ {2,}/g, " ");
  clean = clean.trim();
  return clean.length <= FAULT_TEXT_MAX ? clean : `${clean.slice(0, FAULT_TEXT_MAX - 3)}...`;
}

/** A rule for texts of a backend: a text that matches `says` reports a fault of this kind. The first rule that matches decides. */
export type FaultRule = readonly [says: RegExp, kind: FaultKind];

/** Returns the kind of fault that a text reports, by the first rule that matches; `otherwise` if none does. */
export function kindOf(text: string, rules: readonly FaultRule[], otherwise: FaultKind): FaultKind {
  return rules.find(([says]) => says.test(text))?.[1] ?? otherwise;
}
