// What the server tells a mom to do with a job: start, end, signal, message, modify. Frames go into the outbox; what a mom that is not connected should do is
// found out again at its hello (host.ts), so it is dropped here.

import { PBSE, reject } from "#model/pbse.ts";
import type { MomJob } from "#protocol/mom-link.ts";
import type { Kernel } from "../engine/kernel.ts";
import { refuse } from "../engine/kernel.ts";
import { type MomRuntime, momOfJob } from "../engine/mom-runtime.ts";
import { JOB_EXEC } from "../jobs/end.ts";
import { killDelayOf } from "../jobs/queue-defaults.ts";
import { hostOfJob, hostsOfJob, isSpread } from "../state/job-hosts.ts";
import type { Job } from "../state/state.ts";
import { isAsked } from "./heartbeat.ts";
import { crewOf, dismissCrew, endJoining, isJoining, startCrew } from "./sisters.ts";

/** Exit_status of a run that was deleted before it began. */
const TERMINATED = 271;
/** How long a mom may take to answer a signal or message. */
const QUESTION_MS = 30_000;

/** The run begins: on its one host, or with its sisters. */
export function startJob(kernel: Kernel, id: string): void {
  const job = kernel.state.jobs.get(id);
  if (job === undefined) return;
  const crew = crewOf(kernel, job);
  if (crew !== null) return startCrew(kernel, job, crew);
  const mom = kernel.moms.get(hostOfJob(job).toLowerCase());
  if (mom !== undefined) orderStart(kernel, job, mom);
}

/** All jobs started in a batch go to a mom in one frame. */
export function orderStart(kernel: Kernel, job: Job, mom: MomRuntime): void {
  if (isAsked(mom)) mom.sent.set(job.id, job.attrs.run_count ?? 1);
  const jobs = kernel.starts.get(mom.link);
  if (jobs !== undefined) {
    jobs.push(momJob(kernel, job));
    return;
  }
  const first = [momJob(kernel, job)];
  kernel.starts.set(mom.link, first);
  kernel.out.moms.push({ link: mom.link, type: "mom-start", data: { jobs: first } });
}

/** Obits that came one after another are acknowledged in one frame. */
export function acknowledgeObit(kernel: Kernel, link: number, job: string, run_count: number): void {
  const last = kernel.out.moms.at(-1);
  if (last?.link === link && last.type === "mom-obit-ack")
    (last.data.jobs as { job: string; run_count: number }[]).push({ job, run_count });
  else kernel.out.moms.push({ link, type: "mom-obit-ack", data: { jobs: [{ job, run_count }] } });
}

/** Of the hosts of a job over several. */
function taskSockets(kernel: Kernel, hosts: readonly string[]): Pick<MomJob, "tasks"> {
  const known = hosts.map((host) => [host, kernel.moms.get(host.toLowerCase())?.hello.tasks ?? ""] as const);
  return { tasks: Object.fromEntries(known.filter(([, path]) => path !== "")) };
}

/** Script and cookie are filled in by the shell when the frame leaves. */
function momJob(kernel: Kernel, job: Job): MomJob {
  const { attrs } = job;
  const order: MomJob = {
    id: job.id,
    run_count: attrs.run_count ?? 1,
    user: attrs.euser,
    group: attrs.egroup,
    queue: attrs.queue,
    exec_host: attrs.exec_host ?? "",
    exec_vnode: attrs.exec_vnode ?? "",
    attrs: checkpointAttrs(kernel, job),
    script: null,
    kill_delay_s: killDelay(kernel, job),
    cookie: "",
  };
  const hosts = isSpread(job) ? hostsOfJob(job) : [];
  if (hosts.length < 2 && attrs["checkpointed"] === undefined) return order;
  return { ...order, ...(isHere(job) ? { restart: true as const } : {}), ...(hosts.length < 2 ? {} : taskSockets(kernel, hosts)) };
}

/** Its checkpoint is on the host where it is to run now. */
const isHere = (job: Job): boolean => job.attrs["checkpointed"] === hostOfJob(job);

