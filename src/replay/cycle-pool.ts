// A pool of equal slots that the real scheduler schedules. The pool is one vnode, and each slot is a cpu of this vnode. The
// pool keeps the scheduler's mirror of the server's objects and updates the mirror by deltas. Every pass is a real cycle
// (src/sched/cycle/cycle.ts). This pool is slower than pool.ts. It is meant for traces whose result must come from the
// scheduler itself.
//
// X1. The algorithm `cons` is not available here, because the scheduler keeps plans by other rules (calendar/kept-plans.ts).
// X2. The ends of jobs are put into the mirror before a pass, the starts of jobs after it.

import { parseResourceGroup } from "#model/resource-group.ts";
import type { Change, SchedJob, SchedNode } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import type { Memory } from "#sched/cycle/result.ts";
import { NO_MEMORY } from "#sched/cycle/result.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import { MODULES_DEFAULT, mirrorOptions } from "#sched/modules/index.ts";
import { settingsOf as settingsOfFiles } from "#sched/policy/settings-text.ts";
import { ALWAYS_PRIME } from "#sched/shapes/holidays.ts";
import { UTC } from "#sched/shapes/local-time.ts";
import { POLICY_DEFAULT, type Policy } from "#sched/shapes/policy.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import { mustGet } from "#support/assert.ts";
import type { Algorithm } from "./algorithm.ts";
import type { Pool, PoolJob } from "./pool.ts";
import { type SchedSettings, settingsOf } from "./sched-settings.ts";
import type { TraceJob } from "./trace.ts";

const VNODE = "pool";

/** Creates a pool with procs slots. Returns null if the scheduler cannot express the algorithm (X1). */
export function createCyclePool(procs: number, algorithm: Algorithm): Pool | null {
  const settings = settingsOf(algorithm);
  if (settings === null) return null;
  const policy: Policy = { ...POLICY_DEFAULT, strict_ordering: settings.strict, update_comments: false };
  const book: PolicyBook = {
    prime: policy,
    non_prime: policy,
    holidays: ALWAYS_PRIME,
    dedicated: [],
    fairshare: parseResourceGroup("", 0).tree,
    modules: MODULES_DEFAULT,
    local: UTC,
  };
  return new CyclePool(procs, settings, book);
}

/**
 * Creates a pool with procs slots whose scheduler has this sched_config and no attributes. Throws a RangeError with the messages about lines that are wrong or
 * that a replay cannot obey.
 */
export function createConfiguredPool(procs: number, sched_config: string): Pool {
  const { book, chain, messages } = settingsOfFiles({ sched_config, dedicated_time: null, resource_group: null, holidays: null }, UTC);
  const wrong = messages.filter(({ object }) => object === "sched_config").map(({ text }) => text);
  if (chain.site_modules.length > 0) wrong.push("modules of a site do not run in a replay");
  if (book.prime.fair_share || book.non_prime.fair_share) wrong.push("fair_share: a replay counts no usage");
  if ((book.dyn_res ?? []).length > 0) wrong.push("server_dyn_res: no programs run in a replay");
  if (wrong.length > 0) throw new RangeError(wrong.join("; "));
  const quiet = (policy: Policy): Policy => ({ ...policy, update_comments: false });
  const settings = { sched: {}, backfill_depth: 1, strict: false };
  return new CyclePool(procs, settings, { ...book, prime: quiet(book.prime), non_prime: quiet(book.non_prime) });
}

class CyclePool implements Pool {
  readonly #procs: number;
  readonly #book: PolicyBook;
  readonly #universe: ReturnType<typeof createUniverse>;
  readonly #running = new Map<string, PoolJob>();
  readonly #waiting = new Map<string, { readonly entry: PoolJob; readonly job: SchedJob }>();
  #used = 0;
  /** deltas that have not been applied to the mirror yet */
  #changes: Change[] = [];
  #memory: Memory = NO_MEMORY;

