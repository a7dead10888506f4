// One seed from its first to its last event. Three phases: the complex is set up without faults; clients and faults do what they like; then the faults stop,
// everything is brought back, and everything must come to its end: every job over, or waiting for a good reason.

import { SUBSTATE } from "#model/job-state.ts";
import { checkMomInvariants } from "#mom/core.ts";
import type { Request } from "#protocol/messages.ts";
import { isKeptOn } from "#server/jobs/checkpointed.ts";
import { partitionOf, partitionsOf, schedOfQueue } from "#server/state/partitions.ts";
import type { Job } from "#server/state/state.ts";
import { prng } from "#support/prng.ts";
import { type Checks, createChecks, Violation } from "./checks.ts";
import { type Complex, createComplex } from "./complex.ts";
import { setClock, strike } from "./fault.ts";
import { mirrorFault, startable } from "./mirror-check.ts";
import { createPromiseCheck } from "./promise-check.ts";
import { create, drawScenario, type Limits, type Scenario, set } from "./scenario.ts";
import type { Answer } from "./server-process.ts";
import { type Ask, anyRequest, ROOT, submission } from "./workload.ts";
import { createWorld, START_MS, type TraceLine, type World } from "./world.ts";

export type RunOptions = Limits & {
  /** published starts are looked at, too (promise-check.ts) */
  readonly promises?: boolean;
  /** lines of trace kept for a failure */
  readonly keep: number;
  readonly onLine: ((line: TraceLine) => void) | null;
};

export type RunResult = {
  readonly seed: number;
  readonly ok: boolean;
  readonly text: string;
  readonly step: number;
  readonly trace: readonly TraceLine[];
  readonly scenario: Scenario;
  readonly counts: Counts;
};
/** What the run had in it: a simulator that tests nothing shows here. jobs: submissions that were accepted, an array as one. */
export type Counts = { jobs: number; runs: number; requests: number; refused: number; faults: number; virtual_s: number; waiting: number };

/** Longest time in which everything must come to rest after the faults: longer than every delay and interval of the complex. */
const REST_MS = 3 * 3_600_000;

/** Jobs that are suspended when the faults have stopped are ended so often. */
const SUSPENDED_MS = 300_000;

export async function runSeed(seed: number, options: RunOptions): Promise<RunResult> {
  const random = prng(seed);
  const world = createWorld(random.split("world"), options.keep, options.onLine);
  const scenario = drawScenario(random.split("scenario"), options);
  const promises = options.promises === true ? createPromiseCheck(scenario, () => world.wall_ms) : null;
  const checks = createChecks(options.scale, promises?.look);
  const counts: Counts = { jobs: 0, runs: 0, requests: 0, refused: 0, faults: 0, virtual_s: 0, waiting: 0 };
  let text = "";
  let ok = true;
  try {
    const complex = createComplex(world, scenario, checks);
    const script = createScript(complex, checks, counts);
    await script.setUp();
    await script.disturb();
    await script.settle();
  } catch (error) {
    ok = false;
    text = error instanceof Violation ? error.message : ((error as Error).stack ?? String(error));
  }
  counts.jobs = checks.accepted.size;
  counts.virtual_s = Math.round((world.now_ms - START_MS) / 1000);
  return { seed, ok, text, step: world.step, trace: world.trace.lines, scenario, counts };
}

