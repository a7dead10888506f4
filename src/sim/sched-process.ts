// A scheduler as a process: the real mirror and the real cycle, with a shell that does in virtual time what
// src/sched/shell/scheduler.ts does.

import type { Decision, SchedAsk, SchedCycle, Verdict } from "#protocol/sched-link.ts";
import type { FrameOf } from "#protocol/schema-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { type Memory, NO_MEMORY } from "#sched/cycle/result.ts";
import { explainJob } from "#sched/explain/explain.ts";
import { applyDelta, createUniverse, takeComment } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import { failedVictims, leftWithoutRoom, outcomeOf } from "#sched/preempt/failed-victims.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import { refusedComment } from "#sched/shapes/reasons.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import type { SchedEnd } from "#server/scheds/session.ts";
import type { Link } from "./network.ts";
import type { World } from "./world.ts";

const RECONNECT_MS = 1000;
/** A stopped process does not receive SIGTERM: the server kills it after this time. */
const KILL_AFTER_MS = 10_000;

type Frame = FrameOf<"server-to-sched">;
/** A cycle between its start and its last verdict. */
type Work = {
  readonly number: number;
  readonly asked: SchedCycle;
  /** failed-victims.ts */
  readonly pass: number;
  readonly decisions: readonly Decision[];
  readonly verdicts: Verdict[];
  /** sent: all frames of decisions have been sent; open: number of frames without an answer */
  sent: boolean;
  open: number;
  /** decisions that follow the last pass */
  readonly last: readonly Decision[];
  readonly followUp: boolean;
};

const UNSENT = (): Pick<Work, "verdicts" | "sent" | "open"> => ({ verdicts: [], sent: false, open: 0 });

export type SchedOptions = {
  readonly book: PolicyBook;
  readonly cycle_ms_max: number;
  /** the pids of its processes begin after this one */
  readonly first_pid: number;
  dial(name: string, pid: number, parent: number): Link<"sched-to-server", "server-to-sched"> | null;
  /** the process ended by itself or was killed */
  ended(name: string, parent: number, how: SchedEnd): void;
};

export type SchedProcess = {
  readonly name: string;
  readonly alive: boolean;
  readonly pid: number;
  /** the life of the server that started the process */
  readonly parent: number;
  readonly universe: Universe | null;
  /** connected and not in a cycle */
  readonly idle: boolean;
  /** parent: the life of the server that starts it */
  start(parent: number): void;
  kill(): void;
  /** SIGTERM from its parent */
  stop(): void;
  /** stopped (SIGSTOP) */
  readonly paused: boolean;
  /** stops the process for that time */
  pause(for_ms: number): void;
  /** continues the process if it is stopped */
  behave(): void;
  /** a fault of its directories was found, or is over (null) */
  report(fault: string | null): void;
};

