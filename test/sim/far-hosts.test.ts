// Hosts across a network that loses datagrams, or carries nothing in one direction.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Request } from "#protocol/messages.ts";
import { Checks } from "#sim/checks/checks.ts";
import { type Complex, createComplex } from "#sim/complex.ts";
import { drawScenario, type Host, type Scenario } from "#sim/drawn/scenario.ts";
import type { Way } from "#sim/far/cuts.ts";
import { type Counts, Script } from "#sim/script.ts";
import type { Answer } from "#sim/server-process.ts";
import { ROOT } from "#sim/workload.ts";
import { createWorld, START_MS } from "#sim/world.ts";
import { prng } from "#support/prng.ts";

const HOUR_MS = 3_600_000;
const ALICE = { user: "alice", uid: 1000, groups: ["users"], host: "svr", root: false };

type Bed = {
  readonly complex: Complex;
  readonly checks: Checks;
  /** states of vnodes since the last call: each change as `n1 down` */
  changes(): string[];
  states(host: string): string;
  pass(ms: number): Promise<void>;
  until(what: string, holds: () => boolean, limit_ms?: number): Promise<void>;
  ask(request: Request): Promise<Answer>;
  submit(select?: string): Promise<string>;
  job(id: string): { readonly state: string; readonly where: string };
};

type Wanted = { readonly hosts: number; readonly loss?: number; readonly run_ms?: number; readonly seed?: number };

/** A complex whose hosts are all far, with one scheduler and without faults. */
async function bed({ hosts, loss = 0, run_ms = 20_000, seed = 1 }: Wanted): Promise<Bed> {
  const random = prng(seed);
  const world = createWorld(random.split("world"), 5000, null);
  const drawn = drawScenario(random.split("scenario"), { jobs_max: 0, faults: false, ops: false, scale: 1 });
  const names = Array.from({ length: hosts }, (_, at) => `n${at + 1}`);
  const far = names.map((name): Host => ({ name, is_far: true, vnodes: [{ name, ncpus: 2, sharing: "default_shared", partition: null }] }));
  const scenario: Scenario = {
    ...drawn,
    hosts: far,
    scheds: [],
    queues: [{ name: "workq", partition: null }],
    setup: [],
    jobs: 0,
    run_ms_max: run_ms,
    datagrams: { loss, doubled: 0.05, delay_ms_max: 2000 },
    delay_ms_max: 5,
    notice_ms_max: 50,
    term_ignored: 0,
    start_failures: 0,
  };
  const seen: string[] = [];
  const last = new Map<string, string>();
  const checks = new Checks(1, (core) => {
    for (const { name, attrs } of core.state.vnodes.values()) {
      const state = (attrs["state"] as readonly string[]).filter((word) => !word.startsWith("job-")).join();
      if (last.get(name) !== state) seen.push(`${name} ${state || "free"}`);
      last.set(name, state);
    }
    return null;
  });
  const complex = createComplex(world, scenario, checks);
  const counts: Counts = { jobs: 0, runs: 0, requests: 0, refused: 0, faults: 0, virtual_s: 0, waiting: 0, promises: 0, takeovers: 0 };
  const made: Bed = {
    complex,
    checks,
    changes: () => seen.splice(0),
    states: (host) => String(complex.server.core?.state.vnodes.get(host)?.attrs["state"]),
    async pass(ms) {
      const end_ms = world.now_ms + ms;
      while (await world.next(end_ms)) {
        // until then
      }
      world.sleepUntil(end_ms);
    },
    async until(what, holds, limit_ms = HOUR_MS) {
      const end_ms = world.now_ms + limit_ms;
      while (!holds()) if (!(await world.next(end_ms))) assert.fail(`${what} did not come about`);
    },
    async ask(request) {
      const answers: Answer[] = [];
      complex.server.request(request.kind === "queue-job" ? ALICE : ROOT, request, (answer) => answers.push(answer));
      await made.until(`an answer to ${request.kind}`, () => answers.length > 0, 60_000);
      return answers[0] as Answer;
    },
    async submit(select = "1:ncpus=1") {
      const attrs = [{ name: "Resource_List", resource: "select", value: select }];
      const answer = await made.ask({ kind: "queue-job", destination: "", attrs, script: "x" });
      assert.ok(answer.ok === true, JSON.stringify(answer));
      return (answer.value as { readonly id: string }).id;
    },
    job(id) {
      const attrs = complex.server.core?.state.jobs.get(id)?.attrs;
      return { state: attrs === undefined ? "gone" : `${attrs.job_state} ${attrs.substate}`, where: attrs?.exec_host ?? "" };
    },
  };
  await new Script(complex, checks, counts).setUp();
  await made.pass(5000);
  made.changes();
  return made;
}

