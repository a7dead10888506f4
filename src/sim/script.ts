// Carries out a scenario in three phases. First the complex is set up without faults. Then clients and faults act at random.
// Then the faults stop, everything is brought back, and everything must come to rest: every job has ended, or waits for a good
// reason (rest.ts).

import { SUBSTATE } from "#model/job-state.ts";
import { PBSE } from "#model/pbse.ts";
import type { Request } from "#protocol/messages.ts";
import type { Prng } from "#support/prng.ts";
import type { Checks } from "./checks/checks.ts";
import { fail } from "./checks/violation.ts";
import type { Complex } from "./complex.ts";
import { create, set } from "./drawn/manager-request.ts";
import { strike } from "./fault.ts";
import { activity, checkEnd, HORIZON_MS, isStranded, restMs, unfinished } from "./rest.ts";
import type { Answer } from "./server-process.ts";
import { type Ask, anyRequest, ROOT, submission } from "./workload.ts";

/**
 * Counts, which reveal a simulation that tests nothing. jobs: accepted submissions (an array counts as one). promises:
 * published starts that were compared with those of the next cycle. takeovers: how often the other one of two servers took over.
 */
export type Counts = {
  jobs: number;
  runs: number;
  requests: number;
  refused: number;
  faults: number;
  virtual_s: number;
  waiting: number;
  promises: number;
  takeovers: number;
};

/** Longest time in ms for an answer when no fault occurs. */
const ANSWER_MS = 60_000;
/** Longest time in ms until a lost server comes back. */
const RETURN_MS = 600_000;
/** Interval in ms at which suspended jobs are ended after the faults have stopped. */
const SUSPENDED_MS = 300_000;
/** Time in ms between two checks of what schedulers still have to do. A check takes as long as a snapshot and a cycle. */
const LOOK_MS = 5000;

export class Script {
  readonly #complex: Complex;
  readonly #checks: Checks;
  readonly #counts: Counts;
  readonly #random: Prng;

  constructor(complex: Complex, checks: Checks, counts: Counts) {
    this.#complex = complex;
    this.#checks = checks;
    this.#counts = counts;
    this.#random = complex.world.random.split("script");
  }

  // --- requests

