// Moms of other hosts report by datagrams. This file decides which of them the server pings over their connections, and
// which count as silent.
//
// M1. A mom of which the server has heard nothing for the time of MISSED_REPORTS reports is pinged (mom-ping). If nothing has come over its connection
//     node_answer_timeout (5 s) later, it is silent; heartbeat.ts says what follows. Lost datagrams alone therefore change no vnode.
// M2. Time in which the server itself stood still counts neither as missed reports nor as time to answer.
// M3. Reports show that a mom is alive, but not that it receives what the server sends. A mom that has not accepted a start
//     for the same time is also pinged, and its reports do not count as an answer.

import { limitOf } from "#model/limits/server-limits.ts";
import type { MomReport } from "#protocol/mom-link.ts";
import type { Kernel } from "../engine/kernel.ts";
import { MISSED_REPORTS, type MomRuntime } from "../engine/mom-runtime.ts";

const answer_ms = ({ state }: Kernel): number => 1000 * limitOf(state, "node_answer_timeout");
const isWatched = (kernel: Kernel): boolean => limitOf(kernel.state, "node_silence_timeout") > 0;

/** A mom that reports, with the interval of its reports. */
type Reporting = MomRuntime & { readonly every_ms: number };
const isReporting = (mom: MomRuntime): mom is Reporting => mom.every_ms !== null;

/** The time at which the mom must be pinged or counts as silent, if nothing comes from it before. */
function dueOf(kernel: Kernel, mom: Reporting): number {
  if (mom.asked_ms !== null) return mom.asked_ms + answer_ms(kernel);
  const since_ms = mom.sent.size === 0 ? mom.heard_ms : Math.min(mom.heard_ms, mom.sent_ms);
  return since_ms + MISSED_REPORTS * mom.every_ms;
}

/** Sets the timer `reports` to the next time at which a mom is to be pinged or counts as silent. */
function armReports(kernel: Kernel): void {
  kernel.timers.clear("reports");
  if (!isWatched(kernel)) return;
  const due = [...kernel.moms.by_host.values()].filter(isReporting).map((mom) => dueOf(kernel, mom));
  if (due.length === 0) return;
  kernel.moms.reports_ms = Math.max(kernel.now_ms, Math.min(...due));
  kernel.timers.set("reports", kernel.moms.reports_ms);
}

/** Called when a mom has said hello: sets the timer `reports` if it is not set. */
export function watchReports(kernel: Kernel): void {
  if (kernel.timers.at("reports") === undefined) armReports(kernel);
}

/** Called when node_silence_timeout or node_answer_timeout has changed: the time of every mom begins anew. */
export function reportsChanged(kernel: Kernel): void {
  for (const mom of kernel.moms.by_host.values()) hearAnew(kernel, mom);
  armReports(kernel);
}

function hearAnew(kernel: Kernel, mom: MomRuntime): void {
  mom.heard_ms = kernel.now_ms;
  mom.sent_ms = kernel.now_ms;
  mom.asked_ms = null;
}

/** Notes that a mom has sent something. is_report: it was a report, which does not count as an answer (M3) */
export function momHeard(kernel: Kernel, mom: MomRuntime, is_report: boolean): void {
  mom.heard_ms = kernel.now_ms;
  if (!is_report) mom.asked_ms = null;
}

/** Notes whether a report came by datagram or over the connection, and what it says about the mom's clock. */
export function noteReport(now_ms: number, mom: MomRuntime, { clock_ms, unheard }: MomReport): void {
  // A report that only asks (mom-link.ts I7) always takes the connection.
  if (clock_ms === undefined) return;
  mom.reported_ms[unheard === undefined ? "datagram" : "connection"] = now_ms;
  mom.ahead_ms = Math.round(clock_ms - now_ms);
}

/** Called by the timer `reports`. ask: sends a mom-ping. Returns the moms that are silent (M1). */
export function missedReports(kernel: Kernel, ask: (mom: MomRuntime) => void): MomRuntime[] {
  const stood_still = kernel.now_ms - kernel.moms.reports_ms > answer_ms(kernel) / 2;
  const silent: MomRuntime[] = [];
  for (const mom of [...kernel.moms.by_host.values()].filter(isReporting)) {
    if (stood_still) hearAnew(kernel, mom);
    if (dueOf(kernel, mom) > kernel.now_ms) continue;
    if (mom.asked_ms !== null) {
      silent.push(mom);
      continue;
    }
    mom.asked_ms = kernel.now_ms;
    ask(mom);
  }
  armReports(kernel);
  return silent;
}
