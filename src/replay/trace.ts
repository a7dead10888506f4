// Parses traces in the Standard Workload Format, and files of reservations. The comments here state which jobs count and what
// each field means.

import { nth, present } from "#support/assert.ts";

export type TraceJob = {
  /** field 1: the number of the job */
  readonly id: number;
  readonly submit_s: number;
  /** allocated processors (field 5); if unknown, the requested ones (field 8) */
  readonly procs: number;
  /** requested time (field 9), or the run time if none was requested. A scheduler knows only this */
  readonly est_s: number;
  /** run time, at most the requested time */
  readonly run_s: number;
  /** field 16: the number of the partition; -1: no partition */
  readonly partition: number;
  /** fields 12 and 15: user and queue of the job; -1: unknown. Used only by pictures */
  readonly user?: number;
  readonly queue?: number;
};

export type TraceReservation = { readonly start_s: number; readonly duration_s: number; readonly procs: number };

/** The error for a malformed line. Its message has the line number and the fault. */
export class TraceError extends Error {}

/** Numbers of jobs that are not replayed. nothing: jobs without run time or processors. too_wide: jobs with more processors than there are. */
export type LeftOut = { nothing: number; too_wide: number };

/**
 * Returns the jobs of a trace in the order of submission; jobs submitted at the same time stay in the order of lines. Jobs
 * without run time or processors, and jobs with more than procs_max processors, are left out and counted.
 */
export function parseTrace(
  text: string,
  procs_max: number | ((job: TraceJob) => number),
  left_out: LeftOut = { nothing: 0, too_wide: 0 },
): TraceJob[] {
  const most = typeof procs_max === "number" ? (): number => procs_max : procs_max;
  const jobs: TraceJob[] = [];
  const fields: Fields = { text, starts: [], ends: [], number: 0 };
  for (let from = 0; from < text.length; ) {
    let to = text.indexOf("\n", from);
    if (to < 0) to = text.length;
    fields.number++;
    splitLine(fields, from, to);
    from = to + 1;
    if (fields.starts.length === 0 || text[nth(fields.starts, 0)] === ";") continue;
    const job = parseJob(fields);
    if (!(job.run_s > 0 && job.procs > 0)) left_out.nothing++;
    else if (job.procs > most(job)) left_out.too_wide++;
    else jobs.push(job);
  }
  // sort is stable: jobs with equal times keep the order of their lines
  return jobs.sort((a, b) => a.submit_s - b.submit_s);
}

/** A line of a trace, where each field starts and ends in it, and the number of the line, from 1. Most fields are not used, so they are not copied. */
type Fields = { readonly text: string; readonly starts: number[]; readonly ends: number[]; number: number };

function splitLine({ text, starts, ends }: Fields, from: number, to: number): void {
  starts.length = ends.length = 0;
  let inside = false;
  for (let at = from; at < to; at++) {
    const isBlank = text.charCodeAt(at) <= BLANK;
    if (isBlank === !inside) continue;
    inside = !isBlank;
    (inside ? starts : ends).push(at);
  }
  if (inside) ends.push(to);
}
/** character code of the blank; the codes of tabs and carriage returns are smaller */
const BLANK = 0x20;

const FIELDS = 18;
/**
 * Parses a line. Fields used: 1 job, 2 submission, 4 run time, 5 allocated processors, 8 requested processors, 9 requested
 * time, 12 user, 15 queue, 16 partition.
 */
function parseJob(fields: Fields): TraceJob {
  const { starts, number } = fields;
  if (starts.length < FIELDS) throw new TraceError(`line ${number}: ${starts.length} fields instead of ${FIELDS}`);
  const run = numberIn(fields, 4);
  const allocated = numberIn(fields, 5);
  const requested_s = numberIn(fields, 9);
  const est_s = requested_s > 0 ? requested_s : run;
  return {
    id: numberIn(fields, 1),
    submit_s: numberIn(fields, 2),
    procs: allocated > 0 ? allocated : numberIn(fields, 8),
    est_s,
    run_s: Math.min(run, est_s),
    partition: numberIn(fields, 16),
    user: numberIn(fields, 12, -1),
    queue: numberIn(fields, 15, -1),
  };
}

/**
 * Returns the number in a field. instead: the value for a field that is not a number; without it, such a field is refused.
 * Nearly all fields are a few digits with an optional minus, so their digits are read without copying the field.
 */
function numberIn({ text, starts, ends, number }: Fields, field: number, instead?: number): number {
  const [start, end] = [present(starts[field - 1], "field"), present(ends[field - 1], "field")];
  const sign = text.charCodeAt(start) === MINUS ? -1 : 1;
  let value = 0;
  let at = sign === 1 ? start : start + 1;
  for (let digit = 0; at < end; at++, value = 10 * value + digit) {
    digit = text.charCodeAt(at) - ZERO;
    if (!(digit >= 0 && digit <= 9)) break;
  }
  if (at === end && end - start <= DIGITS_EXACT && value > 0) return sign * value;
  const word = text.slice(start, end);
  value = Number(word);
  if (Number.isFinite(value)) return value;
  if (instead === undefined) throw new TraceError(`line ${number}: field ${field} is no number: ${word}`);
  return instead;
}
const [MINUS, ZERO] = [0x2d, 0x30];
/** A number with at most this many digits is exact. */
const DIGITS_EXACT = 15;

/** Parses lines `start_s,duration_s,procs`. Empty lines, `#` comments and a heading are skipped. */
export function parseReservations(text: string): TraceReservation[] {
  return text.split("\n").flatMap((raw, at) => {
    const line = raw.replace(/#.*/, "").trim();
    if (line === "" || (at === 0 && /^[a-z]/i.test(line))) return [];
    const [start_s, duration_s, procs, ...rest] = line.split(",").map((word) => (/^\s*\d+\s*$/.test(word) ? Number(word) : Number.NaN));
    if (start_s === undefined || duration_s === undefined || procs === undefined || rest.length > 0 || !(start_s + duration_s + procs >= 0))
      throw new TraceError(`reservations, line ${at + 1}: not start_s,duration_s,procs: ${line}`);
    return [{ start_s, duration_s, procs }];
  });
}
