// Numbers of jobs: ascending up to max_job_sequence_id, then from 1 again, without those that are still in use.

import type { ServerState } from "../state/state.ts";

const MAX_DEFAULT = 9_999_999;

export function nextJobNumber(state: ServerState): number {
  const limit = state.server["max_job_sequence_id"];
  const max = typeof limit === "number" ? limit : MAX_DEFAULT;
  let seq = state.next_seq;
  do seq = seq >= max ? 1 : seq + 1;
  while (state.jobs.has(`${seq}.${state.name}`) || state.jobs.has(`${seq}[].${state.name}`) || isResv(state, seq));
  return seq;
}

/** Reservations share the numbers with jobs; a queue may already have the name that a reservation's queue would have. */
function isResv(state: ServerState, seq: number): boolean {
  if (state.resvs.size === 0 && !state.queues.has(`R${seq}`)) return false;
  return LETTERS.some((letter) => state.queues.has(`${letter}${seq}`) || state.resvs.has(`${letter}${seq}.${state.name}`));
}
const LETTERS = ["R", "S", "M"] as const;
