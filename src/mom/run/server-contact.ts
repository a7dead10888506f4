// When the server last answered, and until when each run may go on without another answer (protocol/mom-link.ts I7). cut-off.ts
// says what follows. Pure.

import { isSister } from "../job/sister.ts";
import type { Lease, ServerContact } from "../job/starter-link.ts";
import type { MomState, Run } from "./state.ts";

/** The margin is this part of the grace, but not longer than MARGIN_S_MAX. */
const MARGIN_PART = 1 / 4;
const MARGIN_S_MAX = 20;

const margin_ms = (grace_s: number): number => 1000 * Math.min(MARGIN_S_MAX, MARGIN_PART * grace_s);

/** The times until which a run may go on without an answer. own_ms: the mom ends it then; leased_ms: the starter does, if the mom has not */
type Until = { readonly own_ms: number; readonly leased_ms: number };

/** Returns these times for a run; null: it may go on for ever. */
export function untilOf({ contact, config }: MomState, run: Run): Until | null {
  if (contact === null || run.job.attrs["Rerunable"] === false) return null;
  const grace_s = isSister(run.job, config.host) ? contact.sister_s : contact.requeue_s;
  if (grace_s === 0) return null;
  const end_ms = contact.answered_ms + 1000 * grace_s;
  return { own_ms: end_ms - margin_ms(grace_s), leased_ms: end_ms - margin_ms(grace_s) / 2 };
}

/**
 * Notes that the server has answered a message that the mom sent at at_ms; grace null: no server runs. If a later message was answered before, this changes
 * only the grace.
 */
export function contacted(state: MomState, at_ms: number, grace: Pick<ServerContact, "requeue_s" | "sister_s"> | null): void {
  const terms = grace ?? state.contact;
  if (terms === null) return;
  const { requeue_s, sister_s } = terms;
  state.contact = { answered_ms: Math.max(at_ms, state.contact?.answered_ms ?? at_ms), requeue_s, sister_s };
}

/** Takes over the contact that an earlier mom had. */
export function inheritContact(state: MomState, lease: Lease | undefined): void {
  if (state.contact === null && lease !== undefined) state.contact = lease.contact;
}
