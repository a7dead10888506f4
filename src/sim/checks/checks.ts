// What must be true in every simulated complex, whatever happens to it. Each check throws a Violation that describes what is
// wrong.
//
// K1. The server's invariants hold at every step (src/server/core/invariants.ts).
// K2. A job whose submission was answered exists after every restart, until it has ended. A restarted server finds exactly what
//     was committed.
// K3. A job has one process at a time over all hosts, also while hosts are cut off: a host ends its rerunnable jobs before the
//     server starts them elsewhere. There are two exceptions: a request forced the server to give up the earlier start, or the
//     job tolerated that it was started without one of its hosts.
// K4. The processes that really run on a vnode never use more than it has, and a job that needs the vnode exclusively is alone.
// K5. A job that a scheduler starts gets vnodes of the scheduler's partitions, and the job's queue belongs to one of these
//     partitions. A suspended job continues on its old vnodes.
// K6. Accounting records: one Q for a job and one for each of its moves; one R, C or E between an S or T and the next S or T;
//     and one record of the end. A subjob has no Q.
// K7. What an idle scheduler knows equals the server's state, and the data that it derived from deltas equals the data derived
//     from a snapshot (mirror.ts).
// K8. A job that waits for other jobs does not run, unless an operator runs it or a manager or a hook released it.
// K9. A job on several hosts starts on its first host only after it is present on all others.
// K10. See promises.ts.
// K11. A reservation whose submission was answered exists after every restart, until it has ended. Its accounting records: U
//     first, B only after a Y, one K or k at the end and nothing after it.
// K12. See leftovers.ts.

import type { HookOutcome, HookRun } from "#hooks/run/hook-input.ts";
import type { Decision } from "#protocol/sched-link.ts";
import type { Core } from "#server/core/core.ts";
import { violations } from "#server/core/invariants.ts";
import type { Batch } from "#server/engine/batch.ts";
import type { AccountingRecord } from "#server/engine/transaction.ts";
import type { JobAttrs, ServerState } from "#server/state/state.ts";
import { checkJobRecords, checkResvRecords } from "./accounting.ts";
import { Committed } from "./committed.ts";
import { type SeatedProcess, Seats } from "./seats.ts";
import { Verdicts } from "./verdicts.ts";
import { fail, Violation } from "./violation.ts";

/** Text in the server's log which means that a job left a host although its mom did not report the end (K3). */
const GIVEN_UP_LOG = /^Job is started without /;

export class Checks {
  /** The ids of jobs that the server has returned to clients. */
  readonly accepted = new Set<string>();
  readonly #scale: number;
  readonly #also: (core: Core) => string | null;
  readonly #jobs = new Committed("K2");
  readonly #resvs = new Committed("K11");
  readonly #verdicts = new Verdicts();
  readonly #seats = new Seats();
  /** how many times each job entered a queue */
  readonly #entries = new Map<string, number>();
  #state: ServerState | null = null;
  #looked = 0;

  /**
   * scale: how large the complex is (drawn/scenario.ts). The check of K1 takes longer the more jobs there are, so in a larger complex it
   * is checked only after every few steps. also: a further check of the server after each step; it returns the fault, or null.
   */
  constructor(scale = 1, also: (core: Core) => string | null = () => null) {
    this.#scale = scale;
    this.#also = also;
  }

  /** Number of running processes of jobs, including those that the server has given up. */
  get running(): number {
    return this.#seats.size;
  }

  // --- what happens in the server

  stepped(core: Core): void {
    this.#state = core.state;
    this.#checkState(core);
    const wrong = this.#also(core);
    if (wrong !== null) fail(wrong);
  }

  loaded(core: Core): void {
    const { state } = core;
    this.#state = state;
    this.#verdicts.load();
    const faults = violations(state);
    if (faults.length > 0) fail(`K1 after a start: ${faults.join("; ")}`);
    this.#jobs.load(state.jobs);
    this.#resvs.load(state.resvs);
    for (const id of state.jobs.keys()) if (!this.#jobs.has(id)) fail(`K2 ${id} was never committed and is there after a start`);
  }

  decided(core: Core, link: number, decisions: readonly Decision[]): void {
    this.#verdicts.decide(core, link, decisions);
  }

  taken(core: Core, batch: Batch): void {
    this.#checkState(core);
    this.#verdicts.check(core, batch.scheds, true);
    this.#jobs.take(batch.changes.jobs, core.state.jobs);
    this.#resvs.take(batch.changes.resvs, core.state.resvs);
    for (const { text, object } of batch.logs) {
      if (text.startsWith("enqueuing into ")) this.#entries.set(object, (this.#entries.get(object) ?? 0) + 1);
      if (GIVEN_UP_LOG.test(text)) this.#seats.giveUp(object, core.state.jobs.get(object));
    }
  }

  committed(): void {
    this.#jobs.commit();
    this.#resvs.commit();
  }

  /** Called after a hook: like a manager, it may have released a system hold. */
  hooked({ input }: HookRun, outcome: HookOutcome): void {
    if (outcome.kind !== "accept" && outcome.kind !== "reject") return;
    const holds = outcome.changes.job?.["Hold_Types"];
    const id = input.job?.id;
    if (typeof id === "string" && typeof holds === "string" && !holds.includes("s")) this.#seats.letGo(id);
  }

  /** Checks the server's invariants (K1). */
  #checkState(core: Core): void {
    if (++this.#looked % this.#scale !== 0) return;
    const faults = violations(core.state);
    if (faults.length > 0) fail(`K1 ${faults.join("; ")}`);
  }

  // --- what happens to clients

  /** Called when a submission was answered with this id. */
  answered(id: string): void {
    if (this.accepted.has(id)) fail(`K2 id ${id} was given twice`);
    this.accepted.add(id);
    if (!this.#jobs.has(id)) fail(`K2 ${id} was answered before it was committed`);
  }

  /** Called when a request ends a job without a report of its mom. */
  force(id: string): void {
    this.#seats.force(id);
  }

  /** Called when somebody has allowed the job to run although it still waits for other jobs (K8). */
  letGo(id: string): void {
    this.#seats.letGo(id);
  }

  // --- what happens on hosts

  /** Called when a process of a job has started. attrs: returns the present attributes of the job on its mom. */
  born(process: SeatedProcess, attrs: () => JobAttrs): void {
    this.#seats.add(process, attrs, this.#state);
  }

  died(process: SeatedProcess): void {
    this.#seats.remove(process);
  }

  // --- the end of the simulation

  accounting(records: readonly AccountingRecord[], live: ServerState): void {
    checkJobRecords(records, live, this.#jobs, this.#entries);
    checkResvRecords(records, live, this.#resvs);
  }
}

/** Returns the attributes of a job as its mom received them. */
export function attrsOfRun(attrs: { readonly [name: string]: unknown } | undefined): JobAttrs {
  if (attrs === undefined) throw new Violation("a process starts for a job its mom does not know");
  return attrs as JobAttrs;
}
