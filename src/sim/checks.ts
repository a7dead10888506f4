// What must hold in every world, whatever happens to it. Each check throws a Violation that says what is broken.
//
// K1. The server's invariants, at every step (src/server/core/invariants.ts).
// K2. A job whose submission was answered is there after every restart, until it has ended; what was committed is what a restarted server finds.
// K3. A job has one process at a time over all hosts, unless the server had given the earlier run up (host silent too long, or by force).
// K4. No vnode is oversubscribed by the processes that really run on it, and an exclusive job is alone.
// K5. A run decided by a scheduler is on vnodes of its partitions, and so is the job's queue; a suspended job goes on where it was.
// K6. Accounting: one Q for a job (and one for each move), each S or T followed by one R, C or E before the next, one end. A subjob has no Q.
// K8. A job that waits for others is not run, but by hand or when a manager or a hook let it go.
// K9. A job over several hosts starts on its first one when it is on all others.
// K7. A quiet scheduler's mirror equals the server's state, and what it derived from deltas equals what a snapshot gives.
// K8. A reservation whose submission was answered is there after every restart, until it has ended; its records: U first, B only after a Y, one K or k at
//     the end and nothing after it.

import type { HookOutcome, HookRun } from "#hooks/hook-input.ts";
import { positionOf } from "#model/array-indices.ts";
import { isDependent } from "#model/depend.ts";
import { arrayIdOf, jobIdText, parseJobId, subjobIndex } from "#model/job-id.ts";
import { parseExecVnode } from "#model/request/exec-vnode.ts";
import { hostsOf } from "#model/request/host-entry.ts";
import { placeOf } from "#model/request/place.ts";
import { RESV_STATE } from "#model/resv-state.ts";
import type { Decision } from "#protocol/sched-link.ts";
import type { Core } from "#server/core/core.ts";
import { violations } from "#server/core/invariants.ts";
import type { Batch, SchedFrame } from "#server/engine/batch.ts";
import { runtimeOfLink } from "#server/engine/sched-runtime.ts";
import type { AccountingRecord } from "#server/engine/transaction.ts";
import { isResuming } from "#server/jobs/suspension.ts";
import { isWithMom } from "#server/state/job-phase.ts";
import { partitionOf, partitionsOf } from "#server/state/partitions.ts";
import { hostOf, isExclusive } from "#server/state/placement.ts";
import type { JobAttrs, ServerState } from "#server/state/state.ts";
import type { VirtualProcess } from "./starter-process.ts";

export class Violation extends Error {
  override readonly name = "Violation";
}

type Seat = { readonly process: VirtualProcess; readonly attrs: JobAttrs };

export type Checks = ReturnType<typeof createChecks>;

/**
 * scale: of the world (scenario.ts). K1 costs as much as there are jobs: in larger worlds it is looked at in every so many steps only.
 * also: looks at the server after each step, too; what is wrong, or null.
 */
