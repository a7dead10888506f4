// Subjobs for display (docs/reference/commands.md 1.4). A started subjob is a job of its own, one that is over has a record in the history, and all others are
// shown from their array. The waiting subjobs of a large array therefore share one record of attributes.

import { subjobId, subjobIndex } from "#model/job-id.ts";
import { SUBSTATE } from "#model/job-state.ts";
import { NEVER_RAN } from "../jobs/end.ts";
import { subjobAttrs } from "../jobs/subjob-start.ts";
import { isIdled } from "../jobs/suspension.ts";
import { isRunning } from "../state/job-phase.ts";
import type { Attrs, Job, JobAttrs, ServerState } from "../state/state.ts";
import {
  allIndices,
  loadSubjobs,
  remainingText,
  SUBJOB,
  type SubjobState,
  type Subjobs,
  subjobCountText,
  subjobState,
} from "../state/subjobs.ts";

/** An array, live or of the history, with its subjobs. */
export type ShownArray = { readonly job: Job; readonly live: boolean; readonly subjobs: Subjobs };

/** null: the job is not an array. */
export function shownArray(job: Job, live: boolean): ShownArray | null {
  if (job.subjobs !== undefined) return { job, live, subjobs: job.subjobs };
  if (job.attrs["array"] !== true) return null;
  const { array_indices_submitted, subjobs } = job.attrs as JobAttrs & {
    readonly array_indices_submitted: string;
    readonly subjobs: string;
  };
  return { job, live, subjobs: loadSubjobs(array_indices_submitted, subjobs) };
}

/** A job's attributes, with computed ones for an array; state U for a job that is stopped because its host has other users. */
export function shownAttrs(job: Job): Attrs {
  const { attrs, subjobs } = job;
  if (subjobs === undefined) return isIdled(job) && isRunning(job) ? { ...attrs, job_state: "U" } : attrs;
  return { ...attrs, array_state_count: subjobCountText(subjobs), array_indices_remaining: remainingText(subjobs) };
}

/** A subjob that is over: X while its array lives. */
function recordAttrs(record: Job, live: boolean): Attrs {
  return live ? { ...record.attrs, job_state: "X" } : record.attrs;
}

/** The attributes of a subjob that is neither a job of its own nor in the history. They come from its array. */
function viewAttrs({ job, live }: ShownArray, state: Exclude<SubjobState, typeof SUBJOB.LIVE>): Attrs {
  const attrs = subjobAttrs(job.attrs);
  if (state === SUBJOB.QUEUED) {
    const { job_state, substate, comment, stime } = job.attrs;
    return {
      ...attrs,
      ...(job_state === "B" ? {} : { substate }),
      ...(stime === undefined && comment !== undefined ? { comment } : {}),
    };
  }
  const { Exit_status: _, ...rest } = attrs;
  return { ...rest, job_state: live ? "X" : "F", ...OVER[state] };
}

const OVER = {
  [SUBJOB.FINISHED]: { substate: SUBSTATE.FINISHED, comment: "Subjob finished" },
  [SUBJOB.FAILED]: { substate: SUBSTATE.FAILED, comment: "Subjob failed" },
  [SUBJOB.DELETED]: { substate: SUBSTATE.TERMINATED, comment: "Subjob terminated", Exit_status: NEVER_RAN },
} as const;

export type Shown = { readonly id: string; readonly attrs: Attrs };

/** A walk through an array's subjobs in order of index; records of the history are supplied from outside in that order. */
export type Expansion = {
  readonly array: ShownArray;
  /** returns the subjobs before that of the record, and then the record. Returns nothing if the record was already passed or was not requested */
  record(record: Job): Shown[];
  /** returns the subjobs after the last record */
  rest(): Shown[];
};

/** asked: only these indices, in order. Subjobs that look alike share one object of attributes. */
export function expansionOf(state: ServerState, array: ShownArray, asked: Iterable<number> = allIndices(array.subjobs)): Expansion {
  const { subjobs, job } = array;
  const indices = asked[Symbol.iterator]();
  let next = indices.next();
  const views = new Map<SubjobState, Attrs>();

  const show = (index: number): Shown[] => {
    const standing = subjobState(subjobs, index);
    if (standing === undefined) return [];
    const id = subjobId(job.id, index);
    const own = standing === SUBJOB.LIVE ? state.jobs.get(id) : undefined;
    if (own !== undefined) return [{ id, attrs: own.attrs }];
    const shownAs = standing === SUBJOB.LIVE ? SUBJOB.FINISHED : standing;
    let attrs = views.get(shownAs);
    if (attrs === undefined) views.set(shownAs, (attrs = viewAttrs(array, shownAs)));
    return [{ id, attrs }];
  };

  return {
    array,
    record(record) {
      const index = subjobIndex(record.id);
      const shown: Shown[] = [];
      for (; next.done !== true && next.value < index; next = indices.next()) shown.push(...show(next.value));
      if (next.done === true || next.value !== index) return shown;
      next = indices.next();
      const standing = subjobState(subjobs, index);
      // A record is skipped if it belongs to an earlier array with the same number.
      if (standing === SUBJOB.QUEUED || standing === SUBJOB.LIVE || record.attrs.ctime !== job.attrs.ctime) shown.push(...show(index));
      else shown.push({ id: record.id, attrs: recordAttrs(record, array.live) });
      return shown;
    },
    rest() {
      const shown: Shown[] = [];
      for (; next.done !== true; next = indices.next()) shown.push(...show(next.value));
      return shown;
    },
  };
}

/** Whether records of the history say more about some subjobs than their array does. */
export const hasRecords = ({ subjobs }: ShownArray): boolean =>
  subjobs.counts[SUBJOB.FINISHED] + subjobs.counts[SUBJOB.FAILED] + subjobs.counts[SUBJOB.DELETED] > 0;
