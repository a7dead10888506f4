// What the core does when the system's clock was set. Durations do not change: timeouts, heartbeats, intervals. Events at a
// fixed time happen at that time of the new clock: Execution_Time, start and end of reservations.

import { jumpText } from "#support/clock-jumps.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";

/** Timers (tick.ts) that are for a fixed time of the clock. */
const OF_THE_DAY: ReadonlySet<string> = new Set(["wait", "resv"]);

const staysAt = (timer: string): boolean => {
  const colon = timer.indexOf(":");
  return OF_THE_DAY.has(colon < 0 ? timer : timer.slice(0, colon));
};

/** Called when the clock was set. by_ms: forward, or back if negative. kernel.now_ms is the new time. */
export function clockSet(kernel: Kernel, by_ms: number): void {
  const text = `the system clock was set ${jumpText(by_ms)}`;
  ownTransaction(kernel).log({ event: LOG_EVENT.SYSTEM, class: "Svr", object: `Server@${kernel.config.host}`, text });
  kernel.timers.shift(by_ms, staysAt);
  kernel.moms.heartbeat_ms += by_ms;
  kernel.moms.reports_ms += by_ms;
  kernel.scheds.heartbeat_ms += by_ms;
  const { runners } = kernel;
  for (const name of ["heard_ms", "heartbeat_ms", "passed_ms", "sent_ms"] as const) runners[name] += by_ms;
  runners.crashes = runners.crashes.map((crash_ms) => crash_ms + by_ms);
  for (const [name, since_ms] of runners.idle) runners.idle.set(name, since_ms + by_ms);
  for (const mom of kernel.moms.by_host.values()) {
    mom.heard_ms += by_ms;
    mom.sent_ms += by_ms;
    if (mom.asked_ms !== null) mom.asked_ms += by_ms;
    if (mom.pinged !== null) mom.pinged = { ...mom.pinged, at_ms: mom.pinged.at_ms + by_ms };
  }
  for (const [host, lost] of kernel.moms.lost) kernel.moms.lost.set(host, { ...lost, heard_ms: lost.heard_ms + by_ms });
  for (const [host, since_ms] of kernel.moms.silent_since) kernel.moms.silent_since.set(host, since_ms + by_ms);
  for (const runtime of kernel.scheds.by_name.values()) {
    runtime.away_ms += by_ms;
    runtime.heard_ms += by_ms;
    if (runtime.silent !== null) runtime.silent = { ...runtime.silent, heard_ms: runtime.silent.heard_ms + by_ms };
    runtime.crashes = runtime.crashes.map((crash_ms) => crash_ms + by_ms);
  }
  for (const { sisters } of kernel.moms.crews.values())
    for (const sister of sisters.values()) if (sister.away_since_ms !== null) sister.away_since_ms += by_ms;
  for (const [id, start] of kernel.jobs.starting) {
    const waits = start.waits.map((wait) => (wait.until_ms === null ? wait : { ...wait, until_ms: wait.until_ms + by_ms }));
    kernel.jobs.starting.set(id, { ...start, waits });
  }
}
