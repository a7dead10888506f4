// The frames that make a mom start jobs, and the frames that acknowledge obits. All starts of a batch for one mom are in one
// frame.

import type { MomJob, MomPlace } from "#protocol/mom-link.ts";
import type { Kernel } from "../engine/kernel.ts";
import { isAsked, type MomRuntime } from "../engine/mom-runtime.ts";
import { killDelayOf } from "../jobs/queue-defaults.ts";
import { hostOfJob, hostsOfJob, isSpread } from "../state/job-hosts.ts";
import type { Job } from "../state/state.ts";

/** Adds the start of a job to the frame for its mom. A mom gets all starts of a batch in one frame. */
export function orderStart(kernel: Kernel, job: Job, mom: MomRuntime): void {
  if (mom.sent.size === 0) mom.sent_ms = kernel.now_ms;
  if (isAsked(mom)) mom.sent.set(job.id, job.attrs.run_count ?? 1);
  const jobs = kernel.moms.starts.get(mom.link);
  if (jobs !== undefined) {
    jobs.push(momJob(kernel, job, mom));
    return;
  }
  const first = [momJob(kernel, job, mom)];
  kernel.moms.starts.set(mom.link, first);
  kernel.out.moms.push({ link: mom.link, type: "mom-start", data: { jobs: first } });
}

/** Acknowledges an obit. Acknowledgements that follow one another go to the mom in one frame. */
export function acknowledgeObit(kernel: Kernel, link: number, job: string, run_count: number): void {
  const last = kernel.out.moms.at(-1);
  if (last?.link === link && last.type === "mom-obit-ack")
    (last.data.jobs as { job: string; run_count: number }[]).push({ job, run_count });
  else kernel.out.moms.push({ link, type: "mom-obit-ack", data: { jobs: [{ job, run_count }] } });
}

/**
 * The fields of a start that only jobs on several hosts have: where the moms of the hosts accept requests of tasks. Moms on
 * the server's machine reach one another by their sockets, all others by TCP. A mom of another host gets no path of this
 * machine. A host whose mom is not connected has no place.
 */
function placesFor(kernel: Kernel, { hello: own }: MomRuntime, hosts: readonly string[]): Pick<MomJob, "tasks" | "sisters"> {
  const tasks: [host: string, path: string][] = [];
  const places: [host: string, place: MomPlace][] = [];
  for (const host of hosts) {
    const hello = kernel.moms.by_host.get(host.toLowerCase())?.hello;
    if (hello === undefined) continue;
    const { address = null, port, tasks: path = "" } = hello;
    if (address === null && own.address === undefined) tasks.push([host, path]);
    else if (hello !== own) places.push([host, { address, port }]);
  }
  return {
    ...(own.address === undefined ? { tasks: Object.fromEntries(tasks.filter(([, path]) => path !== "")) } : {}),
    ...(places.length === 0 ? {} : { sisters: { secret: "", hosts: Object.fromEntries(places) } }),
  };
}

/** A job in the form for its mom. The shell adds script, cookie and secret when the frame leaves. */
function momJob(kernel: Kernel, job: Job, mom: MomRuntime): MomJob {
  const { attrs } = job;
  const order: MomJob = {
    id: job.id,
    run_count: attrs.run_count ?? 1,
    user: attrs.euser,
    group: attrs.egroup,
    queue: attrs.queue,
    exec_host: attrs.exec_host ?? "",
    exec_vnode: attrs.exec_vnode ?? "",
    attrs: momAttrs(kernel, job),
    script: null,
    kill_delay_s: killDelay(kernel, job),
    cookie: "",
  };
  const hosts = isSpread(job) ? hostsOfJob(job) : [];
  if (hosts.length < 2 && job.own.checkpointed === undefined) return order;
  return { ...order, ...(isHere(job) ? { restart: true as const } : {}), ...(hosts.length < 2 ? {} : placesFor(kernel, mom, hosts)) };
}

/** Whether the job's checkpoint is on the host where the job will run now. */
const isHere = (job: Job): boolean => job.own.checkpointed === hostOfJob(job);

/** The attributes of a job for its mom. For an interactive job, its terminal ticket is added, which is not an attribute. */
function momAttrs(kernel: Kernel, job: Job): MomJob["attrs"] {
  const attrs = checkpointAttrs(kernel, job);
  return job.own.terminal === undefined ? attrs : { ...attrs, terminal: job.own.terminal };
}

/** The attributes with at least the queue's checkpoint_min as interval of checkpoints, also for `-c c` and `-c w` without an interval. */
function checkpointAttrs(kernel: Kernel, { attrs }: Job): Job["attrs"] {
  const least = kernel.state.queues.get(attrs.queue)?.attrs["checkpoint_min"];
  if (typeof least !== "number") return attrs;
  const match = /^([cw])(?:=(\d+))?$/.exec(typeof attrs["Checkpoint"] === "string" ? attrs["Checkpoint"] : "");
  if (match === null) return attrs;
  return { ...attrs, Checkpoint: `${match[1]}=${Math.max(Number(match[2] ?? 0), least)}` };
}

/** Seconds between SIGTERM and SIGKILL of a job. */
export function killDelay({ state }: Kernel, { attrs: { queue } }: Job): number {
  return killDelayOf(state.queues.get(queue));
}