test("losing 10 % of UDP frames changes no vnode's state in an hour of virtual time", async () => {
  const { complex, changes, pass } = await bed({ hosts: 8, loss: 0.1 });
  await pass(HOUR_MS);
  assert.deepEqual(changes(), []);
  const { sent, lost } = complex.datagrams.counts;
  assert.ok(sent > 8 * 2 * 230 * 0.9, `${sent} datagrams were sent: reports and their answers`);
  assert.ok(lost > sent * 0.07 && lost < sent * 0.13, `${lost} of ${sent} were lost`);
});

test("where no datagram arrives, reports go over the connection, and no vnode's state changes", async () => {
  const { complex, changes, pass } = await bed({ hosts: 2, loss: 1 });
  await pass(HOUR_MS);
  const { sent, lost } = complex.datagrams.counts;
  assert.deepEqual([changes(), sent > 0 && lost === sent], [[], true]);
});

test("jobs over six hosts are signalled and deleted by multicast, while a third of the datagrams is lost", async () => {
  const b = await bed({ hosts: 6, loss: 0.33, run_ms: HOUR_MS });
  const attrs = [
    { name: "multicast", op: "=", value: "True" },
    { name: "multicast_moms_min", op: "=", value: "2" },
  ] as const;
  await b.ask({ kind: "manager", verb: "set", object: "server", name: "", attrs });
  await b.pass(1000);
  for (let round = 1; round <= 20; round++) {
    const id = await b.submit("6:ncpus=2");
    await b.until(`job ${round} runs`, () => b.job(id).state === "R 42", 60_000);
    await b.ask({ kind: "signal-job", job: id, signal: "SIGUSR1" });
    await b.ask({ kind: "delete-job", job: id });
    await b.until(`job ${round} has ended`, () => b.job(id).state === "gone", 60_000);
  }
  const { to_group } = b.complex.datagrams.counts;
  assert.ok(to_group >= 20, `${to_group} datagrams went to the group`);
  assert.deepEqual(b.changes(), [], "no vnode was unknown or down");
  const born = b.complex.world.trace.lines.filter(({ what }) => what === "process-born");
  assert.equal(born.length, 6 * 20, "each job ran once on each host");
});

test("a host that is cut off in one direction or both is unknown within a minute, then down, and free when the network is whole again", async () => {
  for (const ways of [["up"], ["up", "down"]] as const) {
    const { complex, changes, pass, until, states } = await bed({ hosts: 2 });
    complex.network.cuts.cut("n1", ways, 300_000);
    await until("n1 is unknown", () => states("n1") === "state-unknown", 60_000);
    await until("n1 is down", () => states("n1") === "state-unknown,down", 50_000);
    await until("n1 is back", () => states("n1") === "", 300_000);
    await pass(600_000);
    assert.deepEqual(changes(), ["n1 state-unknown", "n1 state-unknown,down", "n1 free"], ways.join());
  }
});