function createScript(complex: Complex, checks: Checks, counts: Counts) {
  const { world, scenario, server } = complex;
  const random = world.random.split("script");

  const send = ({ peer, request }: Ask, done: (answer: Answer) => void = () => undefined): (() => void) => {
    counts.requests++;
    if ((request.kind === "delete-job" || request.kind === "rerun-job") && request.force === true) checks.force(request.job);
    if (request.kind === "run-job" || (request.kind === "release-job" && request.holds.includes("s"))) checks.letGo(request.job);
    return server.request(peer, request, (answer) => {
      world.trace.add(peer.user, "answer", answer);
      if (answer.ok === false) counts.refused++;
      if (answer.ok === true) noteAnswer(request, answer.value);
      done(answer);
    });
  };
  const noteAnswer = (request: Request, value: unknown): void => {
    if (request.kind === "queue-job") checks.answered((value as { readonly id: string }).id);
    if (request.kind === "queue-jobs")
      for (const result of (value as { readonly results: readonly { readonly id?: string }[] }).results)
        if (result.id !== undefined) checks.answered(result.id);
  };

  /** Lets the world go on until something holds; fails when it does not within the time. */
  const until = async (what: string, holds: () => boolean, limit_ms: number, why: () => string | null = () => null): Promise<void> => {
    const end_ms = world.now_ms + limit_ms;
    while (!holds()) {
      if (!(await world.next(end_ms))) {
        if (holds()) return;
        throw new Violation(`${what} did not come about within ${limit_ms / 1000} s${why() === null ? "" : `: ${why()}`}`);
      }
    }
  };

  /** A request and its answer; asked again when the server was lost. */
  const wish = async (request: Request): Promise<Exclude<Answer, { ok: "lost" }>> => {
    for (;;) {
      let answer: Answer | null = null;
      send({ peer: ROOT, request }, (got) => {
        answer = got;
      });
      await until(`an answer to ${JSON.stringify(request)}`, () => answer !== null, 60_000);
      const got = answer as unknown as Answer;
      if (got.ok !== "lost") return got;
      await until("the server", () => server.core !== null, 600_000);
    }
  };
  const must = async (request: Request): Promise<void> => {
    const answer = await wish(request);
    if (!answer.ok) throw new Violation(`${JSON.stringify(request)} was refused: ${answer.code} ${answer.text}`);
  };

  // --- phase 1

  const setUp = async (): Promise<void> => {
    await server.start();
    for (const { name } of scenario.hosts) await must(create("node", name));
    for (const mom of complex.moms) mom.start();
    const names = scenario.hosts.flatMap((host) => host.vnodes.map((vnode) => vnode.name));
    const up = (name: string): boolean =>
      ((server.core?.state.vnodes.get(name)?.attrs["state"] as string[] | undefined) ?? ["down"]).length === 0;
    await until(`nodes ${names}`, () => names.every(up), 60_000);
    for (const request of scenario.setup) await must(request);
  };

  // --- phase 2

  const disturb = async (): Promise<void> => {
    complex.failures = scenario.faults.includes("start-failures");
    const end_ms = world.now_ms + scenario.busy_ms;
    const jobs = random.split("jobs");
    for (let at = 0; at < scenario.jobs; at++) {
      world.after(jobs.int(0, Math.floor(scenario.busy_ms / 2)), () => {
        const hangUp = send(submission(jobs, scenario, world.wall_ms));
        if (jobs.chance(0.03)) world.after(jobs.int(0, 50), hangUp);
      });
    }
    const again = (every_ms: number, of: string, act: (own: ReturnType<World["random"]["split"]>) => void): void => {
      const own = random.split(of);
      const next = (): void => {
        if (world.now_ms >= end_ms) return;
        act(own);
        world.after(own.int(1, 2 * every_ms), next);
      };
      world.after(own.int(1, 2 * every_ms), next);
    };
    again(scenario.op_every_ms, "ops", (own) => {
      const state = server.core?.state;
      const ask = state === undefined ? null : anyRequest(own, scenario, state, world.wall_ms);
      if (ask === null) return;
      const hangUp = send(ask);
      if (own.chance(0.05)) world.after(own.int(0, 100), hangUp);
    });
    if (scenario.faults.length > 0) {
      again(scenario.fault_every_ms, "faults", (own) => {
        counts.faults++;
        strike(complex, own);
      });
    }
    while (await world.next(end_ms)) {
      // the world goes on
    }
    world.sleepUntil(end_ms);
  };

  // --- phase 3

  const settle = async (): Promise<void> => {
    world.trace.add("script", "faults-stop");
    complex.failures = false;
    setClock(complex, 0);
    server.behave();
    await server.start();
    for (const sched of complex.scheds.values()) sched.behave();
    for (const mom of complex.moms) {
      await mom.behave();
      mom.start();
    }
    await restore();
    endSuspended();
    await until("rest", () => restless() === null, REST_MS, restless);
    finalChecks();
  };

  /** What clients switched off is switched on again. */
  const restore = async (): Promise<void> => {
    const state = () => server.core?.state;
    await until("the server", () => state() !== undefined, 600_000);
    await wish({ kind: "manager", verb: "delete", object: "hook", name: "", attrs: [] });
    for (const { name } of scenario.hosts) if (!state()?.vnodes.has(name)) await wish(create("node", name));
    for (const name of [...(state()?.queues.keys() ?? [])].filter((queue) => !state()?.resv_queues.has(queue)))
      await wish(set("queue", name, ["started", "True"], ["enabled", "True"]));
    for (const name of [...(state()?.scheds.keys() ?? [])]) await wish(set("sched", name, ["scheduling", "True"]));
    for (const name of [...(state()?.vnodes.keys() ?? [])]) await wish(set("node", name, ["state", "free"]));
  };

  /** Suspended jobs would wait for ever; some are suspended late, by a word that was under way. */
  const endSuspended = (): void => {
    for (const job of server.core?.state.jobs.values() ?? [])
      if (job.attrs.job_state === "S" && (job.attrs.substate === SUBSTATE.SUSPENDED || isStranded(job)))
        send({ peer: ROOT, request: { kind: "delete-job", job: job.id } });
    world.after(SUSPENDED_MS, endSuspended);
  };

  /** No scheduler sees both its queue and its vnodes: the queue has gone to another partition than they, or the partition has no scheduler any more. */
  const isStranded = ({ id, attrs }: Job): boolean => {
    const { core } = server;
    const queue = core?.state.queues.get(attrs.queue);
    if (core === null || queue === undefined) return false;
    if (schedOfQueue(core.state, queue) === undefined) return true;
    const names = [...(core.state.placements.get(id)?.vnodes.keys() ?? [])];
    return names.some((name) => {
      const vnode = core.state.vnodes.get(name);
      return vnode !== undefined && partitionOf(vnode) !== partitionOf(queue);
    });
  };

  /** What is still under way; null: nothing, and nothing could be. */
  const restless = (): string | null => {
    const { core } = server;
    if (core === null || !server.idle) return "the server is at work";
    if (complex.network.in_flight > 0) return "frames are under way";
    for (const mom of complex.moms)
      if (mom.state?.welcomed !== true || mom.state.runs.size > 0)
        return `mom ${mom.host} has ${[...(mom.state?.runs.keys() ?? [])].join(" ")}`;
    // One that was wanted as soon as possible begins when the last job has ended, and one made from a job ends with it: in five years where it has no walltime.
    for (const { id, attrs } of core.state.resvs.values()) {
      const { reserve_start: start_s = 0, reserve_end: end_s = 0 } = attrs;
      const next_s = start_s * 1000 > world.wall_ms ? start_s : end_s;
      if (next_s * 1000 < world.wall_ms + REST_MS) return `${id} is in state ${attrs.reserve_state} ${attrs.reserve_substate}`;
    }
    if (checks.running > 0) return `${checks.running} processes live`;
    for (const job of core.state.jobs.values())
      if (!"QHTB".includes(job.attrs.job_state) && !waitsForLong(job))
        return `${job.id} is in state ${job.attrs.job_state} ${job.attrs.substate}`;
    for (const sched of core.state.scheds.values()) {
      if (partitionsOf(sched).length === 0) continue;
      const runtime = core.kernel.scheds.get(sched.name);
      if (complex.scheds.get(sched.name)?.idle !== true || runtime?.link == null || runtime.busy || runtime.pending !== null)
        return `scheduler ${sched.name} is ${sched.attrs["state"]}`;
      if (core.kernel.timers.at(`accumulate:${sched.name}`) !== undefined) return `scheduler ${sched.name} waits for more jobs`;
      // A switch that was thrown before may come late, held up by a hook or a fault.
      if (sched.attrs["scheduling"] !== true) continue;
      const jobs = startable(core.kernel, sched, complex.book, Math.floor(world.wall_ms / 1000));
      const universe = complex.scheds.get(sched.name)?.universe;
      if (jobs.length > 0)
        return `${jobs.join(" ")} could run; mirror: ${universe == null ? "none" : (mirrorFault(universe, core.kernel, sched, complex.book) ?? "right")}`;
    }
    return null;
  };

  /** For a time that was drawn while the clock was ahead. */
  const waitsForLong = ({ attrs: { job_state, Execution_Time } }: Job): boolean =>
    job_state === "W" && Number(Execution_Time ?? 0) * 1000 > world.wall_ms + REST_MS;

  const finalChecks = (): void => {
    const core = server.core;
    if (core === null) throw new Violation("no server at the end");
    for (const { host, state } of complex.moms) {
      if (state === null) continue;
      checkMomInvariants(state);
      for (const id of [...state.kept, ...state.checkpoints]) {
        const job = core.state.jobs.get(id);
        if (job === undefined || !isKeptOn(job, host))
          throw new Violation(`mom ${host} keeps what is left of ${id}, for which no run waits`);
      }
    }
    for (const sched of core.state.scheds.values()) {
      const universe = complex.scheds.get(sched.name)?.universe;
      if (universe === undefined || universe === null) continue;
      const fault = mirrorFault(universe, core.kernel, sched, complex.book);
      if (fault !== null) throw new Violation(`K7 scheduler ${sched.name}: ${fault}`);
    }
    for (const job of core.state.jobs.values()) {
      counts.waiting++;
      const queue = core.state.queues.get(job.attrs.queue);
      const sched = queue === undefined ? undefined : schedOfQueue(core.state, queue);
      // Why a subjob waits again is told of its array. A scheduler without vnodes says nothing of any job.
      if (job.attrs["array_id"] !== undefined) continue;
      const looks = sched?.attrs["scheduling"] === true && (complex.scheds.get(sched.name)?.universe?.vnodes.size ?? 0) > 0;
      if (job.attrs.job_state === "Q" && queue?.attrs["queue_type"] === "Execution" && job.attrs.comment === undefined && looks) {
        throw new Violation(`${job.id} waits and nobody says why`);
      }
    }
    checks.accounting(complex.disk.accounting, core.state);
    counts.runs = complex.disk.accounting.filter(({ type }) => type === "S").length;
  };

  return { setUp, disturb, settle };
}
