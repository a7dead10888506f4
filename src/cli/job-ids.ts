// Job identifiers as users type them (docs/reference/commands.md 0): seq[.server][@server], array seq[][.server], subjob
// seq[idx][.server], range seq[a-b][:step]. If no server is given, the complex's own server is meant.

import { nth } from "#support/assert.ts";
import type { Complex } from "./complex.ts";

export type ParsedJobId = {
  /** the id without the server: `12`, `12[]`, `12[3]`, `12[4-6]`, `12[1-8:7]` */
  readonly seq: string;
  readonly server: string | null;
  /** the server to ask, given after `@` */
  readonly at: string | null;
};

const RANGE = String.raw`\d+(?:-\d+(?::\d+)?)?`;
const JOB_ID = new RegExp(String.raw`^(\d+(?:\[(?:${RANGE}(?:,${RANGE})*)?\])?)(?:\.([^@.][^@\s]*))?(?:@([^@\s]+))?$`);

/** Parses a job identifier. Returns null if the text is not one. Pure. */
export function parseJobId(text: string): ParsedJobId | null {
  const match = JOB_ID.exec(text);
  if (match === null) return null;
  return { seq: nth(match, 1), server: match[2] ?? null, at: match[3] ?? null };
}

export type JobIdOperand =
  | { readonly kind: "id"; readonly id: string }
  | { readonly kind: "malformed" }
  /** the server given after `@` is not this complex's */
  | { readonly kind: "elsewhere"; readonly server: string };

/** Returns the identifier in the form that the server knows: `12` -> `12.svr`. If it names another server than the complex's own, it counts as malformed. */
export async function completeJobId(complex: Complex, text: string): Promise<JobIdOperand> {
  const parsed = parseJobId(text);
  if (parsed === null) return { kind: "malformed" };
  const own = complex.conf().server;
  if (parsed.server !== null && parsed.server !== own && (await complex.whose(parsed.server)) !== "ours") return { kind: "malformed" };
  if (parsed.at !== null && parsed.at !== own && (await complex.whose(parsed.at)) !== "ours")
    return { kind: "elsewhere", server: parsed.at };
  return { kind: "id", id: `${parsed.seq}.${own}` };
}

/** Compares job ids for `qstat -E`: by number, then by index. */
export function compareJobIds(a: string, b: string): number {
  const [left, right] = [numbersOf(a), numbersOf(b)];
  return left[0] - right[0] || left[1] - right[1] || (a < b ? -1 : a > b ? 1 : 0);
}

function numbersOf(id: string): [number, number] {
  const match = /^(\d+)(?:\[(\d*))?/.exec(id);
  return [Number(match?.[1] ?? 0), Number(match?.[2] || -1)];
}