export function createChecks(scale = 1, also: (core: Core) => string | null = () => null) {
  /** committed jobs: true while they live */
  const committed = new Map<string, boolean>();
  /** the same of reservations */
  const committed_resvs = new Map<string, boolean>();
  /** how the batch under way will change that */
  let pending: readonly (readonly [id: string, live: boolean])[] = [];
  let pending_resvs: readonly (readonly [id: string, live: boolean])[] = [];
  const accepted = new Set<string>();
  /** `job/run` the server has given up without hearing of its end */
  const given_up = new Set<string>();
  const forced = new Set<string>();
  const let_go = new Set<string>();
  const seats = new Set<Seat>();
  /** `job/run/host`: it had a process there */
  const been = new Set<string>();
  let state: ServerState | null = null;
  let looked = 0;
  /** decisions without verdicts, by link, and frames of verdicts that were looked at */
  const undecided = new Map<number, (readonly Decision[])[]>();
  const judged = new WeakSet<SchedFrame>();
  /** how often each job entered a queue */
  const entries = new Map<string, number>();

  const fail = (text: string): never => {
    throw new Violation(text);
  };

  /** The verdicts that came just now. late: after hooks, when anything may have happened since, or preemptions, when what is behind them is of this moment. */
  const checkVerdicts = (core: Core, frames: readonly SchedFrame[], late: boolean): void => {
    for (const frame of frames) {
      if (frame.type !== "sched-verdicts" || judged.has(frame)) continue;
      judged.add(frame);
      const decisions = undecided.get(frame.link)?.shift();
      const runtime = runtimeOfLink(core.kernel, frame.link);
      if (decisions === undefined || runtime === undefined) continue;
      const { verdicts } = frame.data;
      if (verdicts.length !== decisions.length) fail(`K5 ${decisions.length} decisions, ${verdicts.length} verdicts`);
      const from = late ? decisions.findLastIndex(({ kind }) => kind === "preempt") : -1;
      if (late && from < 0) continue;
      decisions.forEach((decision, at) => {
        if (decision.kind === "run" && at > from && verdicts[at]?.ok === true) checkRun(core, runtime.name, decision);
      });
    }
  };

  const checkRun = (core: Core, name: string, decision: Extract<Decision, { kind: "run" }>): void => {
    // job_run_wait none: its hooks are still being asked.
    if (core.kernel.scheds.get(name)?.asking.has(decision.job) === true) return;
    const sched = core.state.scheds.get(name);
    const partitions = sched === undefined ? [] : partitionsOf(sched);
    const job = core.state.jobs.get(decision.job);
    const queue = job === undefined ? undefined : core.state.queues.get(job.attrs.queue);
    // Where a scheduler waits for the mom (job_run_wait), the job may be over by the time of its verdict; K2 and K6 look at that.
    if (job === undefined || queue === undefined) return;
    const where = partitionOf(queue);
    if (!partitions.includes(where)) fail(`K5 scheduler ${name} of ${partitions} ran ${job.id} of queue ${queue.name} in ${where}`);
    // Who goes on after a suspension does so where he was, and his queue may have been given to another partition meanwhile.
    if (isResuming(job)) return;
    for (const { vnode } of parseExecVnode(job.attrs.exec_vnode ?? "").flat()) {
      const own = core.state.vnodes.get(vnode);
      if (own === undefined || partitionOf(own) !== where)
        fail(`K5 ${job.id} of partition ${where} was run on ${vnode} of ${own === undefined ? "nowhere" : partitionOf(own)}`);
    }
  };

  /** K1. */
  const checkState = (core: Core): void => {
    if (++looked % scale !== 0) return;
    const faults = violations(core.state);
    if (faults.length > 0) fail(`K1 ${faults.join("; ")}`);
  };

  return {
    accepted,
    /** processes that run now, given-up ones included */
    get running() {
      return seats.size;
    },

    stepped(core: Core): void {
      state = core.state;
      checkState(core);
      const wrong = also(core);
      if (wrong !== null) fail(wrong);
    },

    loaded(core: Core): void {
      state = core.state;
      pending = [];
      pending_resvs = [];
      undecided.clear();
      const faults = violations(core.state);
      if (faults.length > 0) fail(`K1 after a start: ${faults.join("; ")}`);
      for (const [id, live] of committed)
        if (live !== core.state.jobs.has(id))
          fail(`K2 ${id} was committed as ${live ? "live" : "ended"} and is ${live ? "gone" : "there"} after a start`);
      for (const [id, live] of committed_resvs)
        if (live !== core.state.resvs.has(id))
          fail(`K8 ${id} was committed as ${live ? "live" : "ended"} and is ${live ? "gone" : "there"} after a start`);
      for (const id of core.state.jobs.keys()) if (!committed.has(id)) fail(`K2 ${id} was never committed and is there after a start`);
    },

    taken(core: Core, batch: Batch): void {
      checkState(core);
      checkVerdicts(core, batch.scheds, true);
      pending_resvs = [...batch.changes.resvs].map((id) => [id, core.state.resvs.has(id)] as const);
      pending = [...batch.changes.jobs].map((id) => [id, core.state.jobs.has(id)] as const);
      for (const { text, object } of batch.logs) {
        if (text.startsWith("enqueuing into ")) entries.set(object, (entries.get(object) ?? 0) + 1);
        if (/^Job (requeued, |deleted, |given up on )execution node |^Job is started without /.test(text)) giveUp(core, object);
      }
      for (const { id, text } of batch.accounting) if (/execution node .* down/.test(text)) giveUp(core, id);
    },

    committed(): void {
      for (const [id, live] of pending) {
        if (committed.get(id) === false && live) fail(`K2 ${id} had ended and lives again`);
        committed.set(id, live);
      }
      pending = [];
      for (const [id, live] of pending_resvs) {
        if (committed_resvs.get(id) === false && live) fail(`K8 ${id} had ended and lives again`);
        committed_resvs.set(id, live);
      }
      pending_resvs = [];
    },

    /** a submission was answered with this id */
    answered(id: string): void {
      if (accepted.has(id)) fail(`K2 id ${id} was given twice`);
      accepted.add(id);
      if (!committed.has(id)) fail(`K2 ${id} was answered before it was committed`);
    },

    /** a request that ends a run without its mom's word */
    force(id: string): void {
      forced.add(id);
    },

    decided(core: Core, link: number, decisions: readonly Decision[]): void {
      const waiting = undecided.get(link) ?? [];
      undecided.set(link, waiting);
      waiting.push(decisions);
      checkVerdicts(core, core.kernel.out.scheds, false);
    },

    /** who may run though it waits for others */
    letGo(id: string): void {
      let_go.add(id);
    },

    /** a hook may take a system hold off, as a manager may */
    hooked({ input }: HookRun, outcome: HookOutcome): void {
      if (outcome.kind !== "accept" && outcome.kind !== "reject") return;
      const holds = outcome.changes.job?.["Hold_Types"];
      const id = input.job?.id;
      if (typeof id === "string" && typeof holds === "string" && !holds.includes("s")) let_go.add(id);
    },

    born(process: VirtualProcess, attrs: JobAttrs): void {
      const seat = { process, attrs };
      if (isDependent(attrs["depend"]) && !let_go.has(process.job)) fail(`K8 ${process.job} runs and waits for ${attrs["depend"]}`);
      for (const other of seats) {
        if (other.process.job !== process.job) continue;
        if (
          other.process.run_count === process.run_count &&
          other.process.host !== process.host &&
          hostsOf(attrs.exec_host ?? "").includes(process.host)
        )
          continue;
        if (other.process.run_count >= process.run_count)
          fail(
            `K3 ${process.job}: run ${process.run_count} starts on ${process.host} while run ${other.process.run_count} is on ${other.process.host}`,
          );
        if (!isGivenUp(other.process))
          fail(
            `K3 ${process.job}: run ${process.run_count} starts on ${process.host} while run ${other.process.run_count} still lives on ${other.process.host}`,
          );
      }
      seats.add(seat);
      been.add(`${process.job}/${process.run_count}/${process.host}`);
      const [mother, ...sisters] = hostsOf(attrs.exec_host ?? "");
      for (const sister of process.host === mother ? sisters : [])
        if (!been.has(`${process.job}/${process.run_count}/${sister}`))
          fail(`K9 ${process.job}: run ${process.run_count} starts on ${mother} before ${sister} has joined`);
      checkSeats(process);
    },

    died(process: VirtualProcess): void {
      for (const seat of seats) if (seat.process === process) seats.delete(seat);
    },

    accounting(records: readonly AccountingRecord[], live: ServerState): void {
      const by_job = new Map<string, string>();
      for (const { id, type } of records) if (/^\d/.test(id)) by_job.set(id, (by_job.get(id) ?? "") + type);
      // A subjob that waits again may never have been confirmed by a mom.
      for (const id of committed.keys())
        if (!by_job.has(id) && !(arrayIdOf(id) !== null && live.jobs.has(id))) fail(`K6 ${id} is not in the accounting`);
      for (const [id, letters] of by_job) checkLetters(id, letters, live);
      checkResvRecords(records, live);
    },
  };

  function giveUp(core: Core, id: string): void {
    const job = core.state.jobs.get(id);
    const run = job?.attrs.run_count;
    for (const { process } of seats)
      if (process.job === id && (run === undefined || process.run_count <= run)) given_up.add(`${id}/${process.run_count}`);
    // Its start may still be on the way.
    if (run !== undefined) given_up.add(`${id}/${run}`);
  }

  function isGivenUp(process: VirtualProcess): boolean {
    if (given_up.has(`${process.job}/${process.run_count}`) || forced.has(process.job)) return true;
    return [...forced].some((id) => isNamedBy(process.job, id));
  }

  /** The processes on the vnodes of a new one, against what the vnodes have. Those of runs that the server no longer counts do not count here. */
  function checkSeats(process: VirtualProcess): void {
    if (state === null) return;
    const sums = new Map<string, { ncpus: number; jobs: Seat[]; by_hand: boolean }>();
    for (const seat of seats) {
      const job = state.jobs.get(seat.process.job);
      if (
        job === undefined ||
        !isWithMom(job) ||
        job.attrs.run_count !== seat.process.run_count ||
        job.attrs.job_state === "S" ||
        seat.process.stopped
      )
        continue;
      for (const { vnode, pairs } of parseExecVnode(seat.attrs.exec_vnode ?? "").flat()) {
        const on = state.vnodes.get(vnode);
        if (on !== undefined && hostOf(on) !== seat.process.host) continue;
        const sum = sums.get(vnode) ?? { ncpus: 0, jobs: [], by_hand: false };
        sum.ncpus += Number(pairs.find((pair) => pair.name === "ncpus")?.text ?? 0);
        if (!sum.jobs.some((other) => other.process === seat.process)) sum.jobs.push(seat);
        sum.by_hand ||= job.attrs["placed_by_hand"] === true;
        sums.set(vnode, sum);
      }
    }
    for (const [name, sum] of sums) {
      const vnode = state.vnodes.get(name);
      if (vnode === undefined || sum.by_hand || !sum.jobs.some((seat) => seat.process === process)) continue;
      const available = (vnode.attrs["resources_available"] as { ncpus?: number } | undefined)?.ncpus;
      const jobs = sum.jobs.map((seat) => seat.process.job).join(" ");
      if (available !== undefined && sum.ncpus > available)
        fail(`K4 vnode ${name} has ${available} cpus, ${sum.ncpus} are used by ${jobs}`);
      const alone = sum.jobs.filter((seat) => isExclusive(vnode, placeOf(seat.attrs.Resource_List["place"])));
      if (alone.length > 0 && sum.jobs.length > 1)
        fail(`K4 ${alone.map((seat) => seat.process.job)} wants vnode ${name} alone, there are ${jobs}`);
    }
  }

  function checkResvRecords(records: readonly AccountingRecord[], live: ServerState): void {
    const by_resv = new Map<string, string>();
    for (const { id, type } of records) if (/^[RSM]/.test(id)) by_resv.set(id, (by_resv.get(id) ?? "") + type);
    for (const id of committed_resvs.keys()) if (!by_resv.has(id)) fail(`K8 ${id} is not in the accounting`);
    for (const [id, letters] of by_resv) {
      if (!/^U(Y[YB]*)?[Kk]?$/.test(letters)) fail(`K8 ${id}: its records are ${letters}`);
      if (/[Kk]$/.test(letters) === live.resvs.has(id) && live.resvs.get(id)?.attrs.reserve_state !== RESV_STATE.BEING_DELETED)
        fail(`K8 ${id}: its records are ${letters}, and it ${live.resvs.has(id) ? "lives" : "is gone"}`);
    }
  }

  function checkLetters(id: string, letters: string, live: ServerState): void {
    const say = (what: string): never => fail(`K6 ${id}: ${what} (${letters})`);
    // A subjob that was deleted before it started was never a job of its own.
    const unstarted = /^D+$/.test(letters) && committed.has(arrayIdOf(id) ?? "");
    if (!committed.has(id) && !unstarted) say("accounted for and never committed");
    const subjob = arrayIdOf(id) !== null;
    if (letters.startsWith("Q") === subjob) say(subjob ? "a Q of a subjob" : "no Q first");
    const count = (letter: string): number => letters.split(letter).length - 1;
    if (count("Q") > (entries.get(id) ?? 0)) say(`${count("Q")} Q records, ${entries.get(id) ?? 0} times in a queue`);
    let running = false;
    let saved = false;
    for (const letter of letters) {
      if (BEGINS.has(letter) && running) say(`a second ${letter}`);
      if ((letter === "R" || letter === "C") && !running) say(`a ${letter} without S or T`);
      if (letter === "T" && !saved) say("a T without C");
      if (BEGINS.has(letter)) [running, saved] = [true, false];
      else if (letter === "C") [running, saved] = [false, true];
      else if (letter === "R" || letter === "E") running = false;
    }
    const job = live.jobs.get(id);
    if (job !== undefined) {
      if (count("E") + count("A") > 0) say("ended and lives");
      if (running && !isWithMom(job) && job.subjobs === undefined) say("waits after an S without R");
      return;
    }
    if (count("E") > 1) say("several E");
    if (count("A") > 1) say("several A");
    if (count("E") + count("A") + count("D") === 0) say("gone without a record");
    if (running) say("gone after an S without E");
  }
}

/** Records of a run that begins: from the beginning, or from a checkpoint. */
const BEGINS: ReadonlySet<string> = new Set(["S", "T"]);

/** Whether an id of an array or a range names the subjob. */
function isNamedBy(subjob: string, id: string): boolean {
  const parsed = parseJobId(id);
  if (arrayIdOf(subjob) === null || parsed === null || jobIdText({ ...parsed, kind: "array" }) !== arrayIdOf(subjob)) return false;
  return parsed.kind === "array" || (parsed.kind === "range" && parsed.ranges.some((range) => positionOf(range, subjobIndex(subjob)) >= 0));
}

/** A job's attributes as a mom was given them. */
export function attrsOfRun(attrs: { readonly [name: string]: unknown } | undefined): JobAttrs {
  if (attrs === undefined) throw new Violation("a process starts for a job its mom does not know");
  return attrs as JobAttrs;
}
