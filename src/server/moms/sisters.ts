// Jobs over several hosts (docs/reference/execution.md 3). The mother superior is the mom of the first host of exec_host; it runs the job's script. The mom
// of every other host is a sister: it gets the same run, makes its files, and holds a place in which tasks of the job run. The server coordinates them,
// because only the server knows them all.
//
//   start: every sister is asked; the mother superior is asked when all have joined · end: its obit waits until every sister has released the run
//
// S1. When a run is over for the server, no process of it is left on a host, except on hosts that were given up (silent too long) and have not come back,
//     and except for runs that were ended by force.
// S2. After a restart, knowledge about a run is built again from hellos; a host that has not said hello may hold it.
// S3. Obits of mother superior and sisters are acknowledged when the run is over, so that a server that was killed meanwhile gets them again.

import { JOB_EXEC } from "#model/exit-status.ts";
import type { MomHello, MomToServer, Usage } from "#protocol/mom-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import type { AfterRun, Crew, MomRuntime, Sister } from "../engine/mom-runtime.ts";
import type { Transaction } from "../engine/transaction.ts";
import { beginRerun } from "../jobs/end.ts";
import { logJob } from "../jobs/life.ts";
import { giveUp, releasingOf, vnodesByHost } from "../jobs/release-nodes.ts";
import { hostOfJob, hostsOfJob, isSpread } from "../state/job-hosts.ts";
import { isIn, isWithMom } from "../state/job-phase.ts";
import type { Job } from "../state/state.ts";
import { downtime_ms, joinWait_ms, launchWait_ms } from "./patience.ts";
import { afterRun, kbOf, sumOf } from "./run-end.ts";
import { acknowledgeObit, orderStart } from "./starts.ts";

/** Whether the host is one of a job's hosts but not the first. */
export const isSister = (job: Job, host: string): boolean =>
  isSpread(job) &&
  hostsOfJob(job)
    .slice(1)
    .some((name) => name.toLowerCase() === host.toLowerCase());

/** null: the job is on one host. */
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
  return entry === undefined ? "gone" : entry.state === "starting" ? "asked" : "joined";
}

const standsIn = (hello: MomHello, job: string): boolean => hello.jobs.some((held) => held.job === job && held.state === "suspended");

const all = (crew: Crew, state: Sister["state"]): boolean => [...crew.sisters.values()].every((sister) => sister.state === state);

// --- start

/** Asks the sisters that have not joined, and the mother superior when all have. */
export function startCrew(kernel: Kernel, job: Job, crew: Crew): void {
  if (crew.over !== null) return;
  for (const [key, sister] of crew.sisters) {
    const mom = kernel.moms.by_host.get(key);
    if (mom === undefined) sisterAway(kernel, job, sister.host);
    if (sister.state === "joined" || mom === undefined) continue;
    if (sister.state !== "ready") sister.state = "asked";
    orderStart(kernel, job, mom);
  }
  if (!all(crew, "joined")) return awaitSisters(kernel, job, crew);
  kernel.timers.clear(`join:${job.id}`);
  const mom = kernel.moms.by_host.get(hostOfJob(job).toLowerCase());
  if (mom === undefined) return;
  crew.begun = true;
  orderStart(kernel, job, mom);
}

/** Both waits have a limit: the wait until all sisters have joined, and then the wait for the prologue hooks. */
function awaitSisters(kernel: Kernel, job: Job, crew: Crew): void {
  const mother = hostOfJob(job);
  const awaited = [...crew.sisters.values()].every(({ state }) => state === "ready" || state === "joined") ? "prologue" : "join";
  const timer = `join:${job.id}`;
  if (awaited === crew.awaited && kernel.timers.at(timer) !== undefined) return;
  crew.awaited = awaited;
  kernel.timers.set(timer, kernel.now_ms + (awaited === "join" ? joinWait_ms(kernel, mother) : launchWait_ms(kernel, mother)));
}

/** The sister's execjob_begin hooks have accepted the job. */
export function sisterReady(kernel: Kernel, job: Job, host: string): void {
  const crew = crewOf(kernel, job);
  const sister = crew?.sisters.get(host.toLowerCase());
  if (crew == null || sister?.state !== "asked") return;
  sister.state = "ready";
  if (crew.over === null && !crew.begun && isIn(job, "starting")) awaitSisters(kernel, job, crew);
}

