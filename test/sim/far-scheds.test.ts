// A scheduler on another host than the server, across a network that carries nothing in one direction or both.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Request } from "#protocol/messages.ts";
import { Checks } from "#sim/checks/checks.ts";
import { type Complex, createComplex } from "#sim/complex.ts";
import { drawScenario, type Scenario } from "#sim/drawn/scenario.ts";
import type { Way } from "#sim/far/cuts.ts";
import { type Counts, Script } from "#sim/script.ts";
import type { Answer } from "#sim/server-process.ts";
import { createWorld } from "#sim/world.ts";
import { prng } from "#support/prng.ts";

const ALICE = { user: "alice", uid: 1000, groups: ["users"], host: "svr", root: false };
const MINUTE_MS = 60_000;

type Bed = {
  readonly complex: Complex;
  /** state and comment of the scheduler s1 */
  shown(): string;
  until(what: string, holds: () => boolean, limit_ms: number): Promise<void>;
  submit(): Promise<string>;
  /** hosts and runs of the processes of a job: `n2 run 1` */
  born(job: string): string[];
};

/** Scheduler s1 is on host n1, which has no vnode of its partition; the jobs run on n2, beside the server. */
async function bed(seed: number, delay_ms_max = 5): Promise<Bed> {
  const random = prng(seed);
  const world = createWorld(random.split("world"), 20_000, null);
  const drawn = drawScenario(random.split("scenario"), { jobs_max: 0, faults: false, ops: false, scale: 1 });
  const host = (name: string, is_far: boolean, partition: string | null) => ({
    name,
    is_far,
    vnodes: [{ name, ncpus: 4, sharing: "default_shared", partition }],
  });
  const scenario: Scenario = {
    ...drawn,
    hosts: [host("n1", true, null), host("n2", false, "p1")],
    scheds: [{ name: "s1", partitions: ["p1"], host: "n1" }],
    queues: [{ name: "workq", partition: "p1" }],
    setup: [
      setOf("create", "sched", "s1", ["sched_host", "n1"]),
      setOf("set", "sched", "s1", ["partition", "p1"], ["sched_cycle_length", "60"], ["scheduling", "True"]),
      setOf("set", "node", "n2", ["partition", "p1"]),
      setOf("set", "queue", "workq", ["partition", "p1"]),
      setOf("set", "server", "", ["default_queue", "workq"]),
    ],
    jobs: 0,
    run_ms_max: 1000,
    delay_ms_max,
    notice_ms_max: 50,
    commit_ms_max: 1,
    cycle_ms_max: 1,
    term_ignored: 0,
    start_failures: 0,
  };
  const checks = new Checks(1, () => null);
  const complex = createComplex(world, scenario, checks);
  const counts: Counts = { jobs: 0, runs: 0, requests: 0, refused: 0, faults: 0, virtual_s: 0, waiting: 0, promises: 0, takeovers: 0 };
  const made: Bed = {
    complex,
    shown() {
      const { state, comment } = complex.server.core?.state.scheds.get("s1")?.attrs ?? {};
      return comment === undefined ? String(state) : `${state}: ${comment}`;
    },
    async until(what, holds, limit_ms) {
      const end_ms = world.now_ms + limit_ms;
      while (!holds()) if (!(await world.next(end_ms))) assert.fail(`${what} did not come about: s1 is ${made.shown()}`);
    },
    async submit() {
      const answers: Answer[] = [];
      const attrs = [{ name: "Resource_List", resource: "select", value: "1:ncpus=1" }];
      const request: Request = { kind: "queue-job", destination: "", attrs, script: "x" };
      complex.server.request(ALICE, request, (answer) => answers.push(answer));
      await made.until("an answer", () => answers.length > 0, MINUTE_MS);
      const [answer] = answers;
      assert.ok(answer?.ok === true, JSON.stringify(answer));
      return (answer.value as { readonly id: string }).id;
    },
    born: (job) =>
      world.trace.lines.flatMap(({ who, what, detail }) =>
        what === "process-born" && String(detail).startsWith(`${job} `)
          ? [
              `${who.slice("starter:".length)} ${String(detail)
                .split(" pid")[0]
                ?.slice(job.length + 1)}`,
            ]
          : [],
      ),
  };
  await new Script(complex, checks, counts).setUp();
  await made.until("s1 is connected", () => made.shown() === "idle", MINUTE_MS);
  return made;
}

function setOf(
  verb: "create" | "set",
  object: "sched" | "node" | "queue" | "server",
  name: string,
  ...pairs: (readonly [string, string])[]
): Request {
  return { kind: "manager", verb, object, name, attrs: pairs.map(([attr, value]) => ({ name: attr, op: "=" as const, value })) };
}

test("a scheduler on another host is cut off in one direction or both: it is down in time, its jobs wait, and each runs once afterwards", async () => {
  const ways: readonly (readonly Way[])[] = [["up"], ["down"], ["up", "down"]];
  for (const cut of ways) {
    for (let seed = 1; seed <= 3; seed++) {
      const { complex, shown, until, submit, born } = await bed(seed);
      complex.network.cuts.cut("n1", cut, 10 * MINUTE_MS);
      const before = await submit();
      await until("s1 is down", () => shown().startsWith("down"), 2 * MINUTE_MS);
      await until("it says why", () => shown() === "down: Not reached: n1: it does not answer", MINUTE_MS);
      const after = await submit();
      await until("s1 is back", () => shown() === "idle", 12 * MINUTE_MS);
      await until("both have ended", () => complex.server.core?.state.jobs.size === 0, 5 * MINUTE_MS);
      assert.deepEqual([born(before), born(after)], [["n2 run 1"], ["n2 run 1"]], `${cut} ${seed}`);
    }
  }
});

test("a slow network delays the jobs of a scheduler on another host, and nothing else", async () => {
  const { complex, shown, until, submit, born } = await bed(1, 2000);
  const ids: string[] = [];
  for (let count = 0; count < 10; count++) ids.push(await submit());
  await until("all have ended", () => complex.server.core?.state.jobs.size === 0, 10 * MINUTE_MS);
  assert.deepEqual(
    ids.map(born),
    ids.map(() => ["n2 run 1"]),
  );
  assert.doesNotMatch(shown(), /down/);
});

test("a scheduler on another host that ended is found again when its host has started it", async () => {
  const { complex, shown, until, submit } = await bed(2);
  complex.scheds.get("s1")?.kill();
  await until("s1 is down", () => shown().startsWith("down"), MINUTE_MS);
  await submit();
  await until("the job has ended", () => complex.server.core?.state.jobs.size === 0, 5 * MINUTE_MS);
  assert.doesNotMatch(shown(), /down|Not reached/);
  complex.server.kill("test");
  await complex.server.start();
  await until("s1 is connected to the next server", () => shown() === "idle", MINUTE_MS);
});
