// The mom's end of the link to its file agents: it starts them, restarts them when they die, and repeats requests without an answer.
//
// N1. The main agent does quick work for all owners. Slow work (big output, stage lists, other hosts, directories with many files) is
//     done by a few further agents; an owner always has the same one, so that an owner whose files are copied for hours delays only itself. They are started when
//     needed and end when nothing is left.
// N2. Requests leave after the turn in which they are made, and so after its records are written (mom-driver.ts D1).

import type { AgentToMom, DropRequest, FilePlan, FinishRequest, MomToAgent, PrepareRequest } from "../job/agent-link.ts";
import type { AgentLane, AgentLink, AgentPort, ClockPort, Hearer } from "./ports.ts";

export type AgentHandlers = { readonly [T in Exclude<keyof AgentToMom, "agent-bulky">]: (data: AgentToMom[T]) => void } & {
  readonly complain: (text: string) => void;
};

type AppendRequest = MomToAgent["agent-append"]["files"][number];

const AGAIN_MS = 100;
const AGAIN_MS_MAX = 10_000;
/** Greatest number of agents besides the main one. */
const BULK_AGENTS_MAX = 8;

export class AgentClient {
  readonly #surroundings: Surroundings;
  readonly #main: Lane;
  readonly #bulk = new Map<number, Lane>();

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

  /** This request is not repeated: a later run of the job may have its output there by then. */
  drop(request: DropRequest): void {
    this.#main.drop(request);
  }

  /** Time in ms for which a request to the main agent is unanswered; 0 if there is none. */
  silent_ms(): number {
    return this.#main.silent_ms();
  }

  /** The other agents finish their copies before they notice the end of the mom; the next mom requests the rest. */
  close(done: () => void): void {
    this.#main.close(() => {
      // They finish their copies before they notice the end of the mom; the next mom requests the rest.
      for (const lane of this.#bulk.values()) lane.close(() => undefined);
      done();
    });
  }

  #bulkFor({ owner }: FilePlan): Lane {
    const number = (owner?.uid ?? 0) % BULK_AGENTS_MAX;
    const known = this.#bulk.get(number);
    if (known !== undefined) return known;
    const lane: Lane = new Lane("bulk", this.#surroundings, {
      onBulky: () => undefined,
      onIdle: () => {
        this.#bulk.delete(number);
        lane.close(() => undefined);
      },
    });
    this.#bulk.set(number, lane);
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
/** Requests that leave together. Kinds are sent in the order of their first request. */
type Round = { readonly requests: Waiting; readonly order: readonly (keyof Waiting)[] };

type Answered = readonly { readonly job: string; readonly run_count: number }[];
const keyOf = (job: string, run_count: number): string => `${job} ${run_count}`;

/** One agent, its successors, and the requests to them. */
class Lane {
  readonly #kind: AgentLane;
  readonly #surroundings: Surroundings;
  readonly #handlers: LaneHandlers;
  readonly #prepares = new Map<string, PrepareRequest>();
  readonly #finishes = new Map<string, FinishRequest>();
  #link: AgentLink | null = null;
  #waiting = nothing();
  #order: (keyof Waiting)[] = [];
  /** earlier rounds of this turn */
  #rounds: Round[] = [];
  #is_scheduled = false;
  #pause_ms = AGAIN_MS;
  #ended: (() => void) | null = null;
  /** time since which a request is unanswered */
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
      "agent-appended": handlers["agent-appended"],
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
    clock.after(this.#pause_ms, () => this.#repeat());
    this.#pause_ms = Math.min(this.#pause_ms * 2, AGAIN_MS_MAX);
  }

  #repeat(): void {
    if (this.#ended !== null) return;
    this.#launch();
    if (this.#prepares.size > 0) this.#link?.send("agent-prepare", { jobs: [...this.#prepares.values()] });
    if (this.#finishes.size > 0) this.#link?.send("agent-finish", { jobs: [...this.#finishes.values()] });
  }

  /** Requests about one job stay in order: if another kind was requested after this kind, a new round begins. */
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
