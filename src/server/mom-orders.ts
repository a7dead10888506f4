// What the server tells a mom to do with a job: start, end, signal, message, modify. Frames go into the outbox; what a mom that is not connected should do is
// found out again at its hello (mom-host.ts), so it is dropped here.

import { PBSE, reject } from "#model/pbse.ts";
import type { MomJob } from "#protocol/mom-link.ts";
import type { Kernel, MomRuntime } from "./kernel.ts";
import { refuse } from "./kernel.ts";
import type { Job } from "./state.ts";

const KILL_DELAY_S_DEFAULT = 10;
/** How long a mom may take to answer a signal or message. */
const QUESTION_MS = 30_000;

/** The host a job is with: that of its first chunk. */
export function hostOfJob(kernel: Kernel, id: string): string {
  return kernel.state.jobs.get(id)?.attrs.exec_host?.split("/", 1)[0] ?? "";
}

/** The connected mom of a job. */
export const momOfJob = (kernel: Kernel, id: string): MomRuntime | undefined => kernel.moms.get(hostOfJob(kernel, id).toLowerCase());

/** All jobs started in a batch go to a mom in one frame. */
export function startJob(kernel: Kernel, id: string): void {
  const mom = momOfJob(kernel, id);
  const job = kernel.state.jobs.get(id);
  if (mom === undefined || job === undefined) return;
  const frame = kernel.out.moms.find((sent) => sent.link === mom.link && sent.type === "mom-start");
  if (frame?.type === "mom-start") (frame.data.jobs as MomJob[]).push(momJob(kernel, job));
  else kernel.out.moms.push({ link: mom.link, type: "mom-start", data: { jobs: [momJob(kernel, job)] } });
}

/** Script and cookie are filled in by the shell when the frame leaves. */
function momJob(kernel: Kernel, job: Job): MomJob {
  const { attrs } = job;
  return {
    id: job.id,
    run_count: attrs.run_count ?? 1,
    user: attrs.euser,
    group: attrs.egroup,
    queue: attrs.queue,
    exec_host: attrs.exec_host ?? "",
    exec_vnode: attrs.exec_vnode ?? "",
    attrs,
    script: null,
    kill_delay_s: killDelay(kernel, job),
    cookie: "",
  };
}

export function terminateJob(kernel: Kernel, id: string, why: "delete" | "rerun", force: boolean): void {
  const mom = momOfJob(kernel, id);
  const job = kernel.state.jobs.get(id);
  if (mom === undefined || job === undefined) return;
  const kill_delay_s = force || why === "rerun" ? 0 : killDelay(kernel, job);
  kernel.out.moms.push({
    link: mom.link,
    type: "mom-terminate",
    data: { job: id, run_count: job.attrs.run_count ?? 1, why, kill_delay_s },
  });
}

function killDelay(kernel: Kernel, job: Job): number {
  const delay = kernel.state.queues.get(job.attrs.queue)?.attrs["kill_delay"];
  return typeof delay === "number" ? delay : KILL_DELAY_S_DEFAULT;
}

/** A signal: the mom's answer becomes the reply to the client. */
export function signalJob(kernel: Kernel, job: string, token: number, signal: string): void {
  const number = question(kernel, job, token, signal);
  const link = momOfJob(kernel, job)?.link;
  if (number !== null && link !== undefined)
    kernel.out.moms.push({ link, type: "mom-signal", data: { token: number, job, signal: signal.replace(/^admin-/, "") } });
}

export function messageJob(kernel: Kernel, job: string, token: number, files: string, message: string): void {
  const number = question(kernel, job, token, null);
  const link = momOfJob(kernel, job)?.link;
  if (number !== null && link !== undefined)
    kernel.out.moms.push({ link, type: "mom-message", data: { token: number, job, files, message } });
}

function question(kernel: Kernel, job: string, token: number, signal: string | null): number | null {
  if (momOfJob(kernel, job) === undefined) {
    if (token !== 0) refuse(kernel, token, reject(PBSE.NORELYMOM, hostOfJob(kernel, job)));
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
