// How the server handles its moms: which moms are connected, and which jobs each of them has. When a mom connects, the
// server compares the mom's jobs with its own. Vnodes are in host-vnodes.ts, answers in questions.ts.
//
// I1. The obit of a run counts once: only while the job is with this mom and has the run_count that the obit names. It is
//     acknowledged in any case (mom-link.ts I2).
// I2. The server may believe that a job runs although its mom does not have it. If the start was never confirmed, the job is
//     started again with the same run_count; otherwise the run is lost and the job is requeued. A job that only the mom has
//     is killed (mom-link.ts I3).
// I3. A mom speaks for its own host only: what it says about jobs and questions of other hosts has no effect.

import { JOB_EXEC } from "#model/exit-status.ts";
import { Reject } from "#model/pbse.ts";
import type { MomGrace, MomHello, MomReport, MomToServer, Usage } from "#protocol/mom-link.ts";
import type { FrameOf } from "#protocol/schema-link.ts";
import { mustGet } from "#support/assert.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import type { MomRuntime } from "../engine/mom-runtime.ts";
import type { Transaction } from "../engine/transaction.ts";
import { hookReported, jobKept, tellHooks } from "../hooks/mom-hooks.ts";
import { checkpointHost, isKeptOn } from "../jobs/checkpointed.ts";
import { logJob } from "../jobs/life.ts";
import { furtherVnodes, releaseVnodes } from "../jobs/release-nodes.ts";
import { jobStarted } from "../jobs/run.ts";
import { startUnknown } from "../jobs/start-wait.ts";
import { isIdled, jobResumed, jobSuspended, preemptingSince } from "../jobs/suspension.ts";
import { createFromJob } from "../resv/creation.ts";
import { hostOfJob } from "../state/job-hosts.ts";
import { isIn, isSuspended, isWithMom } from "../state/job-phase.ts";
import { resvOfQueue } from "../state/resv-holding.ts";
import type { Job } from "../state/state.ts";
import { graceFor, graceNamed, gracesAtHello, graceUnknown, loseGrace, requeueAt_ms, shortenTold } from "./grace.ts";
import { beginHeartbeat, heartbeat, momAnswered, momPonged, momSilent, unreported } from "./heartbeat.ts";
import { allUnknown, hostDown, report, siteResources, tellBusy, vnodesAway, vnodesOf } from "./host-vnodes.ts";
import { momHeard, noteReport } from "./missed-reports.ts";
import { startJob, terminateJob } from "./orders.ts";
import { answered, notCheckpointed, questionUnanswered } from "./questions.ts";
import { vnodesBack } from "./returned-hosts.ts";
import { statusOfRun } from "./run-end.ts";
import {
  alignSisters,
  crewOf,
  endRun,
  isSister,
  jobsOn,
  jobsWithSister,
  motherHello,
  sisterAway,
  sisterHello,
  sisterJoined,
  sisterObit,
  sisterReady,
  usageOfRun,
} from "./sisters.ts";
import { acknowledgeObit } from "./starts.ts";

const momOfLink = (kernel: Kernel, link: number): MomRuntime | undefined => kernel.moms.by_link.get(link);

// --- frames

export function frame(kernel: Kernel, link: number, { type, data }: FrameOf<"mom-to-server">): void {
  if (type === "mom-hello") return hello(kernel, link, data);
  const mom = momOfLink(kernel, link);
  if (mom === undefined) return;
  momHeard(kernel, mom, type === "mom-report");
  const tx = ownTransaction(kernel);
  switch (type) {
    case "mom-pong":
      momPonged(kernel, mom, data);
      break;
    case "mom-accepted":
      accepted(kernel, mom, data.runs);
      break;
    case "mom-report":
      reported(kernel, tx, mom, data);
      break;
    case "mom-vnodes":
      mom.vnodes = data.vnodes;
      mom.patience = data.patience ?? {};
      report(kernel, tx, mom);
      break;
    case "mom-joined": {
      const job = runOf(kernel, data, mom.host);
      if (job !== undefined) sisterReady(kernel, job, mom.host);
      break;
    }
    case "mom-started":
      started(kernel, tx, mom.host, data);
      break;
    case "mom-site":
      siteResources(kernel, tx, mom, data.resources);
      break;
    case "mom-busy":
      mom.busy = data.busy;
      tellBusy(kernel, tx, mom);
      break;
    case "mom-idled": {
      const { idled, ...key } = data;
      const job = runOf(kernel, key, mom.host);
      if (job !== undefined && !isSister(job, mom.host) && isIdled(job) !== idled)
        tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { idled: idled ? true : null } });
      break;
    }
    case "mom-usage":
      for (const told of data.jobs) usage(kernel, tx, mom.host, told);
      break;
    case "mom-staging-out": {
      const job = runOf(kernel, data, mom.host);
      if (job !== undefined && isIn(job, "running") && isOnHost(kernel, job.id, mom.host)) releaseVnodes(tx, job, furtherVnodes(tx, job));
      break;
    }
    case "mom-obit":
      obit(kernel, tx, mom, data);
      break;
    case "mom-hook": {
      const job = data.job === undefined ? undefined : runOf(kernel, data.job, mom.host);
      hookReported(kernel, data, vnodesOf(kernel, mom.host), job);
      break;
    }
    case "mom-kept": {
      const job = runOf(kernel, data, mom.host);
      if (job !== undefined && data.why === "checkpoint") notCheckpointed(kernel, tx, job, data.text);
      else if (job !== undefined) jobKept(kernel, job, data);
      break;
    }
    case "mom-result":
      answered(kernel, tx, mom.host, data);
      break;
  }
}

