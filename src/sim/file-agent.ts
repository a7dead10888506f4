// A file agent of a simulated host (the real one is src/mom/agent). It carries out its requests in order, and each takes some
// milliseconds.

import type { AgentLane, AgentLink, Hearer } from "#mom/driver/ports.ts";
import type { AgentToMom, FinishRequest, MomToAgent, PrepareRequest } from "#mom/job/agent-link.ts";
import type { Prng } from "#support/prng.ts";
import { pipe, type World } from "./world.ts";

type Frame = { [T in keyof MomToAgent]: [type: T, data: MomToAgent[T]] }[keyof MomToAgent];

export type FileAgentOptions = {
  readonly random: Prng;
  readonly lane: AgentLane;
  /** Returns the code with which the preparation of a job's files fails (docs/reference/execution.md 6); null: it succeeds. */
  prepareFailure(job: string, run_count: number): number | null;
  readonly heard: Hearer<AgentToMom>;
  closed(): void;
  /** Calls `act` in the mom now or, if the mom is stopped, when it continues. */
  arrive(act: () => void): void;
  /** Carries out an effect of the mom, unless the mom is killed before it (mom-ports.ts M2). */
  effect(act: () => void): void;
};

const WORK_MS_MAX = 20;
const NOTICE_MS_MAX = 5;
/** The share of the finish requests that the main agent leaves to another agent. */
const BULKY_SHARE = 0.1;

export class FileAgent implements AgentLink {
  readonly #world: World;
  readonly #options: FileAgentOptions;
  readonly #work: (act: () => void) => void;
  #is_alive = true;

  constructor(world: World, options: FileAgentOptions) {
    this.#world = world;
    this.#options = options;
    this.#work = pipe(world, options.random, WORK_MS_MAX);
  }

  send<T extends keyof MomToAgent & string>(type: T, data: MomToAgent[T]): void;
  send(...frame: Frame): void {
    this.#options.effect(() => this.#take(frame));
  }

  #take([type, data]: Frame): void {
    switch (type) {
      case "agent-prepare":
        for (const request of data.jobs) this.#do((heard) => heard["agent-prepared"]({ jobs: [this.#prepare(request)] }));
        return;
      case "agent-finish":
        for (const request of data.jobs) this.#do((heard) => this.#finish(request, heard));
        return;
      case "agent-append":
        for (const { for: run, asked } of data.files)
          this.#do((heard) => heard["agent-appended"]({ runs: run === undefined ? [] : [run], asked: asked === undefined ? [] : [asked] }));
        return;
      case "agent-drop":
        for (const { job } of data.jobs) this.#do((heard) => heard["agent-dropped"]({ jobs: [job] }));
        return;
      default: {
        const unreachable: never = type;
        void unreachable;
      }
    }
  }

  /** Ends the agent when all its requests are done. */
  finish(): void {
    this.#work(() => this.#end());
  }

  close(): void {
    this.#end();
  }

  kill(): void {
    this.#end();
  }

  #end(): void {
    if (!this.#is_alive) return;
    this.#is_alive = false;
    const { random, arrive, closed } = this.#options;
    this.#world.after(random.int(0, NOTICE_MS_MAX), () => arrive(closed));
  }

  #do(work: (heard: Hearer<AgentToMom>) => void): void {
    this.#work(() => {
      if (!this.#is_alive) return;
      this.#options.arrive(() => work(this.#options.heard));
    });
  }

  #prepare({ plan: { job, run_count } }: PrepareRequest): AgentToMom["agent-prepared"]["jobs"][number] {
    const failure = this.#options.prepareFailure(job, run_count);
    if (failure === null) return { job, run_count, ok: true, stdout: "/o", stderr: "/e" };
    return { job, run_count, ok: false, exit_status: failure, text: "files cannot be made" };
  }

  #finish({ plan: { job, run_count } }: FinishRequest, heard: Hearer<AgentToMom>): void {
    const { lane, random } = this.#options;
    if (lane === "main" && random.chance(BULKY_SHARE)) heard["agent-bulky"]({ jobs: [{ job, run_count }] });
    else heard["agent-finished"]({ jobs: [{ job, run_count, delivered: 2, total: 2, failures: [] }] });
  }
}
