// Jobs on several hosts (docs/reference/execution.md 3). The mother superior is the mom of the first host of exec_host; it
// runs the job's script. The mom of every other host is a sister: it gets the same run, makes the job's files, and is ready
// to start tasks of the job. The server coordinates the moms, because only the server knows all of them. The crew of a run
// is what the server knows about its sisters.
//
//   start: the server asks every sister to join; when all have joined, it asks the mother superior to start the job
//   end:   the server handles the obit of the mother superior only when every sister has also ended the run
//
// S1. When the server treats a run as ended, no process of it is left on any host. There are two exceptions: hosts that were
//     silent too long and have not come back, and runs that were ended by force.
// S2. After a restart of the server, its knowledge about a run is built again from hellos. A host that has not said hello
//     may still have the run.
// S3. Obits of the mother superior and of sisters are acknowledged only when the run has ended everywhere. If the server is
//     killed before that, it gets the obits again.

import { JOB_EXEC } from "#model/exit-status.ts";
import type { MomHello, MomToServer, ServerToMom, Usage } from "#protocol/mom-link.ts";
import { mustGet } from "#support/assert.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import type { AfterRun, Crew, MomRuntime, Sister } from "../engine/mom-runtime.ts";
import type { Transaction } from "../engine/transaction.ts";
import { isKeptOn } from "../jobs/checkpointed.ts";
import { beginRerun } from "../jobs/end.ts";
import { logJob } from "../jobs/life.ts";
import { giveUp, releasingOf, vnodesByHost } from "../jobs/release-nodes.ts";
import { hostOfJob, hostsOfJob, isSpread } from "../state/job-hosts.ts";
import { isIn, isWithMom } from "../state/job-phase.ts";
import type { Job } from "../state/state.ts";
import { sisterUntil_ms, tellGrace } from "./grace.ts";
import { vnodesOf } from "./host-vnodes.ts";
import { downtime_ms, joinWait_ms, launchWait_ms } from "./patience.ts";
import { afterRun, kbOf, sumOf } from "./run-end.ts";
import { acknowledgeObit, orderStart } from "./starts.ts";

/** Whether the host is one of a job's hosts but not the first. */
export const isSister = (job: Job, host: string): boolean =>
  isSpread(job) &&
  hostsOfJob(job)
    .slice(1)
    .some((name) => name.toLowerCase() === host.toLowerCase());

/** The jobs of a host that its mom has or must have. */
export function jobsOn(kernel: Kernel, host: string): Job[] {
  const ids = new Set<string>();
  for (const vnode of vnodesOf(kernel, host)) for (const id of vnode.jobs.keys()) ids.add(id);
  return [...ids].map((id) => mustGet(kernel.state.jobs, id)).filter(isWithMom);
}

/** The jobs for which the host is one of the further hosts. */
export const jobsWithSister = (kernel: Kernel, host: string): Job[] => jobsOn(kernel, host).filter((job) => isSister(job, host));

/** The crew of the job's present run; null: the job is on one host. */
export function crewOf(kernel: Kernel, job: Job): Crew | null {
  if (!isSpread(job)) return null;
  const [mother, ...others] = hostsOfJob(job);
  if (mother === undefined || others.length === 0) return null;
  const run_count = job.attrs.run_count ?? 0;
  const known = kernel.moms.crews.get(job.id);
  if (known?.run_count === run_count) return known;
  const sisters = others.map((host): [string, Sister] => {
    const mom = kernel.moms.by_host.get(host.toLowerCase());
    const state = mom === undefined ? "unknown" : stateIn(mom.hello, job.id, run_count);
    const stands = mom !== undefined && standsIn(mom.hello, job.id);
    return [host.toLowerCase(), { host, state, away_since_ms: mom === undefined ? kernel.now_ms : null, stands, missed: false, used: {} }];
  });
  const mom = kernel.moms.by_host.get(mother.toLowerCase());
  const crew: Crew = {
    run_count,
    sisters: new Map(sisters),
    begun: mom !== undefined && stateIn(mom.hello, job.id, run_count) !== "gone",
    awaited: "join",
    own: {},
    failed: false,
    over: null,
  };
  kernel.moms.crews.set(job.id, crew);
  return crew;
}

