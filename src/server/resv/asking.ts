// Decides which schedulers are asked to confirm a reservation, and what follows from their answers
// (docs/reference/scheduler.md 9).
//
// I1. If a reservation has a partition (requested with -p, or set by the scheduler that confirmed it), only that partition's
//     scheduler is asked. Otherwise every scheduler is asked; the first that confirms gets the reservation.
// I2. A new reservation is denied when all schedulers that can answer have refused, and at least one has. The server
//     does not wait for a scheduler that is down, unless the reservation is for its partition.
// I3. A scheduler is asked once. After its answer it no longer sees the question.

import { RESV_STATE } from "#model/resv-state.ts";
import { type ResvAsk, SCHED_COMMAND, type SchedCommand } from "#protocol/sched-link.ts";
import type { Kernel } from "../engine/kernel.ts";
import { runtimeOf } from "../engine/sched-runtime.ts";
import { schedOfPartition } from "../state/partitions.ts";
import { occurrencesLeft, type Times } from "../state/resv-occurrences.ts";
import type { Resv, ResvAttrs, Sched, ServerState } from "../state/state.ts";
import { placesLost } from "./health.ts";

export type Question = ResvAsk["kind"];

/** What schedulers must decide about a reservation in its present state; null: nothing. */
export function questionOf(attrs: ResvAttrs): Question | null {
  if (attrs.reserve_state === RESV_STATE.UNCONFIRMED) return "confirm";
  if (attrs.reserve_state === RESV_STATE.BEING_ALTERED) return "alter";
  return attrs["reconfirm"] === true && attrs.reserve_substate !== RESV_STATE.CONFIRMED ? "reconfirm" : null;
}

/** The fields of the kernel that the questions to schedulers depend on. */
export type AskSource = Pick<Kernel, "state" | "resvs" | "timers">;

/** The question about a reservation that the scheduler is sent; undefined: none. */
export function askOf(kernel: AskSource, resv: Resv, sched: Sched): ResvAsk | undefined {
  const kind = questionOf(resv.attrs);
  if (kind === null || !isAsked(kernel.state, resv, sched) || kernel.resvs.refusals.get(resv.id)?.has(sched.name) === true)
    return undefined;
  const { attrs } = resv;
  const occurrences = placesWanted(kernel, resv, kind);
  return {
    kind,
    asked_s: attrs.alteration?.asked_s ?? attrs.ctime,
    occurrences,
    ...(attrs.reserve_start === undefined ? { duration_s: attrs.reserve_duration } : {}),
  };
}

/**
 * The occurrences for which vnodes are needed. New reservation: all. Altered reservation: the present occurrence. Degraded
 * reservation: those whose vnodes are lost or too small.
 */
function placesWanted(kernel: AskSource, resv: Resv, kind: Question): readonly Times[] {
  const left = occurrencesLeft(resv);
  const { promised } = resv.attrs;
  if (kind === "alter") return left.slice(0, 1);
  if (kind === "confirm" || promised === undefined) return left;
  const lost = placesLost(kernel, resv.attrs);
  return left.filter((_, at) => lost[at] === true);
}

function isAsked(state: ServerState, { attrs }: Resv, sched: Sched): boolean {
  if (sched.attrs["scheduling"] !== true) return false;
  return attrs.partition === undefined || schedOfPartition(state, attrs.partition)?.name === sched.name;
}

/** Triggers a cycle of every scheduler that must answer a new question. */
export function askAll(kernel: Kernel, resv: Resv): void {
  kernel.resvs.refusals.delete(resv.id);
  kernel.changes.told.resvs.add(resv.id);
  const command: SchedCommand = questionOf(resv.attrs) === "reconfirm" ? SCHED_COMMAND.RESV_RECONFIRM : SCHED_COMMAND.NEW;
  for (const sched of kernel.state.scheds.values())
    if (isAsked(kernel.state, resv, sched)) kernel.follow.carryOut(kernel, { kind: "trigger-sched", sched: sched.name, command });
}

/** Notes that a scheduler has refused. Returns whether all schedulers that could answer have refused now. */
export function refusedBy(kernel: Kernel, resv: Resv, sched: string): boolean {
  const refusals = kernel.resvs.refusals.get(resv.id) ?? new Set<string>();
  kernel.resvs.refusals.set(resv.id, refusals.add(sched));
  kernel.changes.told.resvs.add(resv.id);
  return isRefused(kernel, resv);
}

/** Whether all schedulers that could answer have refused (I2). */
export function isRefused(kernel: Kernel, resv: Resv): boolean {
  const refusals = kernel.resvs.refusals.get(resv.id);
  if (refusals === undefined || refusals.size === 0 || questionOf(resv.attrs) === null) return false;
  for (const sched of kernel.state.scheds.values()) {
    if (!isAsked(kernel.state, resv, sched) || refusals.has(sched.name)) continue;
    const runtime = runtimeOf(kernel, sched.name);
    const is_coming = runtime.started && !runtime.leaving && runtime.unreached === null;
    if (resv.attrs.partition !== undefined || runtime.link !== null || is_coming) return false;
  }
  return true;
}
