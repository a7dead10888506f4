// States and substates of jobs, and the transitions between them (docs/reference/attributes.md 6).
//
//   T --> Q <--> H, W          submission; holds; wait for Execution_Time
//   Q --> R --> E --> F        a run and its end
//   R <--> S, U                suspended and resumed
//   R, S, E --> Q, H, W        rerun; H after too many failed starts; W if Execution_Time lies in the future
//   Q, H, W, R, S --> F        deletion; M in place of F: moved to another server
//   Q, H --> B <--> H; B --> F a job array, from its first start to its end
//   X                          a subjob that has ended while its array is still live
//
// I1. No state follows the final states F, M and X, except that X becomes F when the array ends.

export type JobState = "B" | "E" | "F" | "H" | "M" | "Q" | "R" | "S" | "T" | "U" | "W" | "X";

export const JOB_STATES: { readonly [letter in JobState]: string } = {
  B: "array begun",
  E: "exiting",
  F: "finished",
  H: "held",
  M: "moved",
  Q: "queued",
  R: "running",
  S: "suspended",
  T: "in transit",
  U: "suspended because its host is in use",
  W: "waiting",
  X: "subjob over",
};

/** Values of a job's substate. */
export const SUBSTATE = {
  TRANSIT_IN: 0,
  TRANSIT_IN_COMMIT: 1,
  TRANSIT_OUT: 2,
  TRANSIT_OUT_COMMIT: 3,
  QUEUED: 10,
  PRE_STAGE_IN: 11,
  STAGE_IN: 14,
  STAGE_GO: 15,
  STAGE_COMPLETE: 16,
  HELD: 20,
  DEPEND_HOLD: 22,
  WAITING: 30,
  STAGE_FAIL: 37,
  PRE_RUN: 41,
  RUNNING: 42,
  SUSPENDED: 43,
  SCHED_SUSPENDED: 45,
  EXITING: 50,
  STAGE_OUT: 51,
  STAGE_DELETE: 52,
  EXITED: 53,
  ABORT: 54,
  RERUN: 60,
  RERUN1: 61,
  RERUN2: 62,
  RERUN3: 63,
  EXPIRED: 69,
  BEGUN: 70,
  PROVISION: 71,
  TERMINATED: 91,
  FINISHED: 92,
  FAILED: 93,
  MOVED: 94,
} as const;
export type Substate = (typeof SUBSTATE)[keyof typeof SUBSTATE];

/**
 * The states that may follow a state. The state itself is not listed; it may always follow, because the substate may change
 * within a state.
 */
export const NEXT_STATES: { readonly [letter in JobState]: string } = {
  T: "QHWMF",
  Q: "RHWTBMFX",
  H: "QRWTBMFX",
  W: "QHTMF",
  R: "ESUQHWFX",
  S: "REQHWFX",
  U: "REQHWFX",
  E: "QHWFX",
  B: "QHF",
  X: "F",
  F: "",
  M: "",
};

/** Whether a job may change from one state to another. */
export function canFollow(from: JobState, to: JobState): boolean {
  return from === to || NEXT_STATES[from].includes(to);
}

export function isJobState(letter: string): letter is JobState {
  return letter.length === 1 && Object.hasOwn(JOB_STATES, letter);
}

/** Whether a state is final, so that the job is in the history. */
export function isFinished(state: string): boolean {
  return state === "F" || state === "M" || state === "X";
}

/**
 * State and substate of a job that does not run: held, waiting for its Execution_Time, or queued. begun: the job is an array
 * with a subjob that has started.
 */
export function restingState(job: {
  readonly held: boolean;
  readonly dependent?: boolean;
  readonly waits: boolean;
  readonly begun?: boolean;
}): {
  readonly state: JobState;
  readonly substate: Substate;
} {
  if (job.held) return { state: "H", substate: job.dependent === true ? SUBSTATE.DEPEND_HOLD : SUBSTATE.HELD };
  if (job.begun === true) return { state: "B", substate: SUBSTATE.BEGUN };
  return job.waits ? { state: "W", substate: SUBSTATE.WAITING } : { state: "Q", substate: SUBSTATE.QUEUED };
}

const COUNTED: readonly (readonly [word: string, states: string])[] = [
  ["Transit", "T"],
  ["Queued", "Q"],
  ["Held", "H"],
  ["Waiting", "W"],
  ["Running", "RSU"],
  ["Exiting", "E"],
  ["Begun", "B"],
];

/** The value of state_count, which ends in a blank. Suspended jobs are counted as running. */
export function stateCountText(counts: ReadonlyMap<string, number>): string {
  let text = "";
  for (const [word, states] of COUNTED) {
    let sum = 0;
    for (const state of states) sum += counts.get(state) ?? 0;
    text += `${word}:${sum} `;
  }
  return text;
}

/** Values of accrue_type: the kind of time that a job accrues at present. */
export const ACCRUE = { INITIAL: 0, INELIGIBLE: 1, ELIGIBLE: 2, RUNNING: 3, EXITING: 4 } as const;