function hello(kernel: Kernel, link: number, data: MomHello): void {
  const key = data.host.toLowerCase();
  const old = kernel.moms.by_host.get(key);
  // The same mom connects again; the server has not noticed the loss of the old connection.
  if (old !== undefined) {
    kernel.out.actions.push({ kind: "drop-link", link: old.link });
    forgetQuestions(kernel, old);
  }
  const mom: MomRuntime = {
    host: data.host,
    link,
    hello: data,
    vnodes: data.vnodes,
    patience: data.patience ?? {},
    hooks: data.hooks ?? "",
    hook_files: new Map(),
    busy: false,
    heard_ms: kernel.now_ms,
    every_ms: data.reports === undefined ? null : 1000 * data.reports.every_s,
    asked_ms: null,
    report: -1,
    site_report: -1,
    since_s: Math.floor(kernel.now_ms / 1000),
    pinged: null,
    latency_ms: null,
    ahead_ms: null,
    reported_ms: { datagram: null, connection: null },
    ill: null,
    sent: new Map(),
    sent_ms: kernel.now_ms,
    graces: gracesAtHello(data),
  };
  kernel.moms.by_host.set(key, mom);
  if (old !== undefined && kernel.moms.by_link.get(old.link) === old) kernel.moms.by_link.delete(old.link);
  kernel.moms.by_link.set(link, mom);
  kernel.timers.clear(`silent:${key}`);
  kernel.timers.clear(`still-silent:${key}`);
  kernel.moms.silent_since.delete(key);
  kernel.moms.lost.delete(key);
  const tx = ownTransaction(kernel);
  const away = vnodesAway(kernel, data.host);
  report(kernel, tx, mom);
  shortenTold(kernel, tx, mom);
  reconcile(kernel, tx, mom);
  beginHeartbeat(kernel, mom);
  vnodesBack(kernel, away);
}

/** Called by the timer `heartbeat`: pings the moms, and handles those that count as lost. Returns the hosts of the lost moms. */
export const beat = (kernel: Kernel): readonly string[] => loseMoms(kernel, heartbeat(kernel));

/** Called by the timer `reports`: pings the moms of other hosts whose reports are overdue, and handles those that count as lost. Returns the hosts of the lost moms. */
export const missReports = (kernel: Kernel): readonly string[] => loseMoms(kernel, unreported(kernel));

function loseMoms(kernel: Kernel, moms: readonly MomRuntime[]): readonly string[] {
  for (const mom of moms) {
    momSilent(kernel, mom);
    forgetMom(kernel, mom);
  }
  return moms.map(({ host }) => host);
}

export function lost(kernel: Kernel, link: number, why: string): void {
  const mom = momOfLink(kernel, link);
  if (mom === undefined) return;
  hostDown(kernel, ownTransaction(kernel), mom.host, why);
  forgetMom(kernel, mom);
}

/** Called when a mom is no longer connected: ends everything that waits for an answer of the mom. Its jobs wait for its next hello. */
function forgetMom(kernel: Kernel, mom: MomRuntime): void {
  kernel.moms.by_host.delete(mom.host.toLowerCase());
  kernel.moms.by_link.delete(mom.link);
  forgetQuestions(kernel, mom);
  for (const id of kernel.jobs.starting.keys()) if (isOnHost(kernel, id, mom.host)) startUnknown(kernel, id);
  loseGrace(kernel, mom);
  armSilence(kernel, mom.host);
  for (const job of jobsWithSister(kernel, mom.host.toLowerCase())) sisterAway(kernel, job, mom.host);
}