function stateIn(hello: MomHello, job: string, run_count: number): Sister["state"] {
  const entry = hello.jobs.find((held) => held.job === job && held.run_count === run_count);
  return entry === undefined ? "gone" : isPart(entry) ? "joined" : "asked";
}

/** Whether the host takes part in the run. A part that has ended never joins: its obit, which the mom will repeat, ends the start or counts as the end of the part. */
const isPart = ({ state }: MomHello["jobs"][number]): boolean => state !== "starting" && state !== "ended";

const standsIn = (hello: MomHello, job: string): boolean => hello.jobs.some((held) => held.job === job && held.state === "suspended");

const all = (crew: Crew, state: Sister["state"]): boolean => [...crew.sisters.values()].every((sister) => sister.state === state);

// --- start

/** Asks the sisters that have not joined to join. When all have joined, asks the mother superior to start the job. */
export function startCrew(kernel: Kernel, job: Job, crew: Crew): void {
  if (crew.over !== null) return;
  for (const [key, sister] of crew.sisters) {
    const mom = kernel.moms.by_host.get(key);
    if (mom === undefined) sisterAway(kernel, job, sister.host);
    if (sister.state === "joined" || mom === undefined) continue;
    const is_new = sister.state !== "ready" && sister.state !== "asked";
    if (sister.state !== "ready") sister.state = "asked";
    orderStart(kernel, job, mom);
    // Without this, the mom would learn only with its next report that the job has shortened its grace (grace.ts G2).
    if (is_new) tellGrace(kernel, mom, jobsWithSister(kernel, mom.host));
  }
  if (!all(crew, "joined")) return awaitSisters(kernel, job, crew);
  kernel.timers.clear(`join:${job.id}`);
  const mom = kernel.moms.by_host.get(hostOfJob(job).toLowerCase());
  if (mom === undefined) return;
  crew.begun = true;
  orderStart(kernel, job, mom);
}

/** Sets the timer for the present step of the start: the sisters' execjob_begin hooks, and after that their execjob_prologue hooks. */
function awaitSisters(kernel: Kernel, job: Job, crew: Crew): void {
  const mother = hostOfJob(job);
  const awaited = [...crew.sisters.values()].every(({ state }) => state === "ready" || state === "joined") ? "prologue" : "join";
  const timer = `join:${job.id}`;
  if (awaited === crew.awaited && kernel.timers.at(timer) !== undefined) return;
  crew.awaited = awaited;
  kernel.timers.set(timer, kernel.now_ms + (awaited === "join" ? joinWait_ms(kernel, mother) : launchWait_ms(kernel, mother)));
}

/** Called when the execjob_begin hooks of a sister have accepted the job. If the hooks of all sisters have accepted it, the time for their execjob_prologue hooks begins. */
export function sisterReady(kernel: Kernel, job: Job, host: string): void {
  const crew = crewOf(kernel, job);
  const sister = crew?.sisters.get(host.toLowerCase());
  if (crew == null || sister?.state !== "asked") return;
  sister.state = "ready";
  if (crew.over === null && !crew.begun && isIn(job, "starting")) awaitSisters(kernel, job, crew);
}

/** Called when a sister has joined, which means that its execjob_begin and execjob_prologue hooks have run. When all have joined, starts the job. */
export function sisterJoined(kernel: Kernel, job: Job, host: string): void {
  const crew = crewOf(kernel, job);
  const sister = crew?.sisters.get(host.toLowerCase());
  if (crew == null || sister === undefined || sister.state === "gone") return;
  sister.state = "joined";
  if (crew.over === null && !crew.begun && isIn(job, "starting")) startCrew(kernel, job, crew);
}

/** Called by the timer `join`: the sisters have not joined in time, so the start has failed. */
export function joinLate(kernel: Kernel, tx: Transaction, job: Job): void {
  const crew = kernel.moms.crews.get(job.id);
  if (crew === undefined || crew.begun || crew.over !== null || crew.run_count !== job.attrs.run_count) return;
  // After a restart of the server, the mother superior may have begun the run already. Its hello will say so, or node_fail_requeue ends the wait.
  if (!kernel.moms.by_host.has(hostOfJob(job).toLowerCase())) return;
  const late = (state: Sister["state"]): boolean => state !== "joined" && (state !== "ready" || crew.awaited === "prologue");
  const missing = [...crew.sisters.values()].filter(({ state }) => late(state)).map(({ host }) => host);
  joinFailed(kernel, tx, job, `no answer of ${missing.join(", ")} in time`, JOB_EXEC.JOINJOB, missing);
}

