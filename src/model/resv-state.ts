// States and substates of reservations, and the transitions between them (docs/reference/commands.md 5,
// docs/reference/scheduler.md 9).
//
//   UNCONFIRMED --confirmed--> CONFIRMED --begins--> RUNNING --ends--> BEING_DELETED (its jobs end) --> gone
//       | denied: gone            ^   |  \             |  ^ \
//                                 |   |   altered      |  |  altered: BEING_ALTERED, then back to the former state
//                                 |  a vnode lost      |  a standing one: an occurrence ends, the next is CONFIRMED
//                                 |   v                v
//                                 +- DEGRADED --begins--> RUNNING (substate degraded)
//
// I1. While a reservation is being altered, its substate says what it was before: confirmed, running, degraded or in conflict.
// I2. If a running reservation loses a vnode, its state is still RUNNING, and its substate becomes degraded.

export const RESV_STATE = {
  NONE: 0,
  UNCONFIRMED: 1,
  CONFIRMED: 2,
  WAIT: 3,
  TIME_TO_RUN: 4,
  RUNNING: 5,
  FINISHED: 6,
  BEING_DELETED: 7,
  DELETED: 8,
  DELETING_JOBS: 9,
  DEGRADED: 10,
  BEING_ALTERED: 11,
  IN_CONFLICT: 12,
} as const;
export type ResvState = (typeof RESV_STATE)[keyof typeof RESV_STATE];

/** The two names of each state that pbs_rstat shows, by the number of the state. */
export const RESV_STATE_WORDS: readonly (readonly [short: string, long: string])[] = [
  ["NO", "RESV_NONE"],
  ["UN", "RESV_UNCONFIRMED"],
  ["CO", "RESV_CONFIRMED"],
  ["WT", "RESV_WAIT"],
  ["TR", "RESV_TIME_TO_RUN"],
  ["RN", "RESV_RUNNING"],
  ["FN", "RESV_FINISHED"],
  ["BD", "RESV_BEING_DELETED"],
  ["DE", "RESV_DELETED"],
  ["DJ", "RESV_DELETING_JOBS"],
  ["DG", "RESV_DEGRADED"],
  ["AL", "RESV_BEING_ALTERED"],
  ["IC", "RESV_IN_CONFLICT"],
];

const { UNCONFIRMED, CONFIRMED, RUNNING, BEING_DELETED, DEGRADED, BEING_ALTERED } = RESV_STATE;

/** The states that may follow a state. The state itself is not listed. No reservation ever enters a state that has no entry here. */
const NEXT: ReadonlyMap<number, readonly number[]> = new Map([
  [UNCONFIRMED, [CONFIRMED, RUNNING, BEING_DELETED]],
  [CONFIRMED, [RUNNING, DEGRADED, BEING_ALTERED, BEING_DELETED]],
  [DEGRADED, [CONFIRMED, RUNNING, BEING_ALTERED, BEING_DELETED]],
  [RUNNING, [CONFIRMED, DEGRADED, BEING_ALTERED, BEING_DELETED]],
  [BEING_ALTERED, [CONFIRMED, RUNNING, DEGRADED, BEING_DELETED]],
  [BEING_DELETED, []],
]);

/** Whether a reservation may change from one state to another. */
export function canResvFollow(from: number, to: number): boolean {
  return from === to || NEXT.get(from)?.includes(to) === true;
}

/** Whether a reservation in this state has vnodes that are set aside for its time. */
export function isPromised(state: number): boolean {
  return state === CONFIRMED || state === RUNNING || state === DEGRADED || state === BEING_ALTERED;
}
