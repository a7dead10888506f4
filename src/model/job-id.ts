// Identifiers of jobs and reservations (docs/reference/commands.md 0):
//   job 12[.SERVER][@SERVER] · array 12[][.SERVER] · subjob 12[3][.SERVER] · subjobs 12[1-8:7,10][.SERVER] ·
//   reservation R5[.SERVER], S6, M7
// The server after the point is the server that created the job; it is part of the job's name. The server
// after @ is the server to ask.

import { nth } from "#support/assert.ts";
import { type IndexRange, indexListText, parseIndexList } from "./array-indices.ts";

export type JobIdPart =
  | { readonly kind: "job" }
  | { readonly kind: "array" }
  | { readonly kind: "subjob"; readonly index: number }
  | { readonly kind: "range"; readonly ranges: readonly IndexRange[] };

/** server: the server in the name, or "" if it is not given. at: the server to ask, or "" if it is not given. */
export type JobId = JobIdPart & { readonly seq: number; readonly server: string; readonly at: string };

/** The id of a reservation. letter: R advance, S standing, M maintenance reservation. */
export type ResvId = { readonly letter: "R" | "S" | "M"; readonly seq: number; readonly server: string; readonly at: string };

const HOST = "[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?";
const SERVER = `(?:\\.(${HOST}))?(?:@(${HOST}(?::[0-9]{1,5})?))?`;
const JOB = new RegExp(`^([0-9]{1,12})(?:\\[([0-9,:-]{0,1000})\\])?${SERVER}$`);
const RESV = new RegExp(`^([RSM])([0-9]{1,12})${SERVER}$`);

/** Parses the id of a job. Returns null if the text is malformed. The end of a range must not be smaller than its start; the step must be at least 1. */
export function parseJobId(text: string): JobId | null {
  const match = JOB.exec(text);
  if (match === null) return null;
  const part = partOf(match[2]);
  return part === null ? null : { ...part, seq: Number(match[1]), server: match[3] ?? "", at: match[4] ?? "" };
}

/**
 * The text of an id: `12.svr`, `12[].svr`, `12[3].svr`, `12[1-8:7].svr`, or the same without the server. The server to ask
 * is not part of the text.
 */
export function jobIdText(id: JobIdPart & { readonly seq: number; readonly server: string }): string {
  return `${id.seq}${partText(id)}${id.server === "" ? "" : `.${id.server}`}`;
}

/** The full form of an id that a user has typed: if it has no server, it gets the given one. */
export function withServer(id: JobId, server: string): JobId {
  return id.server === "" ? { ...id, server } : id;
}

/** Parses the id of a reservation. Returns null if the text is not one. */
export function parseResvId(text: string): ResvId | null {
  const match = RESV.exec(text);
  if (match === null) return null;
  return {
    letter: match[1] === "R" || match[1] === "S" ? match[1] : "M",
    seq: Number(match[2]),
    server: match[3] ?? "",
    at: match[4] ?? "",
  };
}

export function resvIdText(id: { readonly letter: string; readonly seq: number; readonly server: string }): string {
  return `${id.letter}${id.seq}${id.server === "" ? "" : `.${id.server}`}`;
}

/** The sequence number of a job id, for sorting. -1 if the text is not a job id. */
export function seqOf(id: string): number {
  const seq = Number.parseInt(id, 10);
  return Number.isNaN(seq) ? -1 : seq;
}

/** The array of a subjob: `12[3].svr` -> `12[].svr`. Returns null if the id does not name a subjob. */
export function arrayIdOf(id: string): string | null {
  const match = /^([0-9]+)\[[0-9]+\](.*)$/.exec(id);
  return match === null ? null : `${match[1]}[]${match[2]}`;
}

/** The id of a subjob: `12[].svr`, 3 -> `12[3].svr`. */
export function subjobId(array_id: string, index: number): string {
  return array_id.replace("[]", `[${index}]`);
}

/** The index in a subjob's id, or -1 if the id does not name a subjob. */
export function subjobIndex(id: string): number {
  const match = /^[0-9]+\[([0-9]+)\]/.exec(id);
  return match === null ? -1 : Number(match[1]);
}

/** Returns the name that a mom gives to a job's output (letter o) or error output (e), in its spool and in a directory to which it is delivered. */
export const outputName = (id: string, letter: "o" | "e"): string => `${id}.${letter === "o" ? "OU" : "ER"}`;

function partOf(brackets: string | undefined): JobIdPart | null {
  if (brackets === undefined) return { kind: "job" };
  if (brackets === "") return { kind: "array" };
  const ranges = parseIndexList(brackets);
  if (ranges === null) return null;
  return /^[0-9]+$/.test(brackets) ? { kind: "subjob", index: nth(ranges, 0).first } : { kind: "range", ranges };
}

function partText(id: JobIdPart): string {
  switch (id.kind) {
    case "job":
      return "";
    case "array":
      return "[]";
    case "subjob":
      return `[${id.index}]`;
    case "range":
      return `[${indexListText(id.ranges)}]`;
    default: {
      const unreachable: never = id;
      return unreachable;
    }
  }
}
