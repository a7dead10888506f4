// The mom's end of the link to its file agents: it starts them, restarts them when they die, and repeats requests without an answer.
//
// N1. The main agent does quick work for all owners. Slow work (big output, stage lists, other hosts, directories with many files) is done by a few further
//     agents, which are started when needed and end when they have nothing to do. While an owner has slow work, all of it goes to the same agent. Another owner gets
//     an agent of its own, or shares the one with the fewest owners if there are BULK_AGENTS_MAX.
// N2. Requests leave at the end of the turn in which they are made, after the records of that turn have been written (mom-driver.ts D1).

import type { AgentToMom, DropRequest, FilePlan, FinishRequest, MomToAgent, PrepareRequest } from "../job/agent-link.ts";
import type { AgentLane, AgentLink, AgentPort, ClockPort, Hearer } from "./ports.ts";

export type AgentHandlers = { readonly [T in Exclude<keyof AgentToMom, "agent-bulky">]: (data: AgentToMom[T]) => void } & {
  readonly complain: (text: string) => void;
};

type AppendRequest = MomToAgent["agent-append"]["files"][number];

const AGAIN_MS = 100;
const AGAIN_MS_MAX = 10_000;
/** Largest number of agents besides the main one. */
const BULK_AGENTS_MAX = 8;

export class AgentClient {
  readonly #surroundings: Surroundings;
  readonly #main: Lane;
  /** the agents besides the main one, and whose slow work each of them does */
  readonly #bulk = new Map<Lane, Set<number>>();

  /** Starts the main agent. */
  constructor(port: AgentPort, clock: ClockPort, handlers: AgentHandlers) {
    this.#surroundings = { port, clock, handlers };
    this.#main = new Lane("main", this.#surroundings, {
      onBulky: (request) => this.#bulkFor(request.plan).finish(request),
      onIdle: () => undefined,
    });
  }

  prepare(request: PrepareRequest): void {
    const { plan } = request;
    (plan.stagein.length > 0 ? this.#bulkFor(plan) : this.#main).prepare(request);
  }

  finish(request: FinishRequest): void {
    const { plan } = request;
    (plan.stagein.length + plan.stageout.length > 0 ? this.#bulkFor(plan) : this.#main).finish(request);
  }

  append(file: AppendRequest): void {
    this.#main.append(file);
  }

  /**
   * Requests that files of a job in spool are removed. If the agent dies, this request is not repeated: a later run of the job may have its output there by
   * then.
   */
  drop(request: DropRequest): void {
    this.#main.drop(request);
  }

  /** Time in ms for which the main agent has not answered its oldest request; 0: no request waits. */
  silent_ms(): number {
    return this.#main.silent_ms();
  }

  /** Ends the links to all agents. done: called when the main agent has ended; the other agents are not waited for. */
  close(done: () => void): void {
    this.#main.close(() => {
      // The further agents finish their present copies before they notice that the mom has ended. The next mom requests the work that is left.
      for (const lane of this.#bulk.keys()) lane.close(() => undefined);
      done();
    });
  }

  #bulkFor({ owner }: FilePlan): Lane {
    const uid = owner?.uid ?? 0;
    const known = [...this.#bulk].find(([, owners]) => owners.has(uid));
    if (known !== undefined) return known[0];
    if (this.#bulk.size < BULK_AGENTS_MAX) return this.#launchBulk(uid);
    const [[lane, owners]] = [...this.#bulk].sort(([, a], [, b]) => a.size - b.size) as [[Lane, Set<number>]];
    owners.add(uid);
    return lane;
  }

  #launchBulk(uid: number): Lane {
    const lane: Lane = new Lane("bulk", this.#surroundings, {
      onBulky: () => undefined,
      onIdle: () => {
        this.#bulk.delete(lane);
        lane.close(() => undefined);
      },
    });
    this.#bulk.set(lane, new Set([uid]));
    return lane;
  }
}

type Surroundings = { readonly port: AgentPort; readonly clock: ClockPort; readonly handlers: AgentHandlers };

type LaneHandlers = {
  readonly onBulky: (request: FinishRequest) => void;
  /** called when every request has been answered */
  readonly onIdle: () => void;
};

type Waiting = { prepare: PrepareRequest[]; finish: FinishRequest[]; append: AppendRequest[]; drop: DropRequest[] };
const nothing = (): Waiting => ({ prepare: [], finish: [], append: [], drop: [] });
/** Requests that are sent together. The kinds are sent in the order in which they were first requested. */
type Round = { readonly requests: Waiting; readonly order: readonly (keyof Waiting)[] };

type Answered = readonly { readonly job: string; readonly run_count: number }[];
const keyOf = (job: string, run_count: number): string => `${job} ${run_count}`;

/** The link to one agent, which is started again when it dies, and the requests to it. */
class Lane {
  readonly #kind: AgentLane;
  readonly #surroundings: Surroundings;
  readonly #handlers: LaneHandlers;
  readonly #prepares = new Map<string, PrepareRequest>();
  readonly #finishes = new Map<string, FinishRequest>();
  #link: AgentLink | null = null;
  #waiting = nothing();
  #order: (keyof Waiting)[] = [];
  /** rounds of this turn that are complete */
  #rounds: Round[] = [];
  #is_scheduled = false;
  #pause_ms = AGAIN_MS;
  #ended: (() => void) | null = null;
  /** requests of sisters whose output is being added: they must be answered (../run/tasks.ts) */
  readonly #adding = new Set<number>();
  /** time of the oldest request without an answer; null: there is none */
  #waits_since_ms: number | null = null;

