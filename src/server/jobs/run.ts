// Start of jobs: the check of a run decision against the present state, and the start on a mom.
//
// I1. Every decision of a scheduler is checked: job, queue, vnodes, free amounts, exclusivity, partition. A refusal is a normal answer (ARCHITECTURE.md).
// I2. If an operator names the vnodes (qrun -H), partitions, limits and amounts are not checked. The vnodes must exist and be up, and runners must belong to
//     the job's user.
// I3. run_count grows with every start; a mom refuses a start with a run_count that it has seen.
// I4. A suspended job that resumes is in state R, with its resources, before its mom is told; if the mom refuses, it is suspended again (suspension.ts).

import { listOf } from "#model/attribute-reader.ts";
import { PBSE, Reject, reject } from "#model/pbse.ts";
import { type ExecVnode, execVnodeText, parseExecVnode, vnodesOf } from "#model/request/exec-vnode.ts";
import { placeOf } from "#model/request/place.ts";
import { mustGet } from "#support/assert.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { wantsMail } from "../engine/mail.ts";
import type { Transaction } from "../engine/transaction.ts";
import { arrayOf } from "../state/apply.ts";
import { changedOwn, type OwnChange, without } from "../state/job-own.ts";
import { isForSched, isIn, isPlanned, isRunning, isSuspended, type PhaseName, RUN_PHASE } from "../state/job-phase.ts";
import { availableAmount } from "../state/occupancy.ts";
import { partitionOf, schedOfQueue } from "../state/partitions.ts";
import { execHost, releasedSpots, spots } from "../state/placement.ts";
import { resvOfQueue } from "../state/resv-holding.ts";
import type { Attrs, Job, Queue, ServerState, Vnode } from "../state/state.ts";
import { accountStarted } from "./accounting-record.ts";
import { discardCheckpointElsewhere, discardOutputElsewhere } from "./checkpointed.ts";
import { commentDate, isExecution, logJob, requestor } from "./life.ts";
import { checkInside, checkOutside } from "./resv-fit.ts";
import { noteStart, queuedSubjob } from "./subjob-start.ts";
import { beginResume } from "./suspension.ts";

export type RunOptions = {
  /** the walltime that the scheduler gives a shrink-to-fit job */
  readonly walltime_s?: number;
  /** the scheduler that decided the start; the job's queue must belong to that scheduler */
  readonly sched?: string;
  /** the start was requested with qrun: the job may be held, and its queue need not be started */
  readonly by_hand?: boolean;
  /** an operator has named the vnodes with qrun -H (I2) */
  readonly specified?: boolean;
};

/** Sends a job to its mom, or resumes a suspended job. Refuses with 15001, 15016, 15062, 15044. */
export function runJob(tx: Transaction, id: string, exec_vnode: string, options: RunOptions = {}): void {
  const exec = checkRun(tx, id, exec_vnode, options);
  const job = tx.state.jobs.get(id) ?? queuedSubjob(tx.state, id);
  if (job === undefined) return;
  if (exec === null) resumeNow(tx, job, options);
  else start(tx, job, exec, exec_vnode, options);
}

/** Checks whether the job may start on exec_vnode now; refuses as runJob does. Returns null for a suspended job, which would resume where it is. */
export function checkRun(tx: Transaction, id: string, exec_vnode: string, options: RunOptions): ExecVnode | null {
  const job = tx.state.jobs.get(id) ?? queuedSubjob(tx.state, id);
  if (job === undefined || job.subjobs !== undefined) throw reject(job === undefined ? PBSE.UNKJOBID : PBSE.IVALREQ);
  if (tx.stopping) throw reject(PBSE.SVRDOWN);
  if (isSuspended(job)) return null;
  const queue = mustGet(tx.state.queues, job.attrs.queue);
  checkJob(tx, job, queue, options);
  const exec = parseExecVnode(exec_vnode);
  checkVnodes(tx, job, queue, exec, options);
  return exec;
}

function checkJob(tx: Transaction, job: Job, queue: Queue, options: RunOptions): void {
  const manual = options.by_hand === true || options.specified === true;
  const phases: readonly PhaseName[] = manual ? ["queued", "held", "begun"] : ["queued", "begun"];
  if (!isIn(job, ...phases) || !isIn(arrayOf(tx.state, job) ?? job, ...phases)) throw reject(PBSE.BADSTATE);
  if (!isExecution(queue) || (queue.attrs["started"] !== true && !manual)) throw reject(PBSE.IVALREQ);
}

