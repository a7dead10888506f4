// Checks the accounting records of a whole simulation against the objects that exist at its end (K6 for jobs, K11 for
// reservations).

import { arrayIdOf } from "#model/job-id.ts";
import { RESV_STATE } from "#model/resv-state.ts";
import type { AccountingRecord } from "#server/engine/transaction.ts";
import { isWithMom } from "#server/state/job-phase.ts";
import type { Job, ServerState } from "#server/state/state.ts";
import type { Committed } from "./committed.ts";
import { fail } from "./violation.ts";

/** Record types for the start of a job: from the beginning, or from a checkpoint. */
const BEGINS: ReadonlySet<string> = new Set(["S", "T"]);

/** Returns the record types of each job or reservation as letters, in order. */
function lettersOf(records: readonly AccountingRecord[], ids: RegExp): ReadonlyMap<string, string> {
  const letters = new Map<string, string>();
  for (const { id, type } of records) if (ids.test(id)) letters.set(id, (letters.get(id) ?? "") + type);
  return letters;
}

/** Checks the records of jobs. entries: how many times each job entered a queue. */
export function checkJobRecords(
  records: readonly AccountingRecord[],
  live: ServerState,
  committed: Committed,
  entries: ReadonlyMap<string, number>,
): void {
  const by_job = lettersOf(records, /^\d/);
  // A subjob that waits again may never have started, so that it has no record.
  for (const id of committed.ids())
    if (!by_job.has(id) && !(arrayIdOf(id) !== null && live.jobs.has(id))) fail(`K6 ${id} is not in the accounting`);
  for (const [id, letters] of by_job) {
    const wrong = beginningFault(id, letters, committed, entries.get(id) ?? 0) ?? lifeFault(letters, live.jobs.get(id));
    if (wrong !== null) fail(`K6 ${id}: ${wrong} (${letters})`);
  }
}

function countOf(letters: string, letter: string): number {
  return letters.split(letter).length - 1;
}

/** Returns what is wrong with the first records of a job; null: nothing. entered: how many times the job entered a queue. */
function beginningFault(id: string, letters: string, committed: Committed, entered: number): string | null {
  const array = arrayIdOf(id);
  // A subjob that was deleted before it started never became a separate job.
  const unstarted = /^D+$/.test(letters) && committed.has(array ?? "");
  if (!committed.has(id) && !unstarted) return "accounted for and never committed";
  if (letters.startsWith("Q") === (array !== null)) return array === null ? "no Q first" : "a Q of a subjob";
  const queued = countOf(letters, "Q");
  return queued > entered ? `${queued} Q records, ${entered} times in a queue` : null;
}

/** Returns what is wrong with the later records of a job; null: nothing. job: undefined if it has ended. */
function lifeFault(letters: string, job: Job | undefined): string | null {
  const runs = runsOf(letters);
  if (typeof runs === "string") return runs;
  const [ended, aborted] = [countOf(letters, "E"), countOf(letters, "A")];
  if (job !== undefined) {
    if (ended + aborted > 0) return "ended and lives";
    return runs.running && !isWithMom(job) && job.subjobs === undefined ? "waits after an S without R" : null;
  }
  if (ended > 1) return "several E";
  if (aborted > 1) return "several A";
  if (ended + aborted + countOf(letters, "D") === 0) return "gone without a record";
  return runs.running ? "gone after an S without E" : null;
}

/** Returns whether the job was running after the last record, or a text that describes a fault in its starts and ends. */
function runsOf(letters: string): { readonly running: boolean } | string {
  let running = false;
  let saved = false;
  for (const letter of letters) {
    if (BEGINS.has(letter) && running) return `a second ${letter}`;
    if ((letter === "R" || letter === "C") && !running) return `a ${letter} without S or T`;
    if (letter === "T" && !saved) return "a T without C";
    if (BEGINS.has(letter)) [running, saved] = [true, false];
    else if (letter === "C") [running, saved] = [false, true];
    else if (letter === "R" || letter === "E") running = false;
  }
  return { running };
}

export function checkResvRecords(records: readonly AccountingRecord[], live: ServerState, committed: Committed): void {
  const by_resv = lettersOf(records, /^[RSM]/);
  for (const id of committed.ids()) if (!by_resv.has(id)) fail(`K11 ${id} is not in the accounting`);
  for (const [id, letters] of by_resv) {
    if (!/^U(Y[YB]*)?[Kk]?$/.test(letters)) fail(`K11 ${id}: its records are ${letters}`);
    const resv = live.resvs.get(id);
    if (/[Kk]$/.test(letters) === (resv !== undefined) && resv?.attrs.reserve_state !== RESV_STATE.BEING_DELETED)
      fail(`K11 ${id}: its records are ${letters}, and it ${resv === undefined ? "is gone" : "lives"}`);
  }
}