/** The sister is ready. */
export function sisterJoined(kernel: Kernel, job: Job, host: string): void {
  const crew = crewOf(kernel, job);
  const sister = crew?.sisters.get(host.toLowerCase());
  if (crew == null || sister === undefined || sister.state === "gone") return;
  sister.state = "joined";
  if (crew.over === null && !crew.begun && isIn(job, "starting")) startCrew(kernel, job, crew);
}

/** The timer `join`: a start waits for a sister for a limited time. */
export function joinLate(kernel: Kernel, tx: Transaction, job: Job): void {
  const crew = kernel.moms.crews.get(job.id);
  if (crew === undefined || crew.begun || crew.over !== null || crew.run_count !== job.attrs.run_count) return;
  // After a restart of the server the mother superior may have begun the run: its hello says so, or its silence ends the wait (node_fail_requeue).
  if (!kernel.moms.by_host.has(hostOfJob(job).toLowerCase())) return;
  const late = (state: Sister["state"]): boolean => state !== "joined" && (state !== "ready" || crew.awaited === "prologue");
  const missing = [...crew.sisters.values()].filter(({ state }) => late(state)).map(({ host }) => host);
  joinFailed(kernel, tx, job, `no answer of ${missing.join(", ")} in time`, JOB_EXEC.JOINJOB, missing);
}

/** hosts: those that caused the failure. */
function joinFailed(kernel: Kernel, tx: Transaction, job: Job, why: string, exit_status: number, hosts: readonly string[]): void {
  const crew = crewOf(kernel, job);
  if (crew !== null && toleration(job) !== "none" && exit_status === JOB_EXEC.JOINJOB)
    return startWithout(kernel, tx, job, crew, hosts, why);
  logJob(tx, LOG_EVENT.ERROR, job.id, `Job could not be started on all its hosts: ${why}`);
  endRun(kernel, job, { kind: "lost", exit_status, used: {}, message: why });
}

/** The failures of nodes that the job tolerates. */
const toleration = (job: Job): unknown => job.attrs["tolerate_node_failures"] ?? "none";

/** Starts the job on the remaining hosts. */
function startWithout(kernel: Kernel, tx: Transaction, job: Job, crew: Crew, hosts: readonly string[], why: string): void {
  logJob(tx, LOG_EVENT.JOB, job.id, `Job is started without ${hosts.join(", ")}: ${why}`);
  const by_host = vnodesByHost(tx.state, job);
  for (const host of hosts) {
    const key = host.toLowerCase();
    const link = kernel.moms.by_host.get(key)?.link;
    // A sister that refused has ended the run and is no longer a host of the job; its obit is not answered together with those of the others (S3).
    if (crew.sisters.get(key)?.state === "gone" && link !== undefined) acknowledgeObit(kernel, link, job.id, crew.run_count);
    else letGo(kernel, job, key);
    crew.sisters.delete(key);
  }
  const names = [...by_host].flatMap(([host, vnodes]) => (hosts.includes(host) ? vnodes : []));
  giveUp(tx, job, new Set(names), "start");
  startCrew(kernel, job, crew);
}

/** Whether the run still waits for its sisters, so that its mother superior, which is connected, does not know it. */
export function isJoining(kernel: Kernel, job: Job): boolean {
  const crew = crewOf(kernel, job);
  return crew !== null && !crew.begun;
}

/** Ends a run that its mother superior does not know. */
export function endJoining(kernel: Kernel, job: Job, exit_status: number): void {
  endRun(kernel, job, { kind: "lost", exit_status, used: {} });
}

// --- end

/** The run is over on its first host. over: what follows once no sister holds the run; at once for a job on one host. */
export function endRun(kernel: Kernel, job: Job, over: AfterRun): void {
  const crew = crewOf(kernel, job);
  if (crew === null) return afterRun(kernel, job, null, over);
  kernel.timers.clear(`join:${job.id}`);
  crew.over ??= over;
  for (const key of crew.sisters.keys()) letGo(kernel, job, key);
  settle(kernel, job, crew);
}

/** Tells a sister that holds the run, or may hold it, that it is over. */
function letGo(kernel: Kernel, job: Job, key: string): void {
  const mom = kernel.moms.by_host.get(key);
  if (mom === undefined || kernel.moms.crews.get(job.id)?.sisters.get(key)?.state === "gone") return;
  kernel.out.moms.push({
    link: mom.link,
    type: "mom-terminate",
    data: { job: job.id, run_count: job.attrs.run_count ?? 1, why: "delete", kill_delay_s: 0 },
  });
}

