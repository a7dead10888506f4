// Runs the cycles of a scheduler one at a time: each is decided, sent, answered by the server and logged.
//
// C1. The log of a cycle is written when all verdicts have arrived, because it reports what the server did, not what the scheduler decided.
// C2. The decisions of a cycle are sent in parts while it goes on; the server carries them out meanwhile.
// C3. A further pass of the same cycle sees what the pass before has done.

import type { Fairshare } from "#model/fairshare.ts";
import type { SchedCycle, Verdict } from "#protocol/sched-link.ts";
import { assert } from "#support/assert.ts";
import { cycle, cycleInParts } from "../cycle/cycle.ts";
import { type CycleInput, type Memory, NO_MEMORY } from "../cycle/result.ts";
import { setDynamic } from "../mirror/mirror.ts";
import { failedVictims, outcomeOf } from "../preempt/failed-victims.ts";
import type { CycleReport } from "../shapes/module.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import type { Universe } from "../shapes/universe.ts";
import { begunWork, framesOf, logOf, refusalComments, takeOwnComments, type Work } from "./cycle-work.ts";
import type { DynValues, SchedPorts } from "./ports.ts";
import { shareMatters, type UsageKeeper } from "./usage-keeper.ts";

/** The default of server_dyn_res_alarm in seconds. */
const DYN_RES_ALARM_S = 30;
const NOTHING_DYNAMIC: DynValues = new Map();

export type CyclesOptions = {
  readonly ports: SchedPorts;
  readonly usage: UsageKeeper;
  /** Returns the universe; null: the scheduler is not connected. */
  mirror(): Universe | null;
  book(): PolicyBook;
  /**
   * Applies the deltas that have arrived since the last pass. "new snapshot": another pass would need another universe.
   * "broken": the universe can no longer be used.
   */
  catchUp(): "done" | "new snapshot" | "broken";
  /** Called when the programs of server_dyn_res have answered for a cycle. begin() must be called as soon as the scheduler does nothing else. */
  ready(): void;
  /** Called when a pass has made all its decisions. bound_s: when the next cycle is wanted, in epoch seconds; null: at no certain time. */
  decided(bound_s: number | null): void;
  /** Called when a cycle has ended. report: for modules and for answers to clients; null: nothing was decided. */
  over(report: CycleReport | null): void;
};

export class Cycles {
  readonly #options: CyclesOptions;
  #memory: Memory = NO_MEMORY;
  #work: Work | null = null;
  /** usage of shares at the last cycle; null: no share has been used */
  #shares: Fairshare | null = null;
  /** begins the cycle whose programs have answered; null: there is none */
  #ready: (() => void) | null = null;
  /** a number that grows when requested cycles are dropped; an answer of programs that carries an older number is ignored */
  #attempts = 0;

  constructor(options: CyclesOptions) {
    this.#options = options;
  }

  get memory(): Memory {
    return this.#memory;
  }

  /** the usage of shares; null: no share has been used */
  get shares(): Fairshare | null {
    return this.#shares;
  }

  /** Whether a cycle has begun and has not ended. */
  get isUnderWay(): boolean {
    return this.#work !== null;
  }

  /** Whether a cycle still has decisions to make. */
  get isDeciding(): boolean {
    return this.#work !== null && this.#work.result === null;
  }

  /** Drops the present cycle, because the connection is lost. */
  forget(): void {
    this.#work = null;
    this.forgetAsked();
  }

  /** Drops a cycle whose programs have not answered yet. */
  forgetAsked(): void {
    this.#ready = null;
    this.#attempts++;
  }