/** Called when the start has failed. hosts: those that caused the failure. */
function joinFailed(kernel: Kernel, tx: Transaction, job: Job, why: string, exit_status: number, hosts: readonly string[]): void {
  const crew = crewOf(kernel, job);
  if (crew !== null && toleration(job) !== "none" && exit_status === JOB_EXEC.JOINJOB)
    return startWithout(kernel, tx, job, crew, hosts, why);
  logJob(tx, LOG_EVENT.ERROR, job.id, `Job could not be started on all its hosts: ${why}`);
  endRun(kernel, job, { kind: "lost", exit_status, used: {}, message: why });
}

/** Which failures of nodes the job tolerates (qsub -W tolerate_node_failures). */
const toleration = (job: Job): unknown => job.attrs["tolerate_node_failures"] ?? "none";

/** Starts the job without the named hosts. */
function startWithout(kernel: Kernel, tx: Transaction, job: Job, crew: Crew, hosts: readonly string[], why: string): void {
  logJob(tx, LOG_EVENT.JOB, job.id, `Job is started without ${hosts.join(", ")}: ${why}`);
  const by_host = vnodesByHost(tx.state, job);
  for (const host of hosts) {
    const key = host.toLowerCase();
    const link = kernel.moms.by_host.get(key)?.link;
    // A sister that refused the job has ended the run and is no longer a host of the job. Its obit is acknowledged here and not at the end (S3).
    if (crew.sisters.get(key)?.state === "gone" && link !== undefined) acknowledgeObit(kernel, link, job.id, crew.run_count);
    else letGo(kernel, job, key);
    crew.sisters.delete(key);
  }
  const names = [...by_host].flatMap(([host, vnodes]) => (hosts.includes(host) ? vnodes : []));
  giveUp(tx, job, new Set(names), "start");
  startCrew(kernel, job, crew);
}

/**
 * Whether the start still waits for sisters. Called only while the mother superior is connected; true also means that the
 * mother superior does not know the run yet.
 */
export function isJoining(kernel: Kernel, job: Job): boolean {
  const crew = crewOf(kernel, job);
  return crew !== null && !crew.begun;
}

/** Ends a run whose start still waits for sisters. */
export function endJoining(kernel: Kernel, job: Job, exit_status: number): void {
  endRun(kernel, job, { kind: "lost", exit_status, used: {} });
}

// --- end

/** Called when the run has ended on its first host. over: what to do when it has ended on all sisters; for a job on one host, at once. */
export function endRun(kernel: Kernel, job: Job, over: AfterRun): void {
  const crew = crewOf(kernel, job);
  if (crew === null) return afterRun(kernel, job, null, over);
  kernel.timers.clear(`join:${job.id}`);
  crew.over ??= over;
  const order = endOrder(job);
  for (const key of crew.sisters.keys()) letGo(kernel, job, key, order);
  settle(kernel, job, crew);
}

/** The order to sisters to end a run. Frames to several moms with the same record can go out as one (driver/mom-frames.ts). */
const endOrder = ({ id, attrs }: Job): ServerToMom["mom-terminate"] => ({
  job: id,
  run_count: attrs.run_count ?? 1,
  why: "delete",
  kill_delay_s: 0,
});

/** Tells a sister that has the run, or may have it, to end it. */
function letGo(kernel: Kernel, job: Job, key: string, order = endOrder(job)): void {
  const mom = kernel.moms.by_host.get(key);
  if (mom === undefined || kernel.moms.crews.get(job.id)?.sisters.get(key)?.state === "gone") return;
  kernel.out.moms.push({ link: mom.link, type: "mom-terminate", data: order });
}

function settle(kernel: Kernel, job: Job, crew: Crew): void {
  if (crew.over === null || !all(crew, "gone") || kernel.moms.crews.get(job.id) !== crew) return;
  kernel.moms.crews.delete(job.id);
  acknowledge(kernel, job, crew);
  const mother = hostOfJob(job);
  const isStill = kernel.state.jobs.get(job.id) === job && isWithMom(job) && job.attrs.run_count === crew.run_count;
  if (isStill) afterRun(kernel, job, crew, crew.over);
  if (crew.over.kind !== "obit") dropKept(kernel, job.id, mother);
}

