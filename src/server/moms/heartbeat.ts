// The heartbeat between server and moms: the server repeatedly asks each mom of its own host whether it is alive (a ping).
// This is needed because a suspended mom (SIGSTOP, a host that hangs) keeps its connection open and answers nothing. Moms of
// other hosts report without being pinged (missed-reports.ts). If they become silent, they are also handled here.
//
// H1. A mom that sends nothing for node_silence_timeout (45 s) counts as lost: its vnodes become state-unknown, and down
//     after the same time again. Its connection is closed, so that the mom says hello when it continues (host.ts).
// H2. If a silent mom has not accepted a job that was sent to it, the job is queued again. The job cannot run twice: a mom
//     confirms a start before it does anything for it, and after a silence it starts nothing before the server has welcomed
//     it again (mom-link.ts I4). Jobs that the mom has accepted wait for it, like running jobs (node_fail_requeue).
// H3. Time in which the server itself stood still does not count as silence of moms. After a heartbeat that is late by
//     more than its interval, all moms are pinged again.
// H4. A mom that answers but cannot start jobs (its starter hangs) gets no new jobs: its vnodes are state-unknown until it
//     can start jobs again.
// H5. Only moms that announce in their hello that they answer pings are pinged. A mom of an earlier release would close the
//     connection, because it does not know the frame.

import { limitOf } from "#model/limits/server-limits.ts";
import type { MomToServer, ServerToMom } from "#protocol/mom-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import { isAsked, type MomRuntime } from "../engine/mom-runtime.ts";
import { nextLook, stoodStill } from "../engine/silence.ts";
import { logJob } from "../jobs/life.ts";
import { hostOfJob } from "../state/job-hosts.ts";
import { isIn, isWithMom } from "../state/job-phase.ts";
import { hostDown, hostUnknown, report, vnodesAway } from "./host-vnodes.ts";
import { missedReports, watchReports } from "./missed-reports.ts";
import { vnodesBack } from "./returned-hosts.ts";
import { endRun } from "./sisters.ts";

/** node_silence_timeout in ms; 0: moms are not pinged. */
const silence_ms = ({ state }: Kernel): number => 1000 * limitOf(state, "node_silence_timeout");

/** Whether a mom takes part in the heartbeat. */
const isPinged = (mom: MomRuntime): boolean => isAsked(mom) && mom.every_ms === null;

/** Sets the timer of the next heartbeat. Called when a mom connects and when node_silence_timeout has changed. */
function armHeartbeat(kernel: Kernel): void {
  kernel.timers.clear("heartbeat");
  if (silence_ms(kernel) === 0 || kernel.moms.by_host.size === 0) return;
  const heard = [...kernel.moms.by_host.values()].filter(isPinged).map(({ heard_ms }) => heard_ms);
  kernel.moms.heartbeat_ms = nextLook(kernel.now_ms, silence_ms(kernel), heard);
  kernel.timers.set("heartbeat", kernel.moms.heartbeat_ms);
}

/** Called when node_silence_timeout has changed: tells the moms the new value. */
export function heartbeatChanged(kernel: Kernel): void {
  // All moms get the same question, so that it can go out as one (driver/mom-frames.ts).
  const question = newQuestion(kernel);
  for (const mom of kernel.moms.by_host.values()) {
    mom.heard_ms = kernel.now_ms;
    ping(kernel, mom, question);
  }
  armHeartbeat(kernel);
}

/** Called when a mom has said hello: pings it, and starts the heartbeat. */
export function beginHeartbeat(kernel: Kernel, mom: MomRuntime): void {
  if (silence_ms(kernel) > 0) ping(kernel, mom);
  if (kernel.timers.at("heartbeat") === undefined) armHeartbeat(kernel);
  watchReports(kernel);
}

const newQuestion = (kernel: Kernel): ServerToMom["mom-ping"] => ({
  number: ++kernel.moms.pings,
  silence_s: silence_ms(kernel) / 1000,
});

function ping(kernel: Kernel, mom: MomRuntime, data = newQuestion(kernel)): void {
  if (!isAsked(mom)) return;
  const { link } = mom;
  mom.pinged = { number: data.number, at_ms: kernel.now_ms };
  kernel.out.moms.push({ link, type: "mom-ping", data });
}

