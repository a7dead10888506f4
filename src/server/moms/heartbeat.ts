// The heartbeat between server and moms: each mom is asked again and again whether it is there. One that stopped (SIGSTOP, a host that hangs) holds its
// connection open and answers nothing.
//
// H1. A mom that has said nothing for node_silence_timeout (45 s) is lost: its vnodes are state-unknown, and down after twice as long. The connection is
//     ended, so that it says hello when it goes on (host.ts).
// H2. A start that a silent mom has not taken goes back to the queue. Nothing runs twice: a mom says that it takes a start before it starts anything of it,
//     and starts nothing after a time of silence before it was welcomed again (mom-link.ts I4). What it has taken waits for it, as a running job does
//     (node_fail_requeue).
// H3. The server's own standstill is nobody else's silence: after a heartbeat that comes late by more than its interval all moms are asked anew.
// H4. A mom that answers but can start nothing (its starter hangs) gets nothing new: its vnodes are state-unknown until it is well.
// H5. Only moms that say so in their hello are asked: one of an earlier release would end the connection at a frame that it does not know.

import { limitOf } from "#model/server-limits.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import { isAsked, type MomRuntime } from "../engine/mom-runtime.ts";
import { nextLook, stoodStill } from "../engine/silence.ts";
import { requeue } from "../jobs/end.ts";
import { logJob } from "../jobs/life.ts";
import { hostOfJob } from "../state/job-hosts.ts";
import { isIn, isWithMom } from "../state/job-phase.ts";
import { hostDown, hostUnknown, report, vnodesAway } from "./host-vnodes.ts";
import { vnodesBack } from "./returned-hosts.ts";
import { endRun } from "./sisters.ts";

/** node_silence_timeout in ms; 0: moms are not asked. */
const silence_ms = ({ state }: Kernel): number => 1000 * limitOf(state, "node_silence_timeout");

/** The first heartbeat: when moms come, and when the attribute has changed. */
export function armHeartbeat(kernel: Kernel): void {
  kernel.timers.clear("heartbeat");
  if (silence_ms(kernel) === 0 || kernel.moms.size === 0) return;
  const heard = [...kernel.moms.values()].filter(isAsked).map(({ heard_ms }) => heard_ms);
  kernel.heartbeat_ms = nextLook(kernel.now_ms, silence_ms(kernel), heard);
  kernel.timers.set("heartbeat", kernel.heartbeat_ms);
}

/** The attribute has changed: moms hear of it at once. */
export function heartbeatChanged(kernel: Kernel): void {
  for (const mom of kernel.moms.values()) {
    mom.heard_ms = kernel.now_ms;
    ping(kernel, mom);
  }
  armHeartbeat(kernel);
}

/** A mom has said hello. */
export function beginHeartbeat(kernel: Kernel, mom: MomRuntime): void {
  if (silence_ms(kernel) > 0) ping(kernel, mom);
  if (kernel.timers.at("heartbeat") === undefined) armHeartbeat(kernel);
}

function ping(kernel: Kernel, mom: MomRuntime): void {
  if (!isAsked(mom)) return;
  const { link } = mom;
  kernel.out.moms.push({ link, type: "mom-ping", data: { number: ++kernel.pings, silence_s: silence_ms(kernel) / 1000 } });
}

/** The timer heartbeat. Returns the moms that are silent (H1). */
export function heartbeat(kernel: Kernel): MomRuntime[] {
  const stood_still = stoodStill(kernel.now_ms, kernel.heartbeat_ms, silence_ms(kernel));
  const silent: MomRuntime[] = [];
  for (const mom of kernel.moms.values()) {
    if (stood_still) mom.heard_ms = kernel.now_ms;
    if (isAsked(mom) && kernel.now_ms - mom.heard_ms >= silence_ms(kernel)) silent.push(mom);
    else ping(kernel, mom);
  }
  armHeartbeat(kernel);
  return silent;
}

/** What is said of a mom that was silent for so many times the limit. */
const words = (kernel: Kernel, times: number): string => `the mom has not answered for ${(times * silence_ms(kernel)) / 1000} seconds`;

/** A mom is silent: called while it still counts as connected. Its vnodes, its connection, and the starts it has not taken. */
export function momSilent(kernel: Kernel, mom: MomRuntime): void {
  const tx = ownTransaction(kernel);
  hostUnknown(kernel, tx, mom.host, words(kernel, 1));
  kernel.timers.set(`still-silent:${mom.host.toLowerCase()}`, kernel.now_ms + silence_ms(kernel));
  kernel.out.actions.push({ kind: "drop-link", link: mom.link });
  for (const [id, run_count] of mom.sent) {
    const job = kernel.state.jobs.get(id);
    if (job === undefined || !isWithMom(job) || job.attrs.run_count !== run_count || !isIn(job, "starting")) continue;
    // A sister is waited for by the time a start has (sisters.ts).
    if (hostOfJob(job).toLowerCase() !== mom.host.toLowerCase()) continue;
    logJob(tx, LOG_EVENT.JOB, id, `Start taken back, execution node ${mom.host} does not answer`);
    endRun(kernel, job, () => requeue(ownTransaction(kernel), job));
  }
}

/** The timer still-silent: nobody has said hello since. */
export function stillSilent(kernel: Kernel, key: string): void {
  if (!kernel.moms.has(key)) hostDown(kernel, ownTransaction(kernel), key, words(kernel, 2));
}

/** H4. ill: undefined: it is well. */
export function momAnswered(kernel: Kernel, mom: MomRuntime, ill: string | undefined): void {
  if ((ill ?? null) === mom.ill) return;
  const tx = ownTransaction(kernel);
  mom.ill = ill ?? null;
  if (mom.ill !== null) return hostUnknown(kernel, tx, mom.host, mom.ill);
  const away = vnodesAway(kernel, mom.host);
  report(kernel, tx, mom);
  vnodesBack(kernel, away);
}