export function createSchedProcess(world: World, name: string, options: SchedOptions): SchedProcess {
  const random = world.random.split(`sched/${name}`);
  const who = `sched:${name}`;
  let life = 0;
  let alive = false;
  let parent = 0;
  let link: ReturnType<SchedOptions["dial"]> = null;
  let universe: Universe | null = null;
  let memory: Memory = NO_MEMORY;
  let work: Work | null = null;
  let waiting: Frame[] = [];
  /** time since which the process is stopped (SIGSTOP), and the events that wait */
  let paused_ms: number | null = null;
  let missed: (() => void)[] = [];
  /** number of the latest timed request for a cycle */
  let wish = 0;

  const pid = (): number => options.first_pid + life;

  const later = (delay_ms: number, act: () => void): void => {
    const mine = life;
    world.after(delay_ms, () =>
      awake(() => {
        if (mine === life) act();
      }),
    );
  };

  /** Acts now, or when the process continues. */
  const awake = (act: () => void): void => {
    if (paused_ms === null) act();
    else missed.push(act);
  };

  const goOn = (): void => {
    if (paused_ms === null) return;
    world.trace.add(who, "goes-on", `after ${world.now_ms - paused_ms} ms`);
    paused_ms = null;
    for (const act of missed.splice(0)) act();
  };

  /** Requests a cycle at this time instead of any earlier requested time. null: requests none. */
  const wakeAt = (bound_s: number | null): void => {
    const mine = ++wish;
    if (bound_s !== null)
      later(Math.max(0, bound_s * 1000 - world.wall_ms), () => {
        if (mine === wish) link?.send("sched-wake", {});
      });
  };

  const connect = (): void => {
    wakeAt(null);
    universe = null;
    work = null;
    waiting = [];
    const own = options.dial(name, pid(), parent);
    link = own;
    if (own === null) {
      later(RECONNECT_MS, connect);
      return;
    }
    own.listen({
      receive: (frame) =>
        awake(() => {
          if (own === link) receive(frame);
        }),
      lost: () =>
        awake(() => {
          if (own !== link) return;
          world.trace.add(who, "link-lost");
          link = null;
          universe = null;
          work = null;
          waiting = [];
          later(random.int(0, RECONNECT_MS), connect);
        }),
    });
    own.send("sched-hello", { name, pid: pid(), version: "sim", pongs: true });
  };

  const receive = (frame: Frame): void => {
    if (frame.type === "sched-ping") link?.send("sched-pong", frame.data);
    else if (frame.type === "sched-verdicts") takeVerdicts(frame.data.cycle, frame.data.verdicts);
    else if (work !== null) waiting.push(frame);
    else handle(frame);
  };

  const handle = (frame: Frame): void => {
    switch (frame.type) {
      case "sched-refused":
        // The server ends a link that it refuses; the next one is opened then.
        break;
      case "sched-delta":
        if (universe !== null) applyDelta(universe, frame.data);
        break;
      case "sched-cycle":
        startCycle(frame.data);
        break;
      case "sched-quit":
        link?.send("sched-leaving", {});
        end({ code: 0, signal: null });
        break;
      case "sched-snapshot":
        universe = createUniverse(frame.data, mirrorOptions(options.book));
        break;
      case "sched-ask":
        link?.send("sched-answer", { token: frame.data.token, value: answerTo(frame.data) });
        break;
      case "sched-configure":
      case "sched-verdicts":
      case "sched-ping":
        break;
      default: {
        const unreachable: never = frame;
        throw new Error(`frame ${JSON.stringify(unreachable)}`);
      }
    }
  };

  const answerTo = ({ question }: SchedAsk): unknown => {
    if (universe === null || question.kind === "view") return null;
    const input = { now_s: Math.floor(world.wall_ms / 1000), memory, history: new Map() };
    return explainJob(universe, options.book, { ...input, job: question.job, sees_others: question.sees_others });
  };

  const startCycle = (asked: SchedCycle): void => pass(asked, { pass: 1, last: [] });

  const pass = (asked: SchedCycle, how: Pick<Work, "pass" | "last"> & { readonly again?: readonly string[] }): void => {
    if (universe === null) throw new Error(`${who}: a cycle before the snapshot`);
    const { cycle: number, command, job } = asked;
    const now_s = Math.floor(world.wall_ms / 1000);
    const { again } = how;
    const input = { now_s, command, memory, ...(job === undefined ? {} : { job }), ...(again === undefined ? {} : { again }) };
    const result = cycle(universe, options.book, input);
    memory = result.memory;
    wakeAt(result.bound_s);
    const begun: Work = { number, asked, pass: how.pass, decisions: result.decisions, ...UNSENT(), last: how.last, followUp: false };
    work = begun;
    // A cycle takes time; events that arrive meanwhile wait.
    later(random.int(0, options.cycle_ms_max), () => {
      if (work !== begun) return;
      if (begun.decisions.length === 0) followUp(begun);
      else sendParts(begun, 0);
    });
  };

  /** Sometimes a cycle sends its decisions in parts; the last part may be empty. */
  const sendParts = (begun: Work, from: number): void => {
    const { number, decisions } = begun;
    const to = !begun.followUp && random.chance(0.3) ? random.int(from, decisions.length) : null;
    begun.open++;
    if (to === null) {
      begun.sent = true;
      link?.send("sched-decisions", { cycle: number, decisions: decisions.slice(from) });
      return;
    }
    link?.send("sched-decisions", { cycle: number, decisions: decisions.slice(from, to), more: true });
    later(random.int(0, options.cycle_ms_max), () => {
      if (work === begun) sendParts(begun, to);
    });
  };

  const followUp = (done: Work): void => {
    if (done.last.length === 0) return finishCycle(done);
    work = { ...done, decisions: done.last, ...UNSENT(), last: [], followUp: true };
    sendParts(work, 0);
  };

  const takeVerdicts = (number: number, given: readonly Verdict[]): void => {
    if (work === null || work.number !== number) return;
    const { decisions, verdicts } = work;
    verdicts.push(...given);
    if (--work.open > 0 || !work.sent) return;
    if (verdicts.length !== decisions.length) throw new Error(`${who}: ${decisions.length} decisions, ${verdicts.length} verdicts`);
    decisions.forEach((decision, at) => {
      if (universe !== null && decision.kind === "comment" && verdicts[at]?.ok === true)
        takeComment(universe, decision.job, decision.comment);
    });
    const roomless = leftWithoutRoom(decisions, verdicts);
    const now_s = Math.floor(world.wall_ms / 1000);
    memory = { ...memory, failed_victims: failedVictims(memory.failed_victims, decisions, verdicts, now_s) };
    if (work.followUp) return finishCycle(work);
    const comments = decisions.flatMap((decision, at) =>
      "job" in decision && roomless.has(decision.job) ? [] : refusalComment(decision, verdicts[at]),
    );
    const { again, rerun, log } = outcomeOf(decisions, verdicts, work.pass);
    for (const { object, text } of log) world.trace.add(who, "log", `${object} ${text}`);
    const last = [...work.last, ...comments, ...rerun];
    if (again.length === 0 || waiting.some(({ type }) => type === "sched-snapshot")) return followUp({ ...work, last });
    for (const frame of waiting) if (frame.type === "sched-delta" && universe !== null) applyDelta(universe, frame.data);
    waiting = waiting.filter(({ type }) => type !== "sched-delta");
    pass(work.asked, { pass: work.pass + 1, last, again });
  };

  /** A job whose start the server refused gets a comment. */
  const refusalComment = (decision: Decision, verdict: Verdict | undefined): Decision[] => {
    if (decision.kind !== "run" || verdict === undefined || verdict.ok) return [];
    const comment = refusedComment(verdict.text);
    return universe?.jobs.get(decision.job)?.comment === comment
      ? []
      : [{ kind: "comment", job: decision.job, comment, why: { code: "PBS_ERROR", want: verdict.text } }];
  };

  const finishCycle = ({ number }: Work): void => {
    work = null;
    const frames = waiting;
    waiting = [];
    link?.send("sched-cycle-end", { cycle: number, jobs_considered: 0, cycle_ms: 1 });
    for (const frame of frames) receive(frame);
  };

  const end = (how: { readonly code: number | null; readonly signal: string | null }, stopped = false): void => {
    if (!alive) return;
    world.trace.add(who, "ended", how);
    const own = pid();
    alive = false;
    life++;
    paused_ms = null;
    missed = [];
    link?.close();
    link = null;
    universe = null;
    const from = parent;
    world.after(random.int(0, 20), () => options.ended(name, from, { ...how, stopped, pid: own }));
  };

  return {
    name,
    get alive() {
      return alive;
    },
    get pid() {
      return pid();
    },
    get parent() {
      return parent;
    },
    get universe() {
      return universe;
    },
    get idle() {
      return link !== null && universe !== null && work === null && waiting.length === 0 && paused_ms === null;
    },
    start(by) {
      if (alive) return;
      alive = true;
      life++;
      parent = by;
      memory = NO_MEMORY;
      world.trace.add(who, "started", `by server ${by}`);
      later(random.int(1, 200), connect);
    },
    kill: () => end({ code: null, signal: "SIGKILL" }),
    stop() {
      if (paused_ms !== null) {
        const mine = life;
        world.after(KILL_AFTER_MS, () => {
          if (mine === life) end({ code: null, signal: "SIGKILL" }, true);
        });
      }
      const target = life;
      awake(() => {
        if (target === life) end({ code: 0, signal: null }, true);
      });
    },
    get paused() {
      return paused_ms !== null;
    },
    pause(for_ms) {
      if (!alive || paused_ms !== null) return;
      world.trace.add(who, "stopped", `for ${for_ms} ms`);
      paused_ms = world.now_ms;
      const mine = life;
      world.after(for_ms, () => {
        if (mine === life) goOn();
      });
    },
    behave: goOn,
    report: (fault) => awake(() => link?.send("sched-fault", { fault })),
  };
}