/** Called by the timer `heartbeat`: pings the moms of the server's host. Returns those that count as lost (H1). */
export function heartbeat(kernel: Kernel): MomRuntime[] {
  const stood_still = stoodStill(kernel.now_ms, kernel.moms.heartbeat_ms, silence_ms(kernel));
  const silent: MomRuntime[] = [];
  for (const mom of [...kernel.moms.by_host.values()].filter(isPinged)) {
    if (stood_still) mom.heard_ms = kernel.now_ms;
    if (kernel.now_ms - mom.heard_ms >= silence_ms(kernel)) silent.push(mom);
    else ping(kernel, mom);
  }
  armHeartbeat(kernel);
  return silent;
}

/** Called by the timer `reports`: pings the moms of other hosts whose reports are overdue. Returns those that count as lost. */
export const unreported = (kernel: Kernel): MomRuntime[] => missedReports(kernel, (mom) => ping(kernel, mom));

const words = (silent_ms: number): string => `the mom has not answered for ${Math.round(silent_ms / 1000)} seconds`;

/** Handles a silent mom while it still counts as connected: its vnodes, its connection, and the starts that it has not accepted. */
export function momSilent(kernel: Kernel, mom: MomRuntime): void {
  const tx = ownTransaction(kernel);
  hostUnknown(kernel, tx, mom.host, words(kernel.now_ms - mom.heard_ms));
  const key = mom.host.toLowerCase();
  kernel.moms.silent_since.set(key, mom.heard_ms);
  kernel.timers.set(`still-silent:${key}`, kernel.now_ms + silence_ms(kernel));
  kernel.out.actions.push({ kind: "drop-link", link: mom.link });
  for (const [id, run_count] of mom.sent) {
    const job = kernel.state.jobs.get(id);
    if (job === undefined || !isWithMom(job) || job.attrs.run_count !== run_count || !isIn(job, "starting")) continue;
    // Starts are taken back only on the mother superior. For a silent sister, the time limit of the start applies (sisters.ts).
    if (hostOfJob(job).toLowerCase() !== mom.host.toLowerCase()) continue;
    logJob(tx, LOG_EVENT.JOB, id, `Start taken back, execution node ${mom.host} does not answer`);
    endRun(kernel, job, { kind: "start-taken-back" });
  }
}

/** Called by the timer `still-silent`: if the mom has not said hello meanwhile, its vnodes become down (H1). */
export function stillSilent(kernel: Kernel, key: string): void {
  const since_ms = kernel.moms.silent_since.get(key) ?? kernel.now_ms;
  kernel.moms.silent_since.delete(key);
  if (!kernel.moms.by_host.has(key)) hostDown(kernel, ownTransaction(kernel), key, words(kernel.now_ms - since_ms));
}

/** Called when a mom has answered a ping: notes the time that the answer took, and whether the mom can start jobs (H4). */
export function momPonged(kernel: Kernel, mom: MomRuntime, { number, clock_ms, ill }: MomToServer["mom-pong"]): void {
  if (mom.pinged?.number === number) {
    mom.latency_ms = Math.max(0, Math.ceil(kernel.now_ms - mom.pinged.at_ms));
    // The mom read its clock about halfway between question and answer.
    if (clock_ms !== undefined) mom.ahead_ms = Math.round(clock_ms - (kernel.now_ms + mom.pinged.at_ms) / 2);
    mom.pinged = null;
  }
  momAnswered(kernel, mom, ill);
}

/** Notes whether the mom can start jobs (H4). ill: the reason why it cannot; undefined: it can. */
export function momAnswered(kernel: Kernel, mom: MomRuntime, ill: string | undefined): void {
  if ((ill ?? null) === mom.ill) return;
  const tx = ownTransaction(kernel);
  mom.ill = ill ?? null;
  if (mom.ill !== null) return hostUnknown(kernel, tx, mom.host, mom.ill);
  const away = vnodesAway(kernel, mom.host);
  report(kernel, tx, mom);
  vnodesBack(kernel, away);
}