/** Called when a run is over whose end the mother superior has not told: lets it delete output that it has kept of the run, unless the job needs the output. */
function dropKept(kernel: Kernel, id: string, mother: string): void {
  const job = kernel.state.jobs.get(id);
  const link = kernel.moms.by_host.get(mother.toLowerCase())?.link;
  if (link === undefined || (job !== undefined && (isKeptOn(job, mother) || hostOfJob(job).toLowerCase() === mother.toLowerCase()))) return;
  // The end of the job may just have told the mom.
  const told = kernel.out.moms.some((frame) => frame.link === link && frame.type === "mom-discard" && frame.data.job === id);
  if (!told) kernel.out.moms.push({ link, type: "mom-discard", data: { job: id } });
}

/** Acknowledges the obits of all hosts (S3). A mom that has not ended the run ignores the frame. */
function acknowledge(kernel: Kernel, job: Job, { run_count }: Crew): void {
  for (const host of hostsOfJob(job)) {
    const link = kernel.moms.by_host.get(host.toLowerCase())?.link;
    if (link !== undefined) acknowledgeObit(kernel, link, job.id, run_count);
  }
}

/** Tells the sisters on these hosts to end their part of the run. The job gives up these hosts and continues. */
export function releaseSisters(kernel: Kernel, id: string, hosts: readonly string[]): void {
  const job = kernel.state.jobs.get(id);
  const crew = job === undefined ? null : crewOf(kernel, job);
  if (job === undefined || crew === null) return;
  for (const host of hosts) {
    const key = host.toLowerCase();
    // If the job was started without this sister, the sister has nothing to end.
    if (crew.sisters.get(key)?.state === "gone") released(kernel, ownTransaction(kernel), job, crew, host);
    else letGo(kernel, job, key);
  }
}

/** Called when a sister has ended its part of the run: if the job wanted to give up that host, gives up the vnodes there and returns true. */
function released(kernel: Kernel, tx: Transaction, job: Job, crew: Crew, host: string): boolean {
  const names = [...vnodesByHost(tx.state, job)].find(([each]) => each.toLowerCase() === host.toLowerCase())?.[1] ?? [];
  if (!isReleasing(kernel, job, host)) return false;
  const link = kernel.moms.by_host.get(host.toLowerCase())?.link;
  if (link !== undefined) acknowledgeObit(kernel, link, job.id, crew.run_count);
  crew.sisters.delete(host.toLowerCase());
  giveUp(tx, job, new Set(names));
  return true;
}

/** Ends the run by force, without waiting for any host. */
export function dismissCrew(kernel: Kernel, job: Job): void {
  const crew = crewOf(kernel, job);
  if (crew === null) return;
  kernel.timers.clear(`join:${job.id}`);
  const order = endOrder(job);
  for (const key of crew.sisters.keys()) letGo(kernel, job, key, order);
  acknowledge(kernel, job, crew);
  // Output that the mother superior has kept for the next run is known from its obit only, which is dropped here.
  const mother = kernel.moms.by_host.get(hostOfJob(job).toLowerCase());
  if (crew.over !== null && mother !== undefined && !isKeptOn(job, mother.host))
    kernel.out.moms.push({ link: mother.link, type: "mom-discard", data: { job: job.id } });
  kernel.moms.crews.delete(job.id);
}

/** Called when a sister reports that nothing of the run is left on its host: records its usage, and handles the sister as gone. */
export function sisterObit(kernel: Kernel, tx: Transaction, job: Job, host: string, obit: MomToServer["mom-obit"]): void {
  const crew = crewOf(kernel, job);
  const sister = crew?.sisters.get(host.toLowerCase());
  if (crew == null || sister === undefined) return;
  sister.used = obit.used;
  sisterGone(kernel, tx, job, host, obit.exit_status, obit.message);
}

/** Exit codes of a sister that become the exit status of the job, because a hook wants the job deleted. */
const OWN_WORD: ReadonlySet<number> = new Set([JOB_EXEC.FAILHOOK_DELETE, JOB_EXEC.HOOK_DELETE]);