  /** Starts the agent. */
  constructor(kind: AgentLane, surroundings: Surroundings, handlers: LaneHandlers) {
    this.#kind = kind;
    this.#surroundings = surroundings;
    this.#handlers = handlers;
    this.#launch();
  }

  prepare(request: PrepareRequest): void {
    this.#prepares.set(keyOf(request.plan.job, request.plan.run_count), request);
    this.#waits_since_ms ??= this.#surroundings.clock.steady_ms();
    this.#beginRound("prepare");
    this.#waiting.prepare.push(request);
  }

  finish(request: FinishRequest): void {
    this.#finishes.set(keyOf(request.plan.job, request.plan.run_count), request);
    this.#waits_since_ms ??= this.#surroundings.clock.steady_ms();
    this.#beginRound("finish");
    this.#waiting.finish.push(request);
  }

  append(file: AppendRequest): void {
    if (file.asked !== undefined) this.#adding.add(file.asked);
    this.#beginRound("append");
    this.#waiting.append.push(file);
  }

  drop(request: DropRequest): void {
    this.#beginRound("drop");
    this.#waiting.drop.push(request);
  }

  silent_ms(): number {
    return this.#waits_since_ms === null ? 0 : this.#surroundings.clock.steady_ms() - this.#waits_since_ms;
  }

  close(done: () => void): void {
    this.#flush();
    this.#ended = done;
    if (this.#link === null) done();
    else this.#link.finish();
  }

  #launch(): void {
    this.#link = this.#surroundings.port.launch(this.#kind, this.#heard(), () => this.#closed());
  }

  #heard(): Hearer<AgentToMom> {
    const { handlers } = this.#surroundings;
    return {
      "agent-prepared": (data) => {
        this.#answered(this.#prepares, data.jobs);
        handlers["agent-prepared"](data);
        this.#restWhenIdle();
      },
      "agent-finished": (data) => {
        this.#answered(this.#finishes, data.jobs);
        handlers["agent-finished"](data);
        this.#restWhenIdle();
      },
      "agent-appended": (data) => {
        for (const asked of data.asked) this.#adding.delete(asked);
        handlers["agent-appended"](data);
      },
      "agent-dropped": handlers["agent-dropped"],
      "agent-bulky": ({ jobs }) => this.#isBulky(jobs),
      "agent-complaint": handlers["agent-complaint"],
    };
  }

  #answered(open: Map<string, unknown>, jobs: Answered): void {
    this.#pause_ms = AGAIN_MS;
    for (const { job, run_count } of jobs) open.delete(keyOf(job, run_count));
    this.#waitAnew();
  }

  #isBulky(jobs: Answered): void {
    for (const { job, run_count } of jobs) {
      const key = keyOf(job, run_count);
      const request = this.#finishes.get(key);
      this.#finishes.delete(key);
      if (request !== undefined) this.#handlers.onBulky(request);
    }
    this.#waitAnew();
  }

  #waitAnew(): void {
    this.#waits_since_ms = this.#prepares.size + this.#finishes.size > 0 ? this.#surroundings.clock.steady_ms() : null;
  }

  #restWhenIdle(): void {
    if (this.#prepares.size + this.#finishes.size + this.#order.length + this.#rounds.length === 0) this.#handlers.onIdle();
  }

  #closed(): void {
    this.#link = null;
    if (this.#ended !== null) return this.#ended();
    const { clock, handlers } = this.#surroundings;
    handlers.complain("the file agent ended and is started again");
    // Output that the agent had not added is lost. The sisters go on with their next pieces.
    const asked = [...this.#adding];
    this.#adding.clear();
    if (asked.length > 0) handlers["agent-appended"]({ runs: [], asked });
    clock.after(this.#pause_ms, () => this.#repeat());
    this.#pause_ms = Math.min(this.#pause_ms * 2, AGAIN_MS_MAX);
  }

  #repeat(): void {
    if (this.#ended !== null) return;
    this.#launch();
    if (this.#prepares.size > 0) this.#link?.send("agent-prepare", { jobs: [...this.#prepares.values()] });
    if (this.#finishes.size > 0) this.#link?.send("agent-finish", { jobs: [...this.#finishes.values()] });
  }

  /** Prepares to add a request of this kind. Requests about one job must stay in order: if this kind was requested before, and another kind after it, a new round begins. */
  #beginRound(kind: keyof Waiting): void {
    if (this.#waiting[kind].length === 0) this.#order.push(kind);
    else if (this.#order.at(-1) !== kind) {
      this.#endRound();
      this.#order.push(kind);
    }
    if (!this.#is_scheduled) this.#surroundings.clock.soon(() => this.#flush());
    this.#is_scheduled = true;
  }

  #endRound(): void {
    this.#rounds.push({ requests: this.#waiting, order: this.#order });
    this.#waiting = nothing();
    this.#order = [];
  }

  #flush(): void {
    this.#is_scheduled = false;
    this.#endRound();
    for (const { requests, order } of this.#rounds.splice(0)) for (const kind of order) this.#send(kind, requests);
  }

  #send(kind: keyof Waiting, { prepare, finish, append, drop }: Waiting): void {
    if (kind === "prepare") this.#link?.send("agent-prepare", { jobs: prepare });
    else if (kind === "finish") this.#link?.send("agent-finish", { jobs: finish });
    else if (kind === "append") this.#link?.send("agent-append", { files: append });
    else this.#link?.send("agent-drop", { jobs: drop });
  }
}