function checkVnodes(tx: Transaction, job: Job, queue: Queue, exec: ExecVnode, options: RunOptions): void {
  const { state } = tx;
  const place = placeOf(job.attrs.Resource_List["place"]);
  if (options.sched !== undefined && schedOfQueue(state, queue)?.name !== options.sched)
    throw refusedNow(`queue ${queue.name} belongs to another scheduler`);
  const resv = resvOfQueue(state, queue.name);
  const named = new Set(vnodesOf(exec));
  for (const [name, spot] of spots(state, exec, place)) {
    const vnode = state.vnodes.get(name);
    if (vnode === undefined) throw new Reject(PBSE.UNKNODE, `Unknown node  ${name}`);
    // An exclhost job also takes the other vnodes of its hosts. These must only be unused; their state and partition do not matter.
    const is_named = named.has(name);
    if (is_named) checkState(vnode, options);
    checkOwner(state, vnode, job);
    if (options.specified === true) continue;
    if (is_named && resv === undefined) checkBelongs(vnode, queue);
    if (is_named) checkRunnerEnd(state, vnode, job, tx.now_s);
    if (resv === undefined) checkOutside(state, vnode, spot);
    checkExclusive(vnode, spot.exclusive);
    if (resv === undefined) checkAmounts(tx, vnode, spot.amounts);
    else checkInside(state, resv, vnode, spot);
  }
}

/** Refuses a vnode with other jobs if one of the jobs needs it exclusively. Suspended jobs do not count. */
function checkExclusive(vnode: Vnode, exclusive: boolean): void {
  for (const use of vnode.jobs.values())
    if (!use.suspended && (exclusive || use.exclusive)) throw refusedNow(`vnode ${vnode.name} is in use and exclusiveness is asked`);
}

function checkBelongs(vnode: Vnode, queue: Queue): void {
  if (partitionOf(vnode) !== partitionOf(queue)) throw refusedNow(`vnode ${vnode.name} is in another partition`);
  const own = vnode.attrs["queue"];
  if (typeof own === "string" && own !== "" && own !== queue.name) throw refusedNow(`vnode ${vnode.name} belongs to queue ${own}`);
}

function checkAmounts(tx: Transaction, vnode: Vnode, amounts: ReadonlyMap<string, number>): void {
  for (const [resource, amount] of amounts) {
    const available = availableAmount(tx.state, vnode, resource);
    if (available !== null && (vnode.assigned.get(resource) ?? 0) + amount > available + 1e-9)
      throw refusedNow(`vnode ${vnode.name} has too little ${resource}`);
  }
}

/**
 * Refuses a runner that belongs to another user, also to an operator who names the vnodes: the job would have the rights of that user. Refuses a runner that was asked for with
 * other options than those of the job: its host may be of the wrong kind.
 */
function checkOwner({ runners }: ServerState, vnode: Vnode, { attrs }: Job): void {
  const runner = runners.get(vnode.name);
  if (runner === undefined) return;
  if (runner.attrs.bucket.owner !== attrs.euser) throw refusedNow(`runner ${vnode.name} belongs to another user`);
  if (runner.attrs.bucket.options !== attrs["backend_opts"]) throw refusedNow(`runner ${vnode.name} was asked for with other backend_opts`);
}

/** Refuses a runner whose walltime could end before the job. */
function checkRunnerEnd({ runners }: ServerState, vnode: Vnode, { attrs }: Job, now_s: number): void {
  if (!runners.has(vnode.name)) return;
  const end_s = vnode.attrs["runner_end"];
  const walltime = attrs.Resource_List["walltime"];
  const lasts_s = typeof walltime === "number" ? walltime : Number.POSITIVE_INFINITY;
  if (typeof end_s === "number" && now_s + lasts_s > end_s) throw refusedNow(`runner ${vnode.name} ends before the job`);
}