  /** Begins a cycle. The programs of server_dyn_res run first. Deltas that arrive meanwhile are applied, so that the cycle sees them. */
  start(asked: SchedCycle): void {
    const { ports, mirror, book, ready } = this.#options;
    const universe = mirror();
    if (universe === null) return;
    const { dyn_res = [] } = book();
    if (dyn_res.length === 0) return this.#decide(asked, NOTHING_DYNAMIC);
    const alarm_s = Number(universe.sched.attrs["server_dyn_res_alarm"] ?? DYN_RES_ALARM_S);
    const attempt = this.#attempts;
    ports.programs.ask(dyn_res, universe.space, alarm_s, (values) => {
      if (attempt !== this.#attempts) return;
      this.#ready = () => this.#decide(asked, values);
      ready();
    });
  }

  /** Begins the cycle whose programs have answered, if there is one. */
  begin(): void {
    const begin = this.#ready;
    this.#ready = null;
    begin?.();
  }

  takeVerdicts(number: number, verdicts: readonly Verdict[]): void {
    const work = this.#work;
    if (work === null || work.number !== number) return;
    for (const verdict of verdicts) work.verdicts.push(verdict);
    if (--work.open > 0 || work.result === null) return;
    assert(work.verdicts.length === work.decisions.length, `${work.decisions.length} decisions, ${work.verdicts.length} verdicts`);
    const universe = this.#options.mirror();
    if (universe !== null) takeOwnComments(universe, work);
    this.#writeLog(work);
    if (work.followUp) return this.#finish(work);
    const { decisions, verdicts: all, now_s, pass, over, last } = work;
    over.decisions.push(...decisions);
    over.verdicts.push(...all);
    this.#memory = { ...this.#memory, failed_victims: failedVictims(this.#memory.failed_victims, decisions, all, now_s) };
    const { again, rerun, log } = outcomeOf(decisions, all, pass);
    for (const { event, class: log_class, object, text } of log) this.#options.ports.log.record(event, log_class, object, text);
    last.push(...refusalComments(universe, work), ...rerun);
    if (again.length === 0 || !this.#passAgain(work, again)) this.#followUp(work);
  }

  #decide(asked: SchedCycle, dynamic: DynValues): void {
    const { ports, usage, mirror, book } = this.#options;
    const universe = mirror();
    if (universe === null) return;
    setDynamic(universe, dynamic);
    const work = begunWork(asked, ports.clock.wall_ms(), ports.clock.steady_ms());
    this.#shares = usage.before(universe, book().prime, work.now_s, shareMatters(universe, book()));
    this.#work = work;
    this.#goOn(work, cycleInParts(universe, book(), this.#input(work, work.now_s)));
  }

  #input({ asked: { command, job }, started_ms }: Work, now_s: number): CycleInput {
    const { clock } = this.#options.ports;
    const elapsed_s = (): number => (clock.steady_ms() - started_ms) / 1000;
    return {
      now_s,
      command,
      memory: this.#memory,
      elapsed_s,
      dated_s: elapsed_s,
      ...(this.#shares === null ? {} : { fairshare: this.#shares }),
      ...(job === undefined ? {} : { job }),
    };
  }

  /** Runs the next part of a cycle. Frames of the server arrive between two parts: verdicts are processed at once, all other frames wait. */
  #goOn(work: Work, parts: ReturnType<typeof cycleInParts>): void {
    if (this.#work !== work) {
      parts.return(undefined as never);
      return;
    }
    const { ports, decided } = this.#options;
    const part = this.#busily(() => parts.next());
    if (part.done !== true) {
      work.decisions = work.decisions.concat(part.value);
      work.open++;
      ports.link.send("sched-decisions", { cycle: work.number, decisions: part.value, more: true });
      ports.clock.soon(() => this.#goOn(work, parts));
      return;
    }
    const result = part.value;
    this.#memory = result.memory;
    const sent = work.decisions.length;
    Object.assign(work, { result, decisions: result.decisions, hand_outs: result.hand_outs });
    decided(result.bound_s);
    if (sent > 0 || result.decisions.length > 0) return this.#send(work, sent);
    this.#writeLog(work);
    this.#finish(work);
  }

  #busily<T>(act: () => T): T {
    const { ports } = this.#options;
    ports.busy(true);
    const result = act();
    ports.busy(false);
    return result;
  }

  /** Makes another pass for the jobs that got no room because a preemption failed. Returns false if what has happened meanwhile does not allow it. */
  #passAgain(work: Work, again: readonly string[]): boolean {
    const { ports, mirror, book, catchUp } = this.#options;
    const universe = mirror();
    if (universe === null) return false;
    const caught_up = catchUp();
    // A delta that does not fit ends the connection, and the cycle with it.
    if (caught_up !== "done") return caught_up === "broken";
    const now_s = Math.floor(ports.clock.wall_ms() / 1000);
    const result = this.#busily(() => cycle(universe, book(), { ...this.#input(work, now_s), again }));
    this.#memory = result.memory;
    Object.assign(work, { result, pass: work.pass + 1, decisions: result.decisions, verdicts: [] });
    if (result.decisions.length > 0) this.#send(work);
    else {
      this.#writeLog(work);
      this.#followUp(work);
    }
    return true;
  }

  /** Sends the decisions of the present pass. from: the decisions before this index have been sent in parts. The last frame says that no more follow. */
  #send(work: Work, from = 0): void {
    for (const frame of framesOf(work, from)) {
      work.open++;
      this.#options.ports.link.send("sched-decisions", frame);
    }
  }

  /** Sends the decisions that follow the last pass, or ends the cycle. */
  #followUp(work: Work): void {
    if (work.last.length === 0) return this.#finish(work);
    Object.assign(work, { decisions: work.last, verdicts: [], followUp: true });
    this.#send(work);
  }

  #writeLog(work: Work): void {
    const { log } = this.#options.ports;
    for (const { event, class: log_class, object, text, at_ms } of logOf(work)) log.record(event, log_class, object, text, at_ms);
  }

  #finish(work: Work): void {
    const { ports, mirror, over } = this.#options;
    const { number, asked, now_s, result, started_ms } = work;
    const cycle_ms = ports.clock.steady_ms() - started_ms;
    this.#work = null;
    const listed = work.hand_outs.length === 0 ? {} : { hand_outs: work.hand_outs };
    ports.link.send("sched-cycle-end", { cycle: number, jobs_considered: result?.stats.jobs_considered ?? 0, cycle_ms, ...listed });
    const universe = mirror();
    if (universe === null || result === null) return over(null);
    const { jobs_considered, jobs_started } = result.stats;
    const { decisions, verdicts } = work.over;
    over({ universe, now_s, command: asked.command, decisions, verdicts, jobs_considered, jobs_started, cycle_ms });
  }
}
