// What the server tells a mom to do about a job: start, end, signal, message, modify. An order to a mom that is not
// connected is dropped: at the mom's next hello the server finds out again what it must order (host.ts).

import { JOB_EXEC } from "#model/exit-status.ts";
import { PBSE, reject } from "#model/pbse.ts";
import type { ServerToMom } from "#protocol/mom-link.ts";
import type { Kernel } from "../engine/kernel.ts";
import { refuse } from "../engine/kernel.ts";
import { momOfJob } from "../engine/mom-runtime.ts";
import { hostOfJob, hostsOfJob } from "../state/job-hosts.ts";
import { crewOf, dismissCrew, endJoining, isJoining, startCrew } from "./sisters.ts";
import { killDelay, orderStart } from "./starts.ts";

/** Exit_status of a run that was deleted before it began. */
const TERMINATED = 271;
/** Time within which a mom must answer a signal or message. */
const QUESTION_MS = 30_000;

/** Begins the run of a job: on its only host, or with its sisters. */
export function startJob(kernel: Kernel, id: string): void {
  const job = kernel.state.jobs.get(id);
  if (job === undefined) return;
  const crew = crewOf(kernel, job);
  if (crew !== null) return startCrew(kernel, job, crew);
  const mom = kernel.moms.by_host.get(hostOfJob(job).toLowerCase());
  if (mom !== undefined) orderStart(kernel, job, mom);
}

/** Tells a mom to delete files that it keeps of a job. A mom that is not connected is told at its next hello. */
export function discardOnHost(kernel: Kernel, host: string, job: string): void {
  const link = kernel.moms.by_host.get(host.toLowerCase())?.link;
  if (link !== undefined) kernel.out.moms.push({ link, type: "mom-discard", data: { job } });
}

/**
 * Tells the mom to end a run. If the moms of a run on several hosts still agree on its start, the server calls the start off instead. why: a run that ends for a
 * `rerun` gets no kill_delay. force: no kill_delay either. over: the server treats the run as ended and does not wait for the mom.
 */
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

/** Sends a signal to the job. The mom's answer becomes the reply to the client. */
export function signalJob(kernel: Kernel, job: string, token: number, signal: string): void {
  const number = question(kernel, job, token, signal);
  const link = momOfJob(kernel, job)?.link;
  if (number !== null && link !== undefined)
    kernel.out.moms.push({ link, type: "mom-signal", data: { token: number, job, signal: signal.replace(/^admin-/, "") } });
  if (!STANDING.test(signal)) signalSisters(kernel, job, signal);
}

/** Signals that are not sent to sisters at once. Sisters suspend and resume the job after the mother superior has done so (alignSisters). */
const STANDING = /^(admin-)?(suspend|resume)$/;

/** Sends the signal to the sisters. Their answers (token 0) go to no client, because the mother superior's answer counts. */
function signalSisters(kernel: Kernel, id: string, signal: string): void {
  const job = kernel.state.jobs.get(id);
  const crew = job === undefined ? null : crewOf(kernel, job);
  const data: ServerToMom["mom-signal"] = { token: 0, job: id, signal };
  for (const key of crew?.sisters.keys() ?? []) {
    const link = kernel.moms.by_host.get(key)?.link;
    if (link !== undefined) kernel.out.moms.push({ link, type: "mom-signal", data });
  }
}

export function messageJob(kernel: Kernel, job: string, token: number, files: string, message: string): void {
  const number = question(kernel, job, token, null);
  const link = momOfJob(kernel, job)?.link;
  if (number !== null && link !== undefined)
    kernel.out.moms.push({ link, type: "mom-message", data: { token: number, job, files, message } });
}

function question(kernel: Kernel, job: string, token: number, signal: string | null): number | null {
  const mom = momOfJob(kernel, job);
  if (mom === undefined) {
    if (token !== 0) refuse(kernel, token, reject(PBSE.NORELYMOM, hostOfJob(kernel.state.jobs.get(job))));
    return null;
  }
  const number = kernel.moms.next_question++;
  kernel.moms.questions.set(number, { token, job, host: mom.host, signal });
  kernel.timers.set(`question:${number}`, kernel.now_ms + QUESTION_MS);
  return number;
}

/** Sends changed attributes of a running job to its mother superior. A new exec_vnode is also sent to the sisters, because each has vnodes of the job. */
export function modifyJobOnMom(kernel: Kernel, id: string, attrs: { readonly [name: string]: unknown }): void {
  const job = kernel.state.jobs.get(id);
  const hosts = job === undefined ? [] : hostsOfJob(job);
  for (const host of attrs["exec_vnode"] === undefined ? hosts.slice(0, 1) : hosts) {
    const link = kernel.moms.by_host.get(host.toLowerCase())?.link;
    if (link !== undefined) kernel.out.moms.push({ link, type: "mom-modify", data: { job: id, attrs } });
  }
}