/** State words of a vnode that do not prevent a start. An operator who names the vnodes may also use a vnode that is offline or busy. */
const UP: ReadonlySet<string> = new Set(["job-busy", "job-exclusive", "resv-exclusive"]);
function checkState(vnode: Vnode, options: RunOptions): void {
  const states = listOf(vnode.attrs, "state");
  if (states.length === 0) return;
  const in_way = states.filter((word) => !UP.has(word) && !(options.specified === true && (word === "offline" || word === "busy")));
  if (in_way.length === 0) return;
  throw in_way.includes("down") || in_way.includes("state-unknown")
    ? reject(PBSE.NORELYMOM)
    : refusedNow(`vnode ${vnode.name} is ${in_way.join(",")}`);
}

const refusedNow = (why: string): Reject => new Reject(PBSE.RESCUNAV, `Resource temporarily unavailable: ${why}`);

function start(tx: Transaction, job: Job, exec: ExecVnode, exec_vnode: string, options: RunOptions): void {
  const set: Attrs = {
    ...RUN_PHASE.starting,
    exec_vnode: execVnodeText(exec),
    exec_host: execHost(tx.state, exec),
    run_count: (job.attrs.run_count ?? 0) + 1,
    stime: tx.now_s,
    comment: `Job was sent for execution at ${commentDate(tx)} on ${exec_vnode}`,
  };
  Object.assign(set, runnerAttrs(tx.state, exec));
  if (options.walltime_s !== undefined) set["Resource_List"] = { ...job.attrs.Resource_List, walltime: options.walltime_s };
  const own: OwnChange = {
    ...(options.specified === true ? { placed_by_hand: true } : {}),
    ...(set["exec_vnode"] === exec_vnode ? {} : { sent_to: exec_vnode }),
  };
  if (tx.state.jobs.has(job.id)) {
    const unset = [...OF_WAITING, ...OF_RUNNER].filter((name) => job.attrs[name] !== undefined && set[name] === undefined);
    tx.apply({ kind: "job-changed", id: job.id, set, unset, own });
  } else
    tx.apply({
      kind: "job-created",
      id: job.id,
      seq: job.seq,
      attrs: { ...job.attrs, mtime: tx.now_s, ...set },
      own: changedOwn(job.own, own),
      script: null,
    });
  logJob(tx, LOG_EVENT.JOB, job.id, `Job Run at request of ${requestor(tx)} on exec_vnode ${exec_vnode}`);
  tx.act({ kind: "start-job", job: job.id });
  const array = arrayOf(tx.state, job);
  if (array !== undefined) noteStart(tx, array);
}

/** The attributes that say on which runner a job runs; none for a job on other vnodes. */
function runnerAttrs({ runners }: ServerState, exec: ExecVnode): Attrs {
  const runner = runners.size === 0 ? undefined : runners.get(vnodesOf(exec)[0] ?? "");
  if (runner === undefined) return {};
  const { backend, remote } = runner.attrs;
  return { backend, runner: runner.name, ...(remote === undefined ? {} : { backend_id: remote }) };
}

/** Attributes that say on which runner a job runs or ran last. A run on other vnodes removes them. */
const OF_RUNNER = ["backend", "backend_id", "runner"] as const;

/** Attributes that only a waiting job has; ptime: when it was preempted; fail_reason: of its last run. */
const OF_WAITING = ["estimated", "topjob", "ptime", "fail_reason"] as const;

/**
 * Resumes a suspended job where it is, if the resources that it released are free. Requested by qrun, or by the scheduler
 * for a job in substate 45.
 */
export function resumeNow(tx: Transaction, job: Job, options: RunOptions = {}): void {
  const { state } = tx;
  const queue = mustGet(state.queues, job.attrs.queue);
  const by_sched = options.sched !== undefined && options.by_hand !== true;
  if (by_sched && (!isIn(job, "resumable") || queue.attrs["started"] !== true)) throw reject(PBSE.BADSTATE);
  if (options.sched !== undefined && schedOfQueue(state, queue)?.name !== options.sched)
    throw refusedNow(`queue ${queue.name} belongs to another scheduler`);
  const resv = resvOfQueue(state, queue.name);
  for (const [name, spot] of releasedSpots(state, job.attrs)) {
    const vnode = state.vnodes.get(name);
    if (vnode === undefined) throw new Reject(PBSE.UNKNODE, `Unknown node  ${name}`);
    checkState(vnode, {});
    checkExclusive(vnode, spot.exclusive);
    if (resv === undefined) checkAmounts(tx, vnode, spot.amounts);
    else checkInside(state, resv, vnode, spot);
  }
  beginResume(tx, job);
}

