// Subjobs for display (docs/reference/commands.md 1.4). A subjob that has started is a job of its own; a subjob that has
// ended has a record in the history. For all others, the attributes are computed from the array's attributes. The waiting
// subjobs of a large array therefore share one record of attributes.

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

/** An array with its subjobs. live: it is a live job; else it is in the history. */
export type ShownArray = { readonly job: Job; readonly live: boolean; readonly subjobs: Subjobs };

/** Returns an array together with its subjobs; null: the job is not an array. */
export function shownArray(job: Job, live: boolean): ShownArray | null {
  if (job.subjobs !== undefined) return { job, live, subjobs: job.subjobs };
  if (job.attrs["array"] !== true) return null;
  const { array_indices_submitted, subjobs } = job.attrs as JobAttrs & {
    readonly array_indices_submitted: string;
    readonly subjobs: string;
  };
  return { job, live, subjobs: loadSubjobs(array_indices_submitted, subjobs) };
}

/** The attributes of a job for display. For an array, some are computed. A job that is suspended because someone uses its host has state U. */
export function shownAttrs(job: Job): Attrs {
  const { attrs, subjobs } = job;
  if (subjobs === undefined) return isIdled(job) && isRunning(job) ? { ...attrs, job_state: "U" } : attrs;
  return { ...attrs, array_state_count: subjobCountText(subjobs), array_indices_remaining: remainingText(subjobs) };
}

/** The attributes of a subjob that has ended. Its state is X as long as its array is live. */
function recordAttrs(record: Job, live: boolean): Attrs {
  return live ? { ...record.attrs, job_state: "X" } : record.attrs;
}

/** The attributes of a subjob that is neither a job of its own nor in the history, computed from the attributes of its array. */
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

/** A walk through an array's subjobs in order of index. The caller reads the subjobs' records from the history and passes them to record() in that order. */
export type Expansion = {
  readonly array: ShownArray;
  /** returns the requested subjobs before the subjob of the record, and then this subjob, if it is requested; nothing if the walk has already passed it */
  record(record: Job): Shown[];
  /** returns the subjobs after the last record */
  rest(): Shown[];
};

/** Begins a walk. asked: only these indices, in order. Subjobs with equal attributes share one record of attributes. */
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
      // If the record belongs to an earlier array with the same number, it is not used.
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

/** Whether some subjobs have records in the history. */
export const hasRecords = ({ subjobs }: ShownArray): boolean =>
  subjobs.counts[SUBJOB.FINISHED] + subjobs.counts[SUBJOB.FAILED] + subjobs.counts[SUBJOB.DELETED] > 0;