  constructor(procs: number, { sched, backfill_depth }: SchedSettings, book: PolicyBook) {
    this.#procs = procs;
    this.#book = book;
    this.#universe = createUniverse(
      {
        revision: 0,
        server: { name: "svr", attrs: { backfill_depth }, assigned: {} },
        sched: { name: "default", attrs: { ...sched, log_events: 0, opt_backfill_fuzzy: "off" } },
        resources: [],
        queues: [{ name: "workq", attrs: { queue_type: "Execution", started: true } }],
        nodes: [this.#node()],
        jobs: [],
        resvs: [],
        clocks: [],
      },
      mirrorOptions(book),
    );
  }

  submit(at: number, job: TraceJob): void {
    const id = `${at}.svr`;
    const queued = schedJob(id, at, job);
    this.#waiting.set(id, { entry: { at, job, amounts: [], start_s: Number.POSITIVE_INFINITY }, job: queued });
    this.#changes.push({ put: "job", value: queued });
  }

  end({ at, job }: PoolJob): void {
    this.#running.delete(`${at}.svr`);
    this.#used -= job.procs;
    this.#changes.push({ drop: "job", id: `${at}.svr` });
  }

  pass(now_s: number): PoolJob[] {
    this.#tell();
    const result = cycle(this.#universe, this.#book, { now_s, command: SCHED_COMMAND.TIME, memory: this.#memory });
    this.#memory = result.memory;
    const started: PoolJob[] = [];
    for (const decision of result.decisions) {
      if (decision.kind === "run") started.push(this.#start(decision.job, now_s));
      else if (decision.kind === "estimate") this.#publish(decision);
    }
    this.#tell();
    return started;
  }

  nextPlan_s(): number {
    return Number.POSITIVE_INFINITY;
  }

  #node(): SchedNode {
    return {
      name: VNODE,
      order: 0,
      attrs: {
        resources_available: { arch: "linux", host: VNODE, vnode: VNODE, ncpus: this.#procs },
        state: this.#used >= this.#procs ? ["job-busy"] : [],
        sharing: "default_shared",
      },
      assigned: { ncpus: this.#used },
      jobs: [...this.#running.keys()],
    };
  }

  #tell(): void {
    if (this.#changes.length === 0) return;
    applyDelta(this.#universe, {
      revision: this.#universe.revision + 1,
      changes: [...this.#changes, { put: "node", value: this.#node() }],
    });
    this.#changes = [];
  }

  #start(id: string, now_s: number): PoolJob {
    const { entry, job } = mustGet(this.#waiting, id);
    this.#waiting.delete(id);
    this.#running.set(id, entry);
    entry.start_s = now_s;
    this.#used += entry.job.procs;
    const exec_vnode = `(${VNODE}:ncpus=${entry.job.procs})`;
    this.#changes.push({ put: "job", value: { ...job, state: "R", substate: 42, stime_s: now_s, exec_vnode, run_count: 1 } });
    return entry;
  }

  /** Gives the published estimate of a job back to the mirror, in the form that a server would send. */
  #publish({ job: id, start_s, exec_vnode, topjob }: Estimate): void {
    const known = this.#waiting.get(id);
    if (known === undefined) return;
    const estimated = { ...(start_s === null ? {} : { start_time: start_s }), ...(exec_vnode === null ? {} : { exec_vnode }) };
    const job: SchedJob = { ...known.job, topjob, estimated };
    this.#waiting.set(id, { ...known, job });
    this.#changes.push({ put: "job", value: job });
  }
}

type Estimate = { readonly job: string; readonly start_s: number | null; readonly exec_vnode: string | null; readonly topjob: boolean };

function schedJob(id: string, rank: number, { procs, est_s, submit_s }: TraceJob): SchedJob {
  return {
    id,
    state: "Q",
    substate: 10,
    queue: "workq",
    rank,
    user: "u",
    group: "g",
    project: "p",
    name: "j",
    priority: 0,
    schedselect: `1:ncpus=${procs}`,
    place: "free",
    resources: { ncpus: procs, nodect: 1, walltime: est_s },
    ctime_s: submit_s,
    qtime_s: submit_s,
    run_count: 0,
    rerunable: true,
  };
}
