// Backends and their runners (`partita runners`), and runners that a person knows to be dead (`partita confirm-dead`).
//
// I1. A user sees the ids and the resource requests of other users' jobs only if query_other_jobs allows it.

import { PBSE, Reject, reject } from "#model/pbse.ts";
import type { ConfirmDeadRequest } from "#protocol/messages.ts";
import type { BackendView, ConfirmedDead, RunnersItem, RunnersRest, RunnerView } from "#protocol/runners-view.ts";
import { checkOperator, isOwner, seesOthers } from "../attributes/permission.ts";
import type { Answer, Transaction } from "../engine/transaction.ts";
import { doingOf, partitionOfBackend, runnerCounts } from "../state/partitions.ts";
import type { Backend, Runner } from "../state/state.ts";
import { fullJobId } from "../status/job.ts";

/** The largest number of items in one slice of the answer: waiting buckets and runners together. */
const SLICE_ITEMS = 500;

export function viewRunners(tx: Transaction): Answer {
  const { state } = tx;
  const demands = tx.demands();
  const names = [...state.runners.keys()];
  let next = 0;
  const value = (): RunnersRest => ({ backends: [...state.backends.values()].map((backend) => backendView(tx, backend)) });
  const slice = (at: Transaction): boolean => {
    const items: RunnersItem[] = [];
    const until = Math.min(next + SLICE_ITEMS, demands.length + names.length);
    for (; next < until; next++) {
      const demand = demands[next];
      const runner = demand === undefined ? at.state.runners.get(names[next - demands.length] ?? "") : undefined;
      if (runner !== undefined) items.push({ runner: runnerView(at, runner) });
      else if (demand !== undefined && (seesOthers(at) || demand.bucket.owner === at.who.user))
        items.push({ waiting: { bucket: demand.bucket.key, partition: demand.partition, jobs: demand.ready } });
    }
    if (items.length > 0) at.part(items);
    return next < demands.length + names.length;
  };
  return slice(tx) ? { stream: { slice, value } } : { value: value() };
}

function backendView({ state }: Transaction, backend: Backend): BackendView {
  const { type, enabled, max_runners, last_error, last_error_time } = backend.attrs;
  return {
    backend: backend.name,
    type: String(type ?? ""),
    partition: partitionOfBackend(backend),
    state: String(backend.attrs["state"] ?? (enabled === true ? "starting" : "disabled")),
    max_runners: Number(max_runners ?? 0),
    ...runnerCounts(state, backend.name),
    last_error: typeof last_error === "string" ? last_error : null,
    last_error_s: typeof last_error_time === "number" ? last_error_time : null,
  };
}

function runnerView(tx: Transaction, runner: Runner): RunnerView {
  const { backend, bucket, asked_s, remote } = runner.attrs;
  const vnode = tx.state.vnodes.get(runner.name);
  const end_s = vnode?.attrs["runner_end"];
  const jobs = [...(vnode?.jobs.keys() ?? [])].filter((id) => seesOthers(tx) || isOwner(tx, tx.state.jobs.get(id)?.attrs.Job_Owner ?? ""));
  return {
    runner: runner.name,
    backend,
    backend_id: remote ?? null,
    state: doingOf(tx.state, runner),
    bucket: seesOthers(tx) || bucket.owner === tx.who.user ? bucket.key : "",
    reason: tx.runnerReason(runner.name),
    jobs,
    asked_s,
    end_s: typeof end_s === "number" ? end_s : null,
  };
}

/**
 * Counts lost runners as dead: their jobs are held, or end if they are not rerunnable. names: runners, or jobs on them; empty: all lost runners. age_s: only runners that have been
 * lost for at least this time.
 * Owners may do this for their own runners, operators for all.
 */
export function confirmDead(tx: Transaction, { names, age_s }: ConfirmDeadRequest): Answer {
  const { state } = tx;
  const asked = new Set(names.map((name) => runnerOf(tx, name)));
  const confirmed: string[] = [];
  for (const runner of [...state.runners.values()]) {
    const { lost_s, bucket } = runner.attrs;
    if (names.length > 0 && !asked.has(runner.name)) continue;
    if (lost_s === undefined) {
      if (names.length > 0) throw new Reject(PBSE.BADSTATE, `runner ${runner.name} is not lost`);
      continue;
    }
    if (tx.now_s - lost_s < age_s) continue;
    if (bucket.owner !== tx.who.user) checkOperator(tx.who);
    tx.act({ kind: "runner-dead", runner: runner.name, by: `${tx.who.user}@${tx.who.host}` });
    confirmed.push(runner.name);
  }
  const value: ConfirmedDead = { confirmed };
  return { value };
}

/** Returns the runner that a name means: the runner itself, or the runner on which the named job runs. Refuses any other name. */
function runnerOf({ state }: Transaction, name: string): string {
  if (state.runners.has(name)) return name;
  const id = fullJobId(state, name);
  const job = id === null ? undefined : state.jobs.get(id);
  if (id !== null && job === undefined) throw reject(PBSE.UNKJOBID);
  const [vnode] = job === undefined ? [] : (state.placements.get(job.id)?.vnodes.keys() ?? []);
  if (vnode === undefined || !state.runners.has(vnode)) throw new Reject(PBSE.UNKNODE, `${name} is neither a runner nor a job on one`);
  return vnode;
}