  /** Sends a request of a client. Returns a function that hangs up: the client then no longer waits for its answer. */
  #send({ peer, request }: Ask, done: (answer: Answer) => void = () => undefined): () => void {
    const { world, server } = this.#complex;
    this.#counts.requests++;
    if ((request.kind === "delete-job" || request.kind === "rerun-job") && request.force === true) this.#checks.force(request.job);
    if (request.kind === "run-job" || (request.kind === "release-job" && request.holds.includes("s"))) this.#checks.letGo(request.job);
    return server.request(peer, request, (answer) => {
      world.trace.add(peer.user, "answer", answer);
      if (answer.ok === false) this.#counts.refused++;
      if (answer.ok === true) this.#noteAnswer(request, answer.value);
      done(answer);
    });
  }

  #noteAnswer(request: Request, value: unknown): void {
    if (request.kind === "queue-job") this.#checks.answered((value as { readonly id: string }).id);
    if (request.kind !== "queue-jobs") return;
    const { results } = value as { readonly results: readonly { readonly id?: string }[] };
    for (const { id } of results) if (id !== undefined) this.#checks.answered(id);
  }

  /** Lets time pass until a condition is true. Fails if it does not become true within the time. */
  async #until(what: string, holds: () => boolean, limit_ms: number, why: () => string | null = () => null): Promise<void> {
    const { world } = this.#complex;
    const end_ms = world.now_ms + limit_ms;
    while (!holds()) {
      if (await world.next(end_ms)) continue;
      if (holds()) return;
      const reason = why();
      fail(`${what} did not come about within ${limit_ms / 1000} s${reason === null ? "" : `: ${reason}`}`);
    }
  }

  /** Sends a request and returns its answer. Repeats the request if the server was lost or its disk refused. */
  async #wish(request: Request): Promise<Exclude<Answer, { ok: "lost" }>> {
    for (;;) {
      const answers: Answer[] = [];
      this.#send({ peer: ROOT, request }, (answer) => answers.push(answer));
      await this.#until(`an answer to ${JSON.stringify(request)}`, () => answers.length > 0, ANSWER_MS);
      const [answer] = answers;
      const { server } = this.#complex;
      if (answer === undefined || answer.ok === "lost") await this.#until("the server", () => server.core !== null, RETURN_MS);
      else if (answer.ok || answer.code !== PBSE.SYSTEM) return answer;
      else await this.#until("the disk", () => server.idle, RETURN_MS);
    }
  }

  async #must(request: Request): Promise<void> {
    const answer = await this.#wish(request);
    if (!answer.ok) fail(`${JSON.stringify(request)} was refused: ${answer.code} ${answer.text}`);
  }

  // --- phase 1: the complex is set up

  async setUp(): Promise<void> {
    const { server, scenario, moms } = this.#complex;
    await server.start();
    for (const { name } of scenario.hosts) await this.#must(create("node", name));
    for (const mom of moms) mom.start();
    const names = scenario.hosts.flatMap((host) => host.vnodes.map((vnode) => vnode.name));
    const up = (name: string): boolean =>
      ((server.core?.state.vnodes.get(name)?.attrs["state"] as string[] | undefined) ?? ["down"]).length === 0;
    await this.#until(`nodes ${names}`, () => names.every(up), ANSWER_MS);
    for (const request of scenario.setup) await this.#must(request);
  }

  // --- phase 2: clients and faults act

  async disturb(): Promise<void> {
    const { world, scenario } = this.#complex;
    this.#complex.failures = scenario.faults.includes("start-failures");
    const end_ms = world.now_ms + scenario.busy_ms;
    this.#submitJobs();
    this.#again(end_ms, scenario.op_every_ms, "ops", (own) => this.#anyRequest(own));
    if (scenario.faults.length > 0)
      this.#again(end_ms, scenario.fault_every_ms, "faults", (own) => {
        this.#counts.faults++;
        strike(this.#complex, own);
      });
    while (await world.next(end_ms)) {
      // time passes until the next event
    }
    world.sleepUntil(end_ms);
  }

  #submitJobs(): void {
    const { world, scenario } = this.#complex;
    const jobs = this.#random.split("jobs");
    for (let at = 0; at < scenario.jobs; at++) {
      world.after(jobs.int(0, Math.floor(scenario.busy_ms / 2)), () => {
        const hangUp = this.#send(submission(jobs, scenario, world.wall_ms));
        if (jobs.chance(0.03)) world.after(jobs.int(0, 50), hangUp);
      });
    }
  }

  #anyRequest(own: Prng): void {
    const { world, scenario, server } = this.#complex;
    const state = server.core?.state;
    const ask = state === undefined ? null : anyRequest(own, scenario, state, world.wall_ms);
    if (ask === null) return;
    const hangUp = this.#send(ask);
    if (own.chance(0.05)) world.after(own.int(0, 100), hangUp);
  }

  /** Repeats `act` until end_ms. every_ms: mean interval. of: name for its own sequence of random numbers. */
  #again(end_ms: number, every_ms: number, of: string, act: (own: Prng) => void): void {
    const { world } = this.#complex;
    const own = this.#random.split(of);
    const next = (): void => {
      if (world.now_ms >= end_ms) return;
      act(own);
      world.after(own.int(1, 2 * every_ms), next);
    };
    world.after(own.int(1, 2 * every_ms), next);
  }

  // --- phase 3: the complex comes to rest

  async settle(): Promise<void> {
    const { world, server, scheds, moms, network } = this.#complex;
    world.trace.add("script", "faults-stop");
    this.#complex.failures = false;
    world.setWall(0);
    network.cuts.mend();
    await server.behave();
    await server.start();
    for (const sched of scheds.values()) sched.behave();
    for (const mom of moms) {
      await mom.behave();
      mom.start();
    }
    await this.#restore();
    this.#endSuspended();
    const horizon_ms = world.wall_ms + HORIZON_MS;
    const active = (): string | null => activity(this.#complex, this.#checks.running, horizon_ms);
    let look_ms = world.now_ms;
    const rests = (): boolean => {
      if (world.now_ms < look_ms || active() !== null) return false;
      look_ms = world.now_ms + LOOK_MS;
      return unfinished(this.#complex) === null;
    };
    await this.#until("rest", rests, restMs(this.#complex.scenario), () => active() ?? unfinished(this.#complex));
    this.#finish();
  }

  /** Undoes what clients have done against the work of the complex: deletes hooks, creates missing nodes, and switches queues, schedulers and vnodes on. */
  async #restore(): Promise<void> {
    const { server, scenario } = this.#complex;
    const state = () => server.core?.state;
    await this.#until("the server", () => state() !== undefined, RETURN_MS);
    await this.#wish({ kind: "manager", verb: "delete", object: "hook", name: "", attrs: [] });
    for (const { name } of scenario.hosts) if (!state()?.vnodes.has(name)) await this.#wish(create("node", name));
    for (const name of [...(state()?.queues.keys() ?? [])].filter((queue) => !state()?.resv_queues.has(queue)))
      await this.#wish(set("queue", name, ["started", "True"], ["enabled", "True"]));
    for (const name of [...(state()?.scheds.keys() ?? [])]) await this.#wish(set("sched", name, ["scheduling", "True"]));
    for (const name of [...(state()?.vnodes.keys() ?? [])]) await this.#wish(set("node", name, ["state", "free"]));
  }

  /** Ends suspended jobs, which would otherwise wait for ever. Some are suspended late, by a request that was still in transit. */
  #endSuspended(): void {
    const { core } = this.#complex.server;
    for (const job of core?.state.jobs.values() ?? [])
      if (job.attrs.job_state === "S" && (job.attrs.substate === SUBSTATE.SUSPENDED || isStranded(core, job)))
        this.#send({ peer: ROOT, request: { kind: "delete-job", job: job.id } });
    this.#complex.world.after(SUSPENDED_MS, () => this.#endSuspended());
  }

  #finish(): void {
    const { server, disk } = this.#complex;
    const { core } = server;
    if (core === null) return fail("no server at the end");
    checkEnd(this.#complex, core);
    this.#counts.waiting += core.state.jobs.size;
    this.#checks.accounting(disk.accounting, core.state);
    this.#counts.runs = disk.accounting.filter(({ type }) => type === "S").length;
  }
}
