// Limits on the length of text: of a request before it is parsed, of one job, and of all live jobs of a user (docs/limits.md).
//
// T1. A value that several jobs of a user share counts once, because it is in memory once. Values shorter than COUNTED_FROM
//     do not count, because the limit on the number of jobs also limits them.
// T2. The text of users is counted when it is needed first; each later change of a job updates the counts (apply.ts). The
//     cost of an update does not depend on the number of jobs.

import type { ResourceValues } from "#model/attribute.ts";
import { type LimitName, limitOf } from "#model/limits/server-limits.ts";
import { PBSE, pbseText, Reject } from "#model/pbse.ts";
import type { Attrs, JobAttrs, ServerState } from "./state.ts";

const COUNTED_FROM = 4096;

type Given = { readonly name: string; readonly resource?: string; readonly value: string };

const exceeds = (code: number, what: string, limit: LimitName): Reject => new Reject(code, `${pbseText(code) ?? ""}: ${what} (${limit})`);

/** Refuses with 15014 a request that would take long to parse: it has too much text, or too many chunks that are written one by one. */
export function checkGivenText(state: ServerState, given: readonly Given[]): void {
  const [chunks_max, resource_max] = [limitOf(state, "max_select_chunks"), limitOf(state, "max_resource_text")];
  let chars = 0;
  for (const { name, resource, value } of given) {
    chars += value.length;
    if (resource === "select" || resource === "nodes") {
      if (occurrences(value, "+") >= chunks_max)
        throw exceeds(PBSE.BADATVAL, `${name}.${resource} of more than ${chunks_max} chunks`, "max_select_chunks");
    } else if (resource !== undefined && value.length > resource_max)
      throw exceeds(PBSE.BADATVAL, `text of ${name}.${resource}`, "max_resource_text");
  }
  if (chars > limitOf(state, "max_job_text")) throw exceeds(PBSE.BADATVAL, "text of all attributes", "max_job_text");
}

function occurrences(text: string, character: string): number {
  let count = 0;
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) count++;
  return count;
}

/** Refuses with 15014 a job with too many chunks (max_job_chunks). A chunk counts as often as its count says. */
export function checkChunkCount(state: ServerState, { nodect }: ResourceValues): void {
  const max = limitOf(state, "max_job_chunks");
  if (typeof nodect === "number" && nodect > max)
    throw exceeds(PBSE.BADATVAL, `Resource_List.select of more than ${max} chunks`, "max_job_chunks");
}

/** Refuses a job: with 15014 if its attributes together have too much text, with 15036 if all jobs of its user, including this one, would have too much. */
export function checkJobText(state: ServerState, attrs: JobAttrs): void {
  let [all, fresh] = [0, 0];
  const { refs, chars } = textOf(state, attrs);
  for (const name in attrs) {
    const value = (attrs as Attrs)[name];
    const length = lengthOf(value);
    all += length;
    if (length >= COUNTED_FROM && !refs.has(value)) fresh += length;
  }
  if (all > limitOf(state, "max_job_text")) throw exceeds(PBSE.BADATVAL, "text of all attributes", "max_job_text");
  if (chars + fresh > limitOf(state, "max_user_job_text"))
    throw exceeds(PBSE.EXCQRESC, "text of all jobs of the user", "max_user_job_text");
}

/** The text of a user's jobs. refs: for each long value, the number of jobs that have it. */
type Use = { chars: number; readonly refs: Map<unknown, number> };
const USES = new WeakMap<ServerState, Map<string, Use>>();

const ownerOf = ({ Job_Owner }: JobAttrs): string => Job_Owner.slice(0, Job_Owner.lastIndexOf("@"));

function textOf(state: ServerState, attrs: JobAttrs): Use {
  let users = USES.get(state);
  if (users === undefined) {
    USES.set(state, (users = new Map()));
    for (const job of state.jobs.values()) countJobText(state, job.attrs, 1);
  }
  const owner = ownerOf(attrs);
  let use = users.get(owner);
  if (use === undefined) users.set(owner, (use = { chars: 0, refs: new Map() }));
  return use;
}

/**
 * Adds the text of a job to the counts (1) or removes it (-1). To change a job, remove it before and add it afterwards.
 * only: the names of the attributes that change.
 */
export function countJobText(state: ServerState, attrs: JobAttrs, sign: 1 | -1, only: readonly string[] = Object.keys(attrs)): void {
  if (!USES.has(state)) return;
  for (const name of only) {
    const value = (attrs as Attrs)[name];
    const length = lengthOf(value);
    if (length < COUNTED_FROM) continue;
    const use = textOf(state, attrs);
    const before = use.refs.get(value) ?? 0;
    const after = before + sign;
    if (after <= 0) use.refs.delete(value);
    else use.refs.set(value, after);
    if (before === 0 || after === 0) use.chars += sign * length;
  }
}

const LENGTHS = new WeakMap<object, number>();

/** The number of characters of a text, of a list of texts, or of the texts in a record. */
function lengthOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 0;
  let length = LENGTHS.get(value);
  if (length === undefined) {
    length = 0;
    for (const part of Object.values(value)) if (typeof part === "string") length += part.length;
    LENGTHS.set(value, length);
  }
  return length;
}