/**
 * Called when the mom has started the job: sets its session and comment, and writes record S (T if the job restarts from its
 * checkpoint). confirmed: whether the mom has reported the start.
 */
export function jobStarted(
  tx: Transaction,
  job: Job,
  session_id: number | undefined,
  jobdir: string | undefined,
  { restarted = false, confirmed = true }: { readonly restarted?: boolean; readonly confirmed?: boolean } = {},
): void {
  const where = job.own.sent_to ?? job.attrs.exec_vnode;
  const set: Attrs = { ...RUN_PHASE.running, comment: `Job run at ${commentDate(tx)} on ${where}` };
  if (session_id !== undefined) set["session_id"] = session_id;
  // The run has used nothing until the mom's first sample.
  set["resources_used"] ??= {
    cpupercent: 0,
    cput: 0,
    mem: "0kb",
    ncpus: Number(job.attrs.Resource_List["ncpus"] ?? 0),
    vmem: "0kb",
    walltime: 0,
  };
  if (jobdir !== undefined) set["jobdir"] = jobdir;
  if (!restarted) discardCheckpointElsewhere(tx, job);
  if (confirmed) discardOutputElsewhere(tx, job);
  const met = job.own.checkpointed !== undefined || (confirmed && job.own.output_on !== undefined);
  const own = met ? { own: without("checkpointed", ...(confirmed ? (["output_on"] as const) : [])) } : {};
  tx.apply({ kind: "job-changed", id: job.id, set, unset: [], ...own });
  if (wantsMail(job, "b")) tx.act({ kind: "mail", job: job.id, point: "b", text: "" });
  if (restarted) tx.account({ type: "T", id: job.id, text: "" });
  else accountStarted(tx, job);
}

/** The estimate that a scheduler publishes about the start of a waiting job. */
export type Estimate = {
  /** null: there is no estimate (any more) */
  readonly start_s: number | null;
  readonly exec_vnode: string | null;
  readonly topjob: boolean;
};

/** Sets or removes estimated.* and topjob. Refused for a job that no longer waits. */
export function estimateJob(tx: Transaction, id: string, { start_s, exec_vnode, topjob }: Estimate): void {
  const job = tx.state.jobs.get(id);
  if (job === undefined) throw reject(PBSE.UNKJOBID);
  if (!isPlanned(job)) throw reject(PBSE.BADSTATE);
  const { start_time: _start, exec_vnode: _where, ...others } = (job.attrs["estimated"] ?? {}) as { readonly [name: string]: unknown };
  const estimated = { ...others, ...(start_s === null ? {} : { start_time: start_s }), ...(exec_vnode === null ? {} : { exec_vnode }) };
  const set: Attrs = {};
  const unset: string[] = [];
  if (Object.keys(estimated).length > 0) set["estimated"] = estimated;
  else if (job.attrs["estimated"] !== undefined) unset.push("estimated");
  if (topjob) set["topjob"] = true;
  else if (job.attrs["topjob"] !== undefined) unset.push("topjob");
  tx.apply({ kind: "job-changed", id, set, unset });
}

/** Sets estimated.soft_walltime of a job that takes longer than expected. Refused for a job that does not run. */
export function extendJob(tx: Transaction, id: string, soft_walltime_s: number): void {
  const job = tx.state.jobs.get(id);
  if (job === undefined) throw reject(PBSE.UNKJOBID);
  if (!isRunning(job)) throw reject(PBSE.BADSTATE);
  const estimated = { ...(job.attrs["estimated"] ?? {}), soft_walltime: soft_walltime_s };
  tx.apply({ kind: "job-changed", id, set: { estimated }, unset: [] });
}

/** Sets a scheduler's comment on a waiting job. Refused for a job that no longer waits. */
export function commentJob(tx: Transaction, id: string, comment: string): void {
  const job = tx.state.jobs.get(id);
  if (job === undefined) throw reject(PBSE.UNKJOBID);
  if (!isForSched(job)) throw reject(PBSE.BADSTATE);
  if (job.attrs.comment !== comment) tx.apply({ kind: "job-changed", id, set: { comment }, unset: [] });
}
