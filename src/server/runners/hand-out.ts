// The next job of a runner: when its job has ended, the server gives it the first job of the list that the scheduler of its partition has left (src/sched/cycle/hand-out.ts),
// without waiting for a cycle (docs/runners.md).
//
// O1. The lists say nothing about limits at present. A job follows another one only if it counts for the same owner, group, project and queue, and asks for no more of what
//     limits may count. What the limits count is then not more than before.
// O2. Everything else is checked as for a start that a scheduler has decided (jobs/run.ts): holds, the state of job, queue and vnode, reservations, the end of the
//     runner. A job that is refused stays in its list for the next runner, and the next job of the list is tried.
// O3. The lists are dropped when something has changed on which they depend: limits, queues, reservations, the settings or the connection of the scheduler.

import { PBSE, refusalOf, reject } from "#model/pbse.ts";
import { type ExecVnode, execVnodeText } from "#model/request/exec-vnode.ts";
import { pairOf, readSelect } from "#model/request/select.ts";
import type { Resources } from "#model/resource-table.ts";
import type { HandOut } from "#protocol/sched-link.ts";
import { schedulerIdentity } from "../engine/identity.ts";
import { type Kernel, transaction } from "../engine/kernel.ts";
import { mustAsk } from "../hooks/running.ts";
import { runJob } from "../jobs/run.ts";
import { queuedSubjob } from "../jobs/subjob-start.ts";
import { amountOf, amountValue } from "../state/amounts.ts";
import { isIn } from "../state/job-phase.ts";
import { schedOfQueue } from "../state/partitions.ts";
import type { Attrs, JobAttrs, Runner, ServerState } from "../state/state.ts";
import { bucketOfJob } from "./demand.ts";

/** How many jobs of a list are tried for one runner. If none of them can start, the scheduler decides in its next cycle. */
const TRIES_MAX = 20;

/** Takes the lists of a scheduler, which replace its former ones. */
export function takeHandOuts({ runners }: Kernel, sched: string, lists: readonly HandOut[]): void {
  dropHandOuts({ runners }, sched);
  for (const { bucket, jobs } of lists) runners.hand_outs.set(bucket, { sched, jobs: [...jobs].reverse(), length: jobs.length });
}

/** Drops the lists of a scheduler, or all (O3). */
export function dropHandOuts({ runners }: Pick<Kernel, "runners">, sched?: string): void {
  for (const [bucket, list] of runners.hand_outs) if (sched === undefined || list.sched === sched) runners.hand_outs.delete(bucket);
}

/** Whether a job that has ended leaves a runner for which there is a list. */
export function leavesRunner({ state, runners }: Kernel, attrs: JobAttrs): boolean {
  const runner = runners.hand_outs.size === 0 ? undefined : state.runners.get(String(attrs["runner"] ?? ""));
  return runner !== undefined && runners.hand_outs.has(runner.attrs.bucket.key);
}

/**
 * Gives the runner of a job that has ended its next job. Returns how many jobs are left of the list, and how many there were; null: no job was started, and the
 * scheduler must decide.
 */
export function handOut(kernel: Kernel, ended: JobAttrs): { readonly left: number; readonly length: number } | null {
  const { state, runners, moms } = kernel;
  const runner = state.runners.get(String(ended["runner"]));
  const vnode = runner === undefined ? undefined : state.vnodes.get(runner.name);
  const list = runner === undefined ? undefined : runners.hand_outs.get(runner.attrs.bucket.key);
  if (runner === undefined || vnode === undefined || list === undefined || vnode.jobs.size > 0) return null;
  if (runners.draining.has(runner.name) || !moms.by_host.has(runner.name.toLowerCase())) return null;
  const { jobs, length } = list;
  const skipped: string[] = [];
  let started = false;
  for (let id = jobs.pop(); id !== undefined; id = jobs.pop()) {
    const answer = tryStart(kernel, runner, ended, id, list.sched);
    started = answer === "started";
    if (started) break;
    if (answer === "later") skipped.push(id);
    if (skipped.length >= TRIES_MAX) break;
  }
  while (skipped.length > 0) jobs.push(skipped.pop() as string);
  return started ? { left: jobs.length, length } : null;
}

/** Tries to start a job on a runner. later: it may be tried again; never: it does not wait any more, or is of another bucket now. */
function tryStart(
  kernel: Kernel,
  { name, attrs: { bucket } }: Runner,
  ended: JobAttrs,
  id: string,
  sched: string,
): "started" | "later" | "never" {
  const { state, config } = kernel;
  const job = state.jobs.get(id) ?? queuedSubjob(state, id);
  if (job === undefined || !isIn(job, "queued")) return "never";
  const own = bucketOfJob(state, job);
  const queue = state.queues.get(job.attrs.queue);
  if ("impossible" in own || own.key !== bucket.key || queue === undefined) return "never";
  if (state.scheds.get(sched)?.attrs["scheduling"] !== true || schedOfQueue(state, queue)?.name !== sched) return "never";
  if (!mayFollow(state, ended, job.attrs) || mustAsk(kernel, id)) return "later";
  const exec_vnode = execOn(state.resources, job.attrs.schedselect, name);
  if (exec_vnode === null) return "never";
  const refusal = refusalOf(() => {
    if (kernel.ending.stopping !== "no") throw reject(PBSE.SVRDOWN);
    runJob(transaction(kernel, schedulerIdentity(config.host), 0), id, exec_vnode, { sched });
  });
  return refusal === null ? "started" : "later";
}

/** Whether a job counts for nothing that a job before it did not count for, and asks for no more than it of what limits may count (O1). Pure. */
export function mayFollow(
  { server, queues, resources }: Pick<ServerState, "server" | "queues" | "resources">,
  before: JobAttrs,
  next: JobAttrs,
): boolean {
  for (const name of ["euser", "egroup", "project", "queue"] as const) if (before[name] !== next[name]) return false;
  const queue = queues.get(next.queue);
  if (!countsAmounts(server) && (queue === undefined || !countsAmounts(queue.attrs))) return true;
  for (const [resource, value] of Object.entries(next.Resource_List)) {
    const amount = amountOf(resources.get(resource), value);
    if (amount !== null && amount > (amountOf(resources.get(resource), before.Resource_List[resource]) ?? 0)) return false;
  }
  return true;
}

const COUNTING = ["max_run_res", "max_user_res", "max_group_res", "resources_available"] as const;
/** Whether an object has limits on amounts of resources. */
const countsAmounts = (attrs: Attrs): boolean => COUNTING.some((name) => Object.keys(attrs[name] ?? {}).length > 0);

/** Returns the exec_vnode of a job whose chunks are all on one vnode; null: its select cannot be read. Pure. */
export function execOn(resources: Resources, schedselect: string, vnode: string): string | null {
  const select = readSelect(schedselect);
  if (select === null) return null;
  const exec: ExecVnode = select.chunks.flatMap(({ count, pairs }) => {
    const part = {
      vnode,
      pairs: pairs.flatMap(({ name, text }) => {
        const def = resources.get(name);
        const amount = /[nf]/.test(def?.flags ?? "") ? amountOf(def, text) : null;
        return amount === null ? [] : [pairOf(name, String(amountValue(def, amount)))];
      }),
    };
    return Array.from({ length: count ?? 1 }, () => [part]);
  });
  return execVnodeText(exec);
}
