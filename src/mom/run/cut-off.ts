// A mom that is cut off from its server ends its rerunnable jobs before the server starts them elsewhere (protocol/mom-link.ts I7). Jobs that are not rerunnable go
// on: the server deletes such a job, and the mom ends it when it hears from the server again.
//
// Z1. Time counts from the latest message that the server has answered. A network that carries data in one direction only therefore counts as cut. If nobody listens
//     at the server's address, that counts as an answer, too: no server runs, so none can start jobs elsewhere. In a complex with two servers it does not count,
//     because the other server may run (shell/known-leader.ts).
// Z2. The mom ends a run a margin before its grace is over. The starter has the lease of the run, which ends half a margin
//     later, and kills the run if the mom is stopped or dead.
// Z3. Before the first contact no grace is known, and nothing is ended. A mom that was started again takes over what the
//     starter knows about the last contact.

import { LOG_EVENT } from "#support/log-event.ts";
import type { Lease, RunKey } from "../job/starter-link.ts";
import { exitWithheld } from "./life.ts";
import { type Context, keyOf, log } from "./record.ts";
import { OVER } from "./requests.ts";
import { untilOf } from "./server-contact.ts";
import type { MomState, Run } from "./state.ts";
import { beginEnding } from "./watch.ts";

/** A run that is being ended for one of these reasons need not be cut off: its job will have no further run because of this end, or the run is cut off already. */
const NO_MORE: ReadonlySet<NonNullable<Run["ending"]>["why"]> = new Set(["cut-off", "discard", "delete"]);

/** Ends the runs that must not go on without an answer of the server. Called before every event. */
export function endCutOff(cx: Context): void {
  const { state, now_ms } = cx;
  if (state.contact === null) return;
  for (const run of [...state.runs.values()]) {
    if (OVER.has(run.phase.name) || (run.ending !== null && NO_MORE.has(run.ending.why))) continue;
    const until = untilOf(state, run);
    if (until === null || now_ms < until.own_ms) continue;
    const silent_s = Math.round((now_ms - state.contact.answered_ms) / 1000);
    const text = `the server has not answered for ${silent_s} seconds: the job is ended, because the server may start it elsewhere`;
    log(cx, LOG_EVENT.ERROR, run.job.id, text);
    beginEnding(cx, run, "cut-off", 0);
    exitWithheld(cx, run);
  }
}

/** Returns the lease for the starter; null: the server has never answered. */
export function leaseOf(state: MomState): Lease | null {
  const { contact, runs } = state;
  if (contact === null) return null;
  const leased: (RunKey & { readonly until_ms: number })[] = [];
  for (const run of runs.values()) {
    const until = OVER.has(run.phase.name) ? null : untilOf(state, run);
    if (until !== null) leased.push({ ...keyOf(run), until_ms: until.leased_ms });
  }
  return { contact, runs: leased };
}