/**
 * Called when a sister does not have the run (any more). The start or the run fails, unless the job wanted to give up that
 * host or tolerates the loss. why: the reason, for the log.
 */
function sisterGone(
  kernel: Kernel,
  tx: Transaction,
  job: Job,
  host: string,
  exit_status: number,
  why = "the job's place there is gone",
): void {
  const crew = crewOf(kernel, job);
  const sister = crew?.sisters.get(host.toLowerCase());
  if (crew == null || sister === undefined) return;
  sister.state = "gone";
  if (crew.over !== null) return settle(kernel, job, crew);
  if (released(kernel, tx, job, crew, host) || sister.missed) return;
  sister.missed = true;
  if (!crew.begun && isIn(job, "starting"))
    return joinFailed(kernel, tx, job, `${host}: ${why}`, OWN_WORD.has(exit_status) ? exit_status : JOB_EXEC.JOINJOB, [sister.host]);
  if (toleration(job) === "all") {
    logJob(tx, LOG_EVENT.JOB, job.id, `Job goes on without its sister ${host}: ${why}`);
    return;
  }
  crew.failed = true;
  if (job.own.termination !== undefined || isIn(job, "rerunning")) return;
  logJob(tx, LOG_EVENT.JOB, job.id, `Job is ended, its sister ${host} was lost: ${why}`);
  beginRerun(tx, job);
  tx.act({ kind: "terminate-job", job: job.id, why: "rerun" });
}

// --- hosts that connect and disconnect

/** Called when the mom of a sister says hello. entry: what it reports about this run; undefined: it does not have the run. */
export function sisterHello(kernel: Kernel, tx: Transaction, job: Job, mom: MomRuntime, entry: MomHello["jobs"][number] | undefined): void {
  const crew = crewOf(kernel, job);
  const sister = crew?.sisters.get(mom.host.toLowerCase());
  if (crew == null || sister === undefined) return;
  sister.away_since_ms = null;
  kernel.timers.clear(awayTimer(job, mom.host));
  sister.stands = standsIn(mom.hello, job.id);
  if (entry !== undefined) {
    // If the sister repeats an obit that was received before, nothing changes. If the sister counted as lost because it was silent, it has the run again.
    if (sister.state === "gone" && entry.state !== "ended") sister.missed = false;
    if (sister.state !== "gone" || entry.state !== "ended") sister.state = isPart(entry) ? "joined" : "asked";
    if (crew.over !== null || isReleasing(kernel, job, mom.host)) letGo(kernel, job, mom.host.toLowerCase());
    else if (isPart(entry)) {
      sisterJoined(kernel, job, mom.host);
      alignSisters(kernel, job);
    }
    return;
  }
  if (crew.over === null && !crew.begun && isIn(job, "starting")) {
    if (job.own.termination === undefined) return startCrew(kernel, job, crew);
    // Whether the run has begun will be known from the hello of the mother superior.
    sister.state = "gone";
    return;
  }
  sisterGone(kernel, tx, job, mom.host, JOB_EXEC.RERUN_SIS_FAIL, "she does not know the job");
}

const isReleasing = ({ state }: Kernel, job: Job, host: string): boolean => {
  const names = [...vnodesByHost(state, job)].find(([each]) => each.toLowerCase() === host.toLowerCase())?.[1] ?? [];
  return names.length > 0 && names.every((name) => releasingOf(job).includes(name));
};

/** The name of the timer `away`. The id of a job and the name of a host contain no blank. */
const awayTimer = (job: Job, host: string): string => `away:${job.id} ${host.toLowerCase()}`;

/** Called when the mom of a sister is not connected. The run waits for $max_poll_downtime from the time when this was noticed first. */
export function sisterAway(kernel: Kernel, job: Job, host: string): void {
  const crew = crewOf(kernel, job);
  const sister = crew?.sisters.get(host.toLowerCase());
  if (crew == null || sister === undefined || sister.state === "gone") return;
  const wait_ms = downtime_ms(kernel, hostOfJob(job));
  if (sister.away_since_ms === null && crew.over === null)
    logJob(
      ownTransaction(kernel),
      LOG_EVENT.JOB,
      job.id,
      `sister ${host} is away: the job goes on, and waits for her ${wait_ms / 1000} seconds`,
    );
  sister.away_since_ms ??= kernel.now_ms;
  kernel.timers.set(awayTimer(job, host), awayUntil_ms(kernel, job, sister));
}