function settle(kernel: Kernel, job: Job, crew: Crew): void {
  if (crew.over === null || !all(crew, "gone") || kernel.moms.crews.get(job.id) !== crew) return;
  kernel.moms.crews.delete(job.id);
  acknowledge(kernel, job, crew);
  const isStill = kernel.state.jobs.get(job.id) === job && isWithMom(job) && job.attrs.run_count === crew.run_count;
  if (isStill) afterRun(kernel, job, crew, crew.over);
}

/** Acknowledges the obits that were kept back (S3). For a mom that has not ended the run the frame has no meaning. */
function acknowledge(kernel: Kernel, job: Job, { run_count }: Crew): void {
  for (const host of hostsOfJob(job)) {
    const link = kernel.moms.by_host.get(host.toLowerCase())?.link;
    if (link !== undefined) acknowledgeObit(kernel, link, job.id, run_count);
  }
}

/** The job gives up these hosts and continues. */
export function releaseSisters(kernel: Kernel, id: string, hosts: readonly string[]): void {
  const job = kernel.state.jobs.get(id);
  const crew = job === undefined ? null : crewOf(kernel, job);
  if (job === undefined || crew === null) return;
  for (const host of hosts) {
    const key = host.toLowerCase();
    // A sister that the job was started without has nothing to release.
    if (crew.sisters.get(key)?.state === "gone") released(kernel, ownTransaction(kernel), job, crew, host);
    else letGo(kernel, job, key);
  }
}

/** A sister has released the run as requested. false: no release was requested. */
function released(kernel: Kernel, tx: Transaction, job: Job, crew: Crew, host: string): boolean {
  const names = [...vnodesByHost(tx.state, job)].find(([each]) => each.toLowerCase() === host.toLowerCase())?.[1] ?? [];
  if (!isReleasing(kernel, job, host)) return false;
  const link = kernel.moms.by_host.get(host.toLowerCase())?.link;
  if (link !== undefined) acknowledgeObit(kernel, link, job.id, crew.run_count);
  crew.sisters.delete(host.toLowerCase());
  giveUp(tx, job, new Set(names));
  return true;
}

/** The server ends the run by force, without waiting for any host. */
export function dismissCrew(kernel: Kernel, job: Job): void {
  const crew = crewOf(kernel, job);
  if (crew === null) return;
  kernel.timers.clear(`join:${job.id}`);
  for (const key of crew.sisters.keys()) letGo(kernel, job, key);
  acknowledge(kernel, job, crew);
  kernel.moms.crews.delete(job.id);
}

/** Nothing of the run is left with the sister. */
export function sisterObit(kernel: Kernel, tx: Transaction, job: Job, host: string, obit: MomToServer["mom-obit"]): void {
  const crew = crewOf(kernel, job);
  const sister = crew?.sisters.get(host.toLowerCase());
  if (crew == null || sister === undefined) return;
  sister.used = obit.used;
  sisterGone(kernel, tx, job, host, obit.exit_status, obit.message);
}

/** These exit codes of a sister are passed on unchanged: a hook wants the job deleted. */
const OWN_WORD: ReadonlySet<number> = new Set([JOB_EXEC.FAILHOOK_DELETE, JOB_EXEC.HOOK_DELETE]);

/** The sister does not hold the run (any more). why: the reason, if no release was requested. */
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

/** The mom of a sister host says hello. entry: its report about this run; undefined: none. */
export function sisterHello(kernel: Kernel, tx: Transaction, job: Job, mom: MomRuntime, entry: MomHello["jobs"][number] | undefined): void {
  const crew = crewOf(kernel, job);
  const sister = crew?.sisters.get(mom.host.toLowerCase());
  if (crew == null || sister === undefined) return;
  sister.away_since_ms = null;
  kernel.timers.clear(awayTimer(job, mom.host));
  sister.stands = standsIn(mom.hello, job.id);
  if (entry !== undefined) {
    // A sister whose obit was received sends it again: nothing changes. A sister that was given up because it was silent still holds the run.
    if (sister.state === "gone" && entry.state !== "ended") sister.missed = false;
    if (sister.state !== "gone" || entry.state !== "ended") sister.state = entry.state === "starting" ? "asked" : "joined";
    if (crew.over !== null || isReleasing(kernel, job, mom.host)) letGo(kernel, job, mom.host.toLowerCase());
    else if (entry.state !== "ended" && entry.state !== "starting") {
      sisterJoined(kernel, job, mom.host);
      alignSisters(kernel, job);
    }
    return;
  }
  if (crew.over === null && !crew.begun && isIn(job, "starting")) {
    if (job.own.termination === undefined) return startCrew(kernel, job, crew);
    // The mother superior's own hello says whether it has begun the run.
    sister.state = "gone";
    return;
  }
  sisterGone(kernel, tx, job, mom.host, JOB_EXEC.RERUN_SIS_FAIL, "she does not know the job");
}