/** Ends the questions that were sent on a connection that is gone, because they will not be answered. */
function forgetQuestions(kernel: Kernel, { host }: MomRuntime): void {
  for (const [number, question] of kernel.moms.questions)
    if (question.host.toLowerCase() === host.toLowerCase()) questionUnanswered(kernel, number, true);
}

/** Called at the start of the server, when no mom has said hello: vnodes are unknown, and jobs wait for their moms as after a loss. */
export function allSilent(kernel: Kernel): void {
  allUnknown(kernel, ownTransaction(kernel));
  for (const host of kernel.state.hosts.keys()) {
    const sisterJobs = jobsWithSister(kernel, host.toLowerCase());
    graceUnknown(kernel, host, sisterJobs);
    armSilence(kernel, host);
    for (const job of sisterJobs) sisterAway(kernel, job, host);
  }
}

/** Sets the timer that requeues the jobs of a lost host: it is due after node_fail_requeue, but not before the mom's grace is over (grace.ts). */
function armSilence(kernel: Kernel, host: string): void {
  // The jobs of a runner wait until its backend says that it does not exist any more (runners/arrival.ts A2).
  if (kernel.state.runners.has(host)) return;
  const at_ms = requeueAt_ms(kernel, host);
  if (at_ms !== null) kernel.timers.set(`silent:${host.toLowerCase()}`, at_ms);
}

/** The grace that the mom of this link must be told; null: no mom is connected over this link, so its reports get no answer. */
export function graceOfLink(kernel: Kernel, link: number): { readonly grace?: MomGrace } | null {
  const mom = momOfLink(kernel, link);
  return mom === undefined ? null : graceFor(kernel, mom, jobsWithSister(kernel, mom.host.toLowerCase()));
}

/** Called by the timer `silent`: the jobs of a host that was down too long are requeued, or deleted if they are not rerunnable. */
export function hostSilentTooLong(kernel: Kernel, key: string): void {
  if (kernel.moms.by_host.has(key)) return;
  for (const job of jobsOfHost(kernel, key)) endRun(kernel, job, { kind: "mother-silent" });
}

/** The jobs for which the host is the first host. */
const jobsOfHost = (kernel: Kernel, key: string): Job[] => jobsOn(kernel, key).filter(({ id }) => isOnHost(kernel, id, key));

// --- jobs

/** Compares the mom's jobs with the server's (I2) and tells the mom which to keep and which to kill. */
function reconcile(kernel: Kernel, tx: Transaction, mom: MomRuntime): void {
  const keep: HeldJob[] = [];
  const kill: string[] = [];
  const acknowledged: { readonly job: string; readonly run_count: number }[] = [];
  const held = new Map(mom.hello.jobs.map((entry) => [entry.job, entry]));
  for (const entry of mom.hello.jobs) {
    const job = kernel.state.jobs.get(entry.job);
    if (job !== undefined && isRunOf(job, entry.run_count) && isWanted(kernel, job, mom.host)) keep.push(entry);
    // The obit of the run has been handled, or the run is no longer wanted. Only the acknowledgement was lost.
    else if (entry.state === "ended") acknowledged.push({ job: entry.job, run_count: entry.run_count });
    else kill.push(entry.job);
  }
  const confirms = mom.every_ms === null ? {} : { confirms: true as const };
  const grace = graceFor(kernel, mom, jobsWithSister(kernel, mom.host.toLowerCase()));
  kernel.out.moms.push({
    link: mom.link,
    type: "mom-welcome",
    data: { keep: keep.map((entry) => entry.job), kill, acknowledged, ...confirms, ...grace },
  });
  for (const id of mom.hello.checkpoints ?? []) {
    const job = kernel.state.jobs.get(id);
    const wanted = job !== undefined && (held.has(id) || checkpointHost(job)?.toLowerCase() === mom.host.toLowerCase());
    if (!wanted) kernel.out.moms.push({ link: mom.link, type: "mom-discard", data: { job: id } });
  }
  for (const id of mom.hello.outputs ?? []) {
    const job = kernel.state.jobs.get(id);
    const wanted = job !== undefined && (isRunOf(job, held.get(id)?.run_count ?? -1) || isKeptOn(job, mom.host));
    if (!wanted) kernel.out.moms.push({ link: mom.link, type: "mom-discard", data: { job: id } });
  }
  for (const { job } of acknowledged) keptInVain(kernel, mom.link, mom.host, job);
  tellHooks(kernel, mom);
  for (const entry of keep) {
    const job = mustGet(kernel.state.jobs, entry.job);
    const crew = crewOf(kernel, job);
    if (isSister(job, mom.host)) continue;
    if (crew !== null) {
      crew.begun = true;
      motherHello(kernel, job);
    }
    if (entry.state !== "ended") catchUp(kernel, tx, job, entry);
  }
  for (const job of jobsOfHost(kernel, mom.host.toLowerCase())) {
    const entry = held.get(job.id);
    if (entry === undefined || !isRunOf(job, entry.run_count)) missing(kernel, job);
  }
  for (const job of jobsWithSister(kernel, mom.host.toLowerCase())) {
    const entry = held.get(job.id);
    sisterHello(kernel, tx, job, mom, entry !== undefined && isRunOf(job, entry.run_count) ? entry : undefined);
  }
}