/**
 * The time until which the run waits for a sister that is away. If the job can be rerun, its run also waits until that
 * sister has certainly ended its part by itself (grace.ts).
 */
function awayUntil_ms(kernel: Kernel, job: Job, { host, away_since_ms }: Sister): number {
  const until_ms = (away_since_ms ?? kernel.now_ms) + downtime_ms(kernel, hostOfJob(job));
  return job.attrs.Rerunable ? Math.max(until_ms, sisterUntil_ms(kernel, host)) : until_ms;
}

/** Called when the mother superior has connected: its $max_poll_downtime now applies to the sisters of the job that are not connected. */
export function motherHello(kernel: Kernel, job: Job): void {
  for (const sister of crewOf(kernel, job)?.sisters.values() ?? []) if (sister.away_since_ms !== null) sisterAway(kernel, job, sister.host);
}

/** Called by the timer `away`: the mom of a sister was disconnected too long, so the run has lost that host. name: as in awayTimer. */
export function sisterSilent(kernel: Kernel, tx: Transaction, name: string): void {
  const [id = "", host = ""] = name.split(" ");
  const job = kernel.state.jobs.get(id);
  if (job === undefined || !isWithMom(job) || kernel.moms.by_host.has(host)) return;
  const sister = crewOf(kernel, job)?.sisters.get(host);
  if (sister === undefined || sister.state === "gone") return;
  // The timer was set for an earlier run, or before the mother superior had connected.
  if (awayUntil_ms(kernel, job, sister) > kernel.now_ms) return sisterAway(kernel, job, host);
  logJob(tx, LOG_EVENT.JOB, job.id, `Job given up on execution node ${host} down`);
  sisterGone(kernel, tx, job, host, JOB_EXEC.RERUN_SIS_FAIL, "node down");
}

/**
 * Makes the sisters suspend or resume the job as the mother superior has done. Called when the mother superior has answered
 * or refused, and when a mom connects again.
 */
export function alignSisters(kernel: Kernel, job: Job): void {
  const crew = crewOf(kernel, job);
  if (crew === null || !crew.begun || crew.over !== null) return;
  const stands = job.attrs.job_state === "S";
  // Token 0: nothing waits for the sisters' answers.
  const data: ServerToMom["mom-signal"] = { token: 0, job: job.id, signal: stands ? "suspend" : "resume" };
  for (const [key, sister] of crew.sisters) {
    const link = kernel.moms.by_host.get(key)?.link;
    if (link === undefined || sister.state !== "joined" || sister.stands === stands) continue;
    sister.stands = stands;
    kernel.out.moms.push({ link, type: "mom-signal", data });
  }
}

// --- usage

/**
 * Records the usage that a mom of the run reports and returns the usage of the whole job. Amounts are summed over the
 * hosts, except walltime and requested amounts.
 */
export function usageOfRun(kernel: Kernel, job: Job, host: string, used: Usage): Usage {
  const crew = crewOf(kernel, job);
  if (crew === null) return used;
  const sister = crew.sisters.get(host.toLowerCase());
  if (sister === undefined) crew.own = used;
  else sister.used = used;
  if (sister !== undefined) tellMother(kernel, job, crew);
  // After a restart of the server, only the sum in the job's attributes is known until the mother superior reports.
  const known = job.attrs.resources_used as Usage | undefined;
  return known !== undefined && Object.keys(crew.own).length === 0 ? known : sumOf(crew, crew.own);
}

/** Tells the mother superior what the job has used on its sisters, because the mother superior enforces the limits of the whole job. */
function tellMother(kernel: Kernel, job: Job, crew: Crew): void {
  const mom = kernel.moms.by_host.get(hostOfJob(job).toLowerCase());
  if (mom === undefined) return;
  const { cput = 0, mem, vmem } = sumOf(crew, {});
  const data = { job: job.id, run_count: crew.run_count, cput_s: Number(cput), mem_kb: kbOf(mem), vmem_kb: kbOf(vmem) };
  kernel.out.moms.push({ link: mom.link, type: "mom-sisters", data });
}
