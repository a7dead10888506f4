// The phase of a job: queued, held, running, ... It is computed from the stored attributes job_state and substate and never
// stored beside them. All other files of the server use the phase and not job_state and substate.
//
//   transit --> queued, held, waiting          submission, holds, Execution_Time
//   queued --> starting --> running --> over   a run
//   running <--> suspended, resumable          the job does not go on; if resumable, its scheduler may resume it
//   starting, running --> rerunning            its mom must end the run, so that the job can run again
//   a run --> queued, held, waiting            rerun; too many failed starts; files that could not be staged in
//   queued, held <--> begun                    a job array with subjobs that have started
//
// F1. Some phases have several substates (held: HELD and DEPEND_HOLD; waiting: WAITING and STAGE_FAIL), which give the
//     reason. A transition depends on the reason only if the phase has a field for it.
// F2. States of PBS that this server never sets (E, M, U) also have a phase, because jobs of other servers may have them.

import { SUBSTATE } from "#model/job-state.ts";
import type { Job, JobAttrs } from "./state.ts";

/** The fields of every phase of a run. start_s: the time at which the job was sent to its mom, epoch seconds. */
export type RunFacts = { readonly exec_vnode: string; readonly start_s: number; readonly run_count: number };

export type JobPhase =
  | { readonly name: "transit" }
  | { readonly name: "queued" }
  /** holds: the text of Hold_Types. dependent: the job is held for a dependency */
  | { readonly name: "held"; readonly holds: string; readonly dependent: boolean }
  /** until_s: Execution_Time */
  | { readonly name: "waiting"; readonly until_s: number }
  | { readonly name: "begun"; readonly start_s: number }
  /** the job was sent to its mom, which has not confirmed the start */
  | ({ readonly name: "starting" } & RunFacts)
  | ({ readonly name: "running" } & RunFacts)
  | ({ readonly name: "rerunning" } & RunFacts)
  /** the job is suspended until an operator resumes it */
  | ({ readonly name: "suspended" } & RunFacts)
  /** the job is suspended, and its scheduler may resume it */
  | ({ readonly name: "resumable" } & RunFacts)
  | ({ readonly name: "exiting" } & RunFacts)
  /** how null: the job was moved to another server. exit_status undefined: the end of the run is unknown */
  | { readonly name: "over"; readonly how: HowOver | null; readonly exit_status: number | undefined };

export type PhaseName = JobPhase["name"];

/** An object with the attributes that determine the phase. */
type Phased = { readonly attrs: Pick<JobAttrs, "job_state" | "substate"> };

/** The name of a job's phase, for callers that do not need its fields. */
export function phaseName({ attrs: { job_state, substate } }: Phased): PhaseName {
  switch (job_state) {
    case "T":
      return "transit";
    case "Q":
      return "queued";
    case "H":
      return "held";
    case "W":
      return "waiting";
    case "B":
      return "begun";
    case "R":
    case "U":
      return substate === SUBSTATE.PRE_RUN ? "starting" : substate === SUBSTATE.RERUN ? "rerunning" : "running";
    case "S":
      return substate === SUBSTATE.SCHED_SUSPENDED ? "resumable" : "suspended";
    case "E":
      return "exiting";
    default:
      return "over";
  }
}

export function phaseOf(job: Pick<Job, "attrs">): JobPhase {
  const { attrs } = job;
  const name = phaseName(job);
  switch (name) {
    case "transit":
    case "queued":
      return { name };
    case "held":
      return { name, holds: attrs.Hold_Types, dependent: attrs.substate === SUBSTATE.DEPEND_HOLD };
    case "waiting":
      return { name, until_s: attrs.Execution_Time ?? 0 };
    case "begun":
      return { name, start_s: attrs.stime ?? 0 };
    case "over":
      return { name, how: howOver(attrs.substate), exit_status: attrs.Exit_status };
    default:
      return { name, exec_vnode: attrs.exec_vnode ?? "", start_s: attrs.stime ?? 0, run_count: attrs.run_count ?? 0 };
  }
}

/** job_state and substate for the phases of a run. For the other phases see restingState in src/model/job-state.ts. */
export const RUN_PHASE = {
  starting: { job_state: "R", substate: SUBSTATE.PRE_RUN },
  running: { job_state: "R", substate: SUBSTATE.RUNNING },
  rerunning: { job_state: "R", substate: SUBSTATE.RERUN },
  suspended: { job_state: "S", substate: SUBSTATE.SUSPENDED },
  resumable: { job_state: "S", substate: SUBSTATE.SCHED_SUSPENDED },
} as const;

/** job_state and substate of a job that has ended: by itself with exit status 0, by itself with another status, or by a command. */
export const OVER = {
  finished: { job_state: "F", substate: SUBSTATE.FINISHED },
  failed: { job_state: "F", substate: SUBSTATE.FAILED },
  deleted: { job_state: "F", substate: SUBSTATE.TERMINATED },
} as const;
export type HowOver = keyof typeof OVER;

const HOW_OVER: ReadonlyMap<number, HowOver> = new Map(
  (["finished", "failed", "deleted"] as const).map((how) => [OVER[how].substate, how]),
);
export const howOver = (substate: number): HowOver | null => HOW_OVER.get(substate) ?? null;

// --- tests that many callers need

/** Whether the job is in one of these phases. */
export const isIn = (job: Phased, ...names: readonly PhaseName[]): boolean => names.includes(phaseName(job));

/** Whether the job is queued, held, waiting or in transit: it is not with a mom. */
export const isWaiting = (job: Phased): boolean => WAITING.has(phaseName(job));
const WAITING: ReadonlySet<PhaseName> = new Set(["queued", "held", "waiting", "transit"]);

/** Whether the job is with a mom: running, suspended or exiting. */
export const isWithMom = (job: Phased): boolean => WITH_MOM.has(phaseName(job));
const WITH_MOM: ReadonlySet<PhaseName> = new Set(["starting", "running", "rerunning", "suspended", "resumable", "exiting"]);

/** Whether the job is with a mom and neither suspended nor exiting: state R. */
export const isRunning = (job: Phased): boolean => isIn(job, "starting", "running", "rerunning");

export const isHeldForDependency = (job: Pick<Job, "attrs">): boolean => isIn(job, "held") && job.attrs.substate === SUBSTATE.DEPEND_HOLD;

export const isSuspended = (job: Phased): boolean => isIn(job, "suspended", "resumable");

/** Whether the job waits for its scheduler to start or resume it. */
export const isForSched = (job: Phased): boolean => isIn(job, "queued", "resumable");

/** Whether a scheduler may plan the start of the job; for an array that has begun, the start of its next subjob. */
export const isPlanned = (job: Phased): boolean => isIn(job, "queued", "resumable", "begun");