/**
 * Whether the host should still have the run. All hosts of the job should, except the first host after the run has ended
 * there: then the server only waits for the sisters.
 */
function isWanted(kernel: Kernel, job: Job, host: string): boolean {
  if (isSister(job, host)) return true;
  return isOnHost(kernel, job.id, host) && kernel.moms.crews.get(job.id)?.over == null;
}

/** Brings the job up to date with what the mom reports at its hello, and repeats orders that the broken connection may have prevented. */
function catchUp(kernel: Kernel, tx: Transaction, job: Job, entry: HeldJob): void {
  if (isIn(job, "starting") && entry.state !== "starting") jobStarted(tx, job, entry.session_id, undefined);
  // If the job is still stopped because someone uses the host, the mom reports this again.
  if (isIdled(job)) tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { idled: null } });
  if (entry.state === "suspended") jobSuspended(tx, job, false);
  else if (entry.state === "running") jobResumed(tx, job);
  alignSisters(kernel, job);
  // The mom was asked to suspend the job for a preemption. It did not get the request, or it has resumed the job since then.
  if (preemptingSince(job) !== undefined && !isIn(job, "rerunning"))
    tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { preempting: null } });
  if (job.own.termination !== undefined) terminateJob(kernel, job.id, "delete", false);
  else if (isToRunAgain(kernel, job)) terminateJob(kernel, job.id, "rerun", false);
}

/**
 * Whether the run must be ended so that the job can run again. A suspended job keeps its substate (end.ts beginRerun); it
 * must be ended if its run has failed on a sister.
 */
const isToRunAgain = (kernel: Kernel, job: Job): boolean =>
  isIn(job, "rerunning") || (isSuspended(job) && crewOf(kernel, job)?.failed === true);

/** Handles a job that runs as far as the server knows, and that its mom does not have (I2). */
function missing(kernel: Kernel, job: Job): void {
  if (isIn(job, "starting") && job.own.termination === undefined) {
    startJob(kernel, job.id);
    return;
  }
  const crew = crewOf(kernel, job);
  if (crew !== null) crew.begun = true;
  const exit_status = statusOfRun(crew, isToRunAgain(kernel, job) ? JOB_EXEC.RERUN : JOB_EXEC.INITABT);
  const used = (job.attrs.resources_used as Usage) ?? {};
  endRun(kernel, job, { kind: "lost", exit_status, used });
}

type HeldJob = MomHello["jobs"][number];
/** Whether the host is the first host of a job. */
const isOnHost = (kernel: Kernel, id: string, host: string): boolean =>
  hostOfJob(kernel.state.jobs.get(id)).toLowerCase() === host.toLowerCase();
const isRunOf = (job: Job, run_count: number): boolean => isWithMom(job) && (job.attrs.run_count ?? 0) === run_count;

/** Makes a reservation from the vnodes of a job (qsub -W create_resv_from_job). A job without walltime runs without a reservation. */
function reserveForJob(tx: Transaction, job: Job): void {
  try {
    if (resvOfQueue(tx.state, job.attrs.queue) === undefined) createFromJob(tx, job, {});
  } catch (error) {
    if (!(error instanceof Reject)) throw error;
    logJob(tx, LOG_EVENT.JOB, job.id, `no reservation made from the job: ${error.text}`);
  }
}