/** Submits a job at the moment from which n1, where it is sent, is cut off in one direction. Returns the job when it has run elsewhere. */
async function startIntoCut(way: Way, seed: number): Promise<Bed> {
  const b = await bed({ hosts: 2, seed });
  await b.ask({ kind: "manager", verb: "set", object: "node", name: "n2", attrs: [{ name: "state", op: "=", value: "offline" }] });
  b.complex.network.cuts.cut("n1", [way], 400_000);
  const id = await b.submit();
  await b.until("the job is sent to n1", () => b.job(id).state === "R 41" && b.job(id).where.startsWith("n1/"), 60_000);
  await b.ask({ kind: "manager", verb: "set", object: "node", name: "n2", attrs: [{ name: "state", op: "=", value: "free" }] });
  await b.until("the job has run on n2", () => b.job(id).where.startsWith("n2/") && b.job(id).state === "R 42", 120_000);
  await b.until("the job has ended", () => b.job(id).state === "gone");
  await b.pass(HOUR_MS);
  const born = b.complex.world.trace.lines.filter(({ what }) => what === "process-born");
  assert.deepEqual(
    born.map(({ who, detail }) => `${who} ${String(detail).split(" pid")[0]}`),
    [`starter:n2 ${id} run 2`],
    `${way}, seed ${seed}`,
  );
  return b;
}

test("a start whose confirmation cannot reach the server goes elsewhere, and no process of it starts on the first host", async () => {
  for (let seed = 1; seed <= 5; seed++) await startIntoCut("up", seed);
});

test("a start that cannot reach its mom goes elsewhere, although the mom's reports arrive", async () => {
  for (let seed = 1; seed <= 5; seed++) {
    const { complex } = await startIntoCut("down", seed);
    assert.ok(complex.world.now_ms > START_MS);
  }
});

/** The births and deaths of a job's processes, in their order: `born n1 run 1`. */
const livesOf = (b: Bed, id: string): string[] =>
  b.complex.world.trace.lines.flatMap(({ who, what, detail }) => {
    const text = String(detail);
    if ((what !== "process-born" && what !== "process-died") || !text.startsWith(`${id} `)) return [];
    return [`${what.slice("process-".length)} ${who.slice("starter:".length)} ${text.split(" ").slice(1, 3).join(" ")}`];
  });

/** A job on n1 runs when a fault begins. Waits until it runs on n2, and checks that it had ended on n1 before. */
async function movesOn(b: Bed, fault: () => void): Promise<void> {
  await b.ask({ kind: "manager", verb: "set", object: "node", name: "n2", attrs: [{ name: "state", op: "=", value: "offline" }] });
  const id = await b.submit();
  await b.until("the job runs on n1", () => b.job(id).state === "R 42" && livesOf(b, id).length === 1, 60_000);
  fault();
  await b.ask({ kind: "manager", verb: "set", object: "node", name: "n2", attrs: [{ name: "state", op: "=", value: "free" }] });
  await b.until("the job runs on n2", () => b.job(id).where.startsWith("n2/") && b.job(id).state === "R 42", 500_000);
  assert.deepEqual(livesOf(b, id), ["born n1 run 1", "died n1 run 1", "born n2 run 2"]);
  await b.pass(HOUR_MS);
  assert.ok(b.complex.disk.accounting.filter((record) => record.id === id && record.type === "R").length === 1, "it is queued again once");
}

for (const ways of [["up"], ["down"], ["up", "down"]] as const)
  test(`a host that is cut off (${ways.join()}) has ended its jobs before they start elsewhere`, async () => {
    for (let seed = 1; seed <= 3; seed++) {
      const b = await bed({ hosts: 2, seed, run_ms: 10 * HOUR_MS });
      await movesOn(b, () => b.complex.network.cuts.cut("n1", ways, HOUR_MS));
    }
  });

test("the starter ends the jobs of a mom that is stopped, or dead, before they start elsewhere", async () => {
  for (const what of ["stop", "kill"] as const) {
    const b = await bed({ hosts: 2, run_ms: 10 * HOUR_MS });
    const mom = b.complex.moms[0];
    await movesOn(b, () => (what === "stop" ? mom?.pause(HOUR_MS / 4) : mom?.kill()));
  }
});

test("jobs outlive an hour without a server, because a host can see that none runs", async () => {
  const b = await bed({ hosts: 2, run_ms: 10 * HOUR_MS });
  const id = await b.submit();
  await b.until("the job runs", () => b.job(id).state === "R 42", 60_000);
  b.complex.server.kill("test");
  await b.pass(HOUR_MS);
  await b.complex.server.start();
  await b.pass(60_000);
  assert.equal(b.job(id).state, "R 42");
  assert.equal(livesOf(b, id).length, 1, "it is the same run");
});