/** `-c c`, `-c w` and intervals below the queue's checkpoint_min become that. */
function checkpointAttrs(kernel: Kernel, { attrs }: Job): Job["attrs"] {
  const least = kernel.state.queues.get(attrs.queue)?.attrs["checkpoint_min"];
  if (typeof least !== "number") return attrs;
  const match = /^([cw])(?:=(\d+))?$/.exec(typeof attrs["Checkpoint"] === "string" ? attrs["Checkpoint"] : "");
  if (match === null) return attrs;
  return { ...attrs, Checkpoint: `${match[1]}=${Math.max(Number(match[2] ?? 0), least)}` };
}

/** What a mom keeps of a job that nobody waits for. A mom that is away is told at its next hello. */
export function discardOnHost(kernel: Kernel, host: string, job: string): void {
  const link = kernel.moms.get(host.toLowerCase())?.link;
  if (link !== undefined) kernel.out.moms.push({ link, type: "mom-discard", data: { job } });
}

/** over: the run is over at once for the server, which waits for nobody. */
export function terminateJob(kernel: Kernel, id: string, why: "delete" | "rerun", force: boolean, over = false): void {
  const mom = momOfJob(kernel, id);
  const job = kernel.state.jobs.get(id);
  if (job === undefined) return;
  if (over) dismissCrew(kernel, job);
  else if (mom !== undefined && isJoining(kernel, job)) return endJoining(kernel, job, why === "rerun" ? JOB_EXEC.RERUN : TERMINATED);
  if (mom === undefined) return;
  const kill_delay_s = force || why === "rerun" ? 0 : killDelay(kernel, job);
  kernel.out.moms.push({
    link: mom.link,
    type: "mom-terminate",
    data: { job: id, run_count: job.attrs.run_count ?? 1, why, kill_delay_s },
  });
}

/** Seconds between SIGTERM and SIGKILL of a job. */
function killDelay({ state }: Kernel, { attrs: { queue } }: Job): number {
  return killDelayOf(state.queues.get(queue));
}

/** A signal: the mom's answer becomes the reply to the client. */
export function signalJob(kernel: Kernel, job: string, token: number, signal: string): void {
  const number = question(kernel, job, token, signal);
  const link = momOfJob(kernel, job)?.link;
  if (number !== null && link !== undefined)
    kernel.out.moms.push({ link, type: "mom-signal", data: { token: number, job, signal: signal.replace(/^admin-/, "") } });
  if (!STANDING.test(signal)) signalSisters(kernel, job, signal);
}

/** Sisters stand still and go on as their mother superior has done (sisters.ts alignSisters). */
const STANDING = /^(admin-)?(suspend|resume)$/;

/** Her answer (token 0) is nobody's: the mother superior's counts. */
function signalSisters(kernel: Kernel, id: string, signal: string): void {
  const job = kernel.state.jobs.get(id);
  const crew = job === undefined ? null : crewOf(kernel, job);
  for (const key of crew?.sisters.keys() ?? []) {
    const link = kernel.moms.get(key)?.link;
    if (link !== undefined) kernel.out.moms.push({ link, type: "mom-signal", data: { token: 0, job: id, signal } });
  }
}

export function messageJob(kernel: Kernel, job: string, token: number, files: string, message: string): void {
  const number = question(kernel, job, token, null);
  const link = momOfJob(kernel, job)?.link;
  if (number !== null && link !== undefined)
    kernel.out.moms.push({ link, type: "mom-message", data: { token: number, job, files, message } });
}

function question(kernel: Kernel, job: string, token: number, signal: string | null): number | null {
  if (momOfJob(kernel, job) === undefined) {
    if (token !== 0) refuse(kernel, token, reject(PBSE.NORELYMOM, hostOfJob(kernel.state.jobs.get(job))));
    return null;
  }
  const number = kernel.next_question++;
  kernel.questions.set(number, { token, job, signal });
  kernel.timers.set(`question:${number}`, kernel.now_ms + QUESTION_MS);
  return number;
}

/** Attributes of a running job that its mom must know. */
export function modifyJobOnMom(kernel: Kernel, job: string, attrs: { readonly [name: string]: unknown }): void {
  const link = momOfJob(kernel, job)?.link;
  if (link !== undefined) kernel.out.moms.push({ link, type: "mom-modify", data: { job, attrs } });
}