/** The job of a run; undefined: the run with this run_count is not with the mom of that host (I3). */
function runOf(
  kernel: Kernel,
  { job: id, run_count }: { readonly job: string; readonly run_count: number },
  host: string,
): Job | undefined {
  const job = kernel.state.jobs.get(id);
  return job !== undefined && isRunOf(job, run_count) && (isSister(job, host) || isOnHost(kernel, id, host)) ? job : undefined;
}

function started(kernel: Kernel, tx: Transaction, host: string, data: MomToServer["mom-started"]): void {
  const job = kernel.state.jobs.get(data.job);
  if (job !== undefined && isSister(job, host)) {
    if (isRunOf(job, data.run_count)) sisterJoined(kernel, job, host);
    return;
  }
  // If the job has given up this host meanwhile, the message is ignored.
  if (job !== undefined && !isOnHost(kernel, job.id, host)) return;
  if (job !== undefined && isRunOf(job, data.run_count) && isIn(job, "starting")) {
    jobStarted(tx, job, data.session_id, data.jobdir, { restarted: data.restarted === true });
    if (job.attrs["create_resv_from_job"] === true) reserveForJob(tx, job);
  }
}

/** Applies a report of a mom on another host. Parts of reports may overtake one another, so each part counts unless a later report has replaced it. */
function reported(kernel: Kernel, tx: Transaction, mom: MomRuntime, told: MomReport): void {
  const { number, grace, ill, jobs, site } = told;
  noteReport(kernel.now_ms, mom, told);
  if (number > mom.report) {
    graceNamed(mom, grace);
    shortenTold(kernel, tx, mom);
    mom.report = number;
    momAnswered(kernel, mom, ill);
  }
  for (const used of jobs ?? []) usage(kernel, tx, mom.host, used);
  if (site === undefined || number <= mom.site_report) return;
  mom.site_report = number;
  siteResources(kernel, tx, mom, site);
}

/**
 * Called when the mom has accepted runs. If it waits for an answer (mom-link.ts I5), it is told which of them the server
 * still wants, and that it must end the others.
 */
function accepted(kernel: Kernel, mom: MomRuntime, told: MomToServer["mom-accepted"]["runs"]): void {
  for (const { job, run_count } of told) if (mom.sent.get(job) === run_count) mom.sent.delete(job);
  mom.sent_ms = kernel.now_ms;
  if (mom.every_ms === null) return;
  const runs = told.filter((run) => runOf(kernel, run, mom.host) !== undefined);
  if (runs.length > 0) kernel.out.moms.push({ link: mom.link, type: "mom-confirmed", data: { runs } });
  for (const run of told)
    if (!runs.includes(run))
      kernel.out.moms.push({ link: mom.link, type: "mom-terminate", data: { ...run, why: "rerun", kill_delay_s: 0 } });
}

function usage(kernel: Kernel, tx: Transaction, host: string, told: MomToServer["mom-usage"]["jobs"][number]): void {
  const { job: id, run_count, used } = told;
  const job = kernel.state.jobs.get(id);
  if (job === undefined || !isRunOf(job, run_count) || !(isSister(job, host) || isOnHost(kernel, job.id, host))) return;
  tx.apply({ kind: "job-changed", id, set: { resources_used: usageOfRun(kernel, job, host, used) }, unset: [] });
}

function obit(kernel: Kernel, tx: Transaction, { link, host }: MomRuntime, data: MomToServer["mom-obit"]): void {
  const job = kernel.state.jobs.get(data.job);
  if (job === undefined || !isRunOf(job, data.run_count) || !(isSister(job, host) || isOnHost(kernel, job.id, host))) {
    acknowledgeObit(kernel, link, data.job, data.run_count);
    if (data.exit_status < 0 || data.kept === true) keptInVain(kernel, link, host, data.job);
    return;
  }
  const crew = crewOf(kernel, job);
  if (isSister(job, host)) return sisterObit(kernel, tx, job, host, data);
  if (crew === null) acknowledgeObit(kernel, link, data.job, data.run_count);
  endRun(kernel, job, { kind: "obit", obit: data });
}

/**
 * Called for a run that the server no longer waits for: tells the mom to delete files that it has kept of the run. If the
 * job has another run on that host, that run takes care of the files.
 */
function keptInVain(kernel: Kernel, link: number, host: string, id: string): void {
  const job = kernel.state.jobs.get(id);
  if (job !== undefined && (isKeptOn(job, host) || isSister(job, host) || isOnHost(kernel, job.id, host))) return;
  kernel.out.moms.push({ link, type: "mom-discard", data: { job: id } });
}