const isReleasing = ({ state }: Kernel, job: Job, host: string): boolean => {
  const names = [...vnodesByHost(state, job)].find(([each]) => each.toLowerCase() === host.toLowerCase())?.[1] ?? [];
  return names.length > 0 && names.every((name) => releasingOf(job).includes(name));
};

/** Name of the timer. The name of a host contains no blank. */
const awayTimer = (job: Job, host: string): string => `away:${job.id} ${host.toLowerCase()}`;

/** The sister's mom is not connected. The run waits for it for $max_poll_downtime, counted from the first notice of the loss. */
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
  kernel.timers.set(awayTimer(job, host), sister.away_since_ms + wait_ms);
}

/** The mother superior has connected and reports its setting. It now holds for those sisters of the job that are not connected. */
export function motherHello(kernel: Kernel, job: Job): void {
  for (const sister of crewOf(kernel, job)?.sisters.values() ?? []) if (sister.away_since_ms !== null) sisterAway(kernel, job, sister.host);
}

/** The timer `away`: the sister has been silent too long and is given up. name: as in awayTimer. */
export function sisterSilent(kernel: Kernel, tx: Transaction, name: string): void {
  const [id = "", host = ""] = name.split(" ");
  const job = kernel.state.jobs.get(id);
  if (job === undefined || !isWithMom(job) || kernel.moms.by_host.has(host)) return;
  const sister = crewOf(kernel, job)?.sisters.get(host);
  if (sister === undefined || sister.state === "gone") return;
  // The timer is of an earlier run, or from before the mother superior connected.
  if ((sister.away_since_ms ?? kernel.now_ms) + downtime_ms(kernel, hostOfJob(job)) > kernel.now_ms) return sisterAway(kernel, job, host);
  logJob(tx, LOG_EVENT.JOB, job.id, `Job given up on execution node ${host} down`);
  sisterGone(kernel, tx, job, host, JOB_EXEC.RERUN_SIS_FAIL, "node down");
}

/**
 * Sisters suspend the job after the mother superior: they get the request when the mother superior has done so or
 * failed to, and when they connect again.
 */
export function alignSisters(kernel: Kernel, job: Job): void {
  const crew = crewOf(kernel, job);
  if (crew === null || !crew.begun || crew.over !== null) return;
  const stands = job.attrs.job_state === "S";
  for (const [key, sister] of crew.sisters) {
    const link = kernel.moms.by_host.get(key)?.link;
    if (link === undefined || sister.state !== "joined" || sister.stands === stands) continue;
    sister.stands = stands;
    // Token 0: nothing waits for the sister's answer.
    kernel.out.moms.push({ link, type: "mom-signal", data: { token: 0, job: job.id, signal: stands ? "suspend" : "resume" } });
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
  // After a restart of the server only the job's sum is known, until the mother superior reports.
  const known = job.attrs.resources_used as Usage | undefined;
  return known !== undefined && Object.keys(crew.own).length === 0 ? known : sumOf(crew, crew.own);
}

/** Limits hold for the whole job, and the mother superior enforces them. */
function tellMother(kernel: Kernel, job: Job, crew: Crew): void {
  const mom = kernel.moms.by_host.get(hostOfJob(job).toLowerCase());
  if (mom === undefined) return;
  const { cput = 0, mem, vmem } = sumOf(crew, {});
  const data = { job: job.id, run_count: crew.run_count, cput_s: Number(cput), mem_kb: kbOf(mem), vmem_kb: kbOf(vmem) };
  kernel.out.moms.push({ link: mom.link, type: "mom-sisters", data });
}
