// The simulator's checks detect violations: each check gets a world that violates it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { prepareStart } from "#server/core/first-start.ts";
import { HandClock } from "#server/driver/hand-clock.ts";
import { immediatePorts } from "#server/driver/immediate-ports.ts";
import { ServerDriver } from "#server/driver/server-driver.ts";
import type { Batch } from "#server/engine/batch.ts";
import { NOTHING_OWN } from "#server/state/job-own.ts";
import { freshState } from "#server/state/load.ts";
import type { JobAttrs } from "#server/state/state.ts";
import { Checks } from "#sim/checks/checks.ts";
import { leftoverOf } from "#sim/checks/leftovers.ts";
import { Violation } from "#sim/checks/violation.ts";
import { createNetwork } from "#sim/network.ts";
import { CONFIG, HOST } from "#sim/server-process.ts";
import type { VirtualProcess } from "#sim/starter-process.ts";
import { createWorld, START_MS } from "#sim/world.ts";
import { prng } from "#support/prng.ts";

function coreWithJob(exec_vnode: string, ncpus: number, place = "free") {
  const batches: Batch[] = [];
  const { driver, clock } = still((batch) => batches.push(batch));
  const { core } = driver;
  prepareStart(core, { start: "warm", fresh: true, node: null });
  core.request(
    { user: "root", uid: 0, groups: [], host: HOST, root: true },
    { kind: "manager", verb: "create", object: "node", name: "n1", attrs: [] },
    1,
    START_MS,
  );
  core.hostResolved(1, "n1", "n1", START_MS);
  core.mom(
    7,
    "mom-hello",
    { host: "n1", port: 15002, pid: 1, version: "x", vnodes: [{ name: "n1", attrs: { resources_available: { ncpus } } }], jobs: [] },
    START_MS,
  );
  const ids: string[] = [];
  const submit = (): string => {
    const attrs = [
      { name: "Job_Name", value: "a" },
      { name: "Output_Path", value: "svr:/o" },
      { name: "Error_Path", value: "svr:/e" },
      { name: "Variable_List", value: "PBS_O_HOME=/" },
      { name: "Resource_List", resource: "select", value: "1:ncpus=1" },
      { name: "Resource_List", resource: "place", value: place },
    ];
    core.request(
      { user: "alice", uid: 1000, groups: ["users"], host: HOST, root: false },
      { kind: "queue-job", destination: "workq", attrs, script: "" },
      2,
      START_MS,
    );
    const id = `${core.state.next_seq}.${HOST}`;
    ids.push(id);
    const answer = core.request(
      { user: "root", uid: 0, groups: [], host: HOST, root: true },
      { kind: "run-job", job: id, exec_vnode },
      3,
      START_MS,
    );
    assert.equal(core.state.jobs.get(id)?.attrs.job_state, "R", String(answer));
    return id;
  };
  /** the batch of everything so far */
  const take = (): Batch => {
    batches.length = 0;
    driver.do(() => undefined);
    clock.settle();
    return batches[0] as Batch;
  };
  return { core, submit, ids, take };
}

/** A server without connections. taken: called with each batch. */
function still(taken: (batch: Batch) => void = () => undefined) {
  const clock = new HandClock(START_MS);
  const nothing = (): void => undefined;
  const ports = immediatePorts(clock, {
    links: { toSched: nothing, toMoms: nothing, end: nothing, dropDaemons: nothing, setLimits: nothing, close: (done) => done() },
    clients: { answer: nothing, taken: (_token, then) => then(), of: () => undefined, open: () => [] },
    watch: { taken: (_core, batch) => taken(batch) },
  });
  return { driver: new ServerDriver(ports, CONFIG, freshState(HOST, CONFIG)), clock };
}

const born = (job: string, run_count: number, host = "n1"): VirtualProcess => ({
  job,
  run_count,
  host,
  pid: 1,
  since_ms: 0,
  stopped: false,
  ended: false,
  left_ms: 1,
  goes_on_ms: 0,
  turn: 0,
});
const attrsOf = (core: ReturnType<typeof coreWithJob>["core"], id: string): JobAttrs => core.state.jobs.get(id)?.attrs as JobAttrs;

test("K1 is seen: a state that breaks the server's invariants", () => {
  const { core, submit } = coreWithJob("(n1:ncpus=1)", 4);
  const checks = new Checks();
  const id = submit();
  checks.stepped(core);
  core.state.queues.get("workq")?.jobs.delete(id);
  assert.throws(() => checks.stepped(core), { name: "Violation", message: /^K1 .*is not in the set of queue workq/ });
});

test("K2 is seen: a job answered before its commit, an id given twice, a job lost by a restart", () => {
  const { core, submit, take } = coreWithJob("(n1:ncpus=1)", 4);
  const checks = new Checks();
  const id = submit();
  checks.taken(core, take());
  assert.throws(() => checks.answered(id), /K2 .* was answered before it was committed/);
  checks.committed();
  assert.throws(() => checks.answered(id), /K2 id .* was given twice/);
  assert.throws(() => checks.loaded(still().driver.core), /K2 .* was committed as live and is gone/);
});

test("K3 is seen: two runs of one job at once, unless the server gave the first one up", () => {
  const { core, submit } = coreWithJob("(n1:ncpus=1)", 4);
  const checks = new Checks();
  const id = submit();
  checks.stepped(core);
  checks.born(born(id, 1), () => attrsOf(core, id));
  assert.throws(() => checks.born(born(id, 2, "n2"), () => attrsOf(core, id)), /K3 .*run 2 starts on n2 while run 1 still lives on n1/);
  checks.force(id);
  checks.born(born(id, 2, "n2"), () => attrsOf(core, id));
  assert.throws(() => checks.born(born(id, 1, "n2"), () => attrsOf(core, id)), /K3/);
});

test("K3 is seen: an earlier run that starts beside a later one, unless a request forced it off its hosts", () => {
  const { core, submit } = coreWithJob("(n1:ncpus=1)", 4);
  const checks = new Checks();
  const id = submit();
  checks.stepped(core);
  checks.born(born(id, 2, "n2"), () => attrsOf(core, id));
  assert.throws(() => checks.born(born(id, 1), () => attrsOf(core, id)), /K3 .*run 1 starts on n1 while run 2 is on n2/);
  checks.force(id);
  checks.born(born(id, 1), () => attrsOf(core, id));
});

test("K4 is seen: more cpus in use than there are, and company of an exclusive job", () => {
  for (const [ncpus, place, message] of [
    [1, "free", /K4 vnode n1 has 1 cpus, 2 are used/],
    [4, "excl", /K4 .* wants vnode n1 alone/],
  ] as const) {
    const { core, submit } = coreWithJob("(n1:ncpus=1)", ncpus, place);
    const checks = new Checks();
    const [first, second] = [submit(), submit()];
    checks.stepped(core);
    // A job placed by an operator is exempt, so the record of the operator is removed.
    for (const job of core.state.jobs.values()) job.own = NOTHING_OWN;
    checks.born(born(first, 1), () => attrsOf(core, first));
    assert.throws(() => checks.born(born(second, 1), () => attrsOf(core, second)), message);
  }
});

test("K6 is seen: records that do not fit a job's life", () => {
  const { core, submit, take } = coreWithJob("(n1:ncpus=1)", 4);
  const checks = new Checks();
  const id = submit();
  checks.taken(core, take());
  checks.committed();
  const records = (letters: string) => [...letters].map((type) => ({ type, id, text: "" }));
  checks.accounting(records("QS"), core.state);
  const wrong: readonly (readonly [letters: string, message: RegExp])[] = [
    ["", /is not in the accounting/],
    ["SQ", /no Q first/],
    ["QQS", /2 Q records, 1 times in a queue/],
    ["QSS", /a second S/],
    ["QR", /R without S or T/],
    ["QC", /C without S or T/],
    ["QST", /a second T/],
    ["QSRT", /a T without C/],
    ["QSE", /ended and lives/],
  ];
  for (const [letters, message] of wrong) assert.throws(() => checks.accounting(records(letters), core.state), message, letters);
  core.state.jobs.delete(id);
  for (const [letters, message] of [
    ["QSEE", /several E/],
    ["QSR", /gone without a record/],
    ["QSD", /gone after an S without E/],
  ] as const) {
    assert.throws(() => checks.accounting(records(letters), core.state), message, letters);
  }
  assert.ok(new Violation("x") instanceof Error);
});

test("frames of a link keep their order, and of a broken one the first ones arrive before the loss", async () => {
  for (let seed = 0; seed < 200; seed++) {
    const world = createWorld(prng(seed), 1, null);
    const network = createNetwork(world, { delay_ms_max: 50, notice_ms_max: 20 });
    const { a, b, cable } = network.connect("mom", "n1", "mom-to-server", "server-to-mom");
    const seen: number[] = [];
    let lost = 0;
    b.listen({
      receive: ({ type, data }) => {
        assert.equal(lost, 0, "a frame after the loss");
        if (type === "mom-result") seen.push(data.token);
      },
      lost: () => lost++,
    });
    let a_lost = 0;
    a.listen({ receive: () => undefined, lost: () => a_lost++ });
    for (let token = 0; token < 10; token++) world.after(token * 3, () => a.send("mom-result", { token, ok: true }));
    if (seed % 2 === 0) world.after(15, () => cable.breakOff());
    while (await world.next(Number.POSITIVE_INFINITY)) {
      // to the end
    }
    assert.deepEqual(seen, [...seen.keys()], "in order and without a gap");
    if (seed % 2 === 0) assert.deepEqual([lost, a_lost], [1, 1]);
    else assert.equal(seen.length, 10);
  }
});

test("K12 is seen: a runtime record of something that is over", () => {
  const { core, submit } = coreWithJob("(n1:ncpus=1)", 1);
  const { kernel } = core;
  const job = submit();
  kernel.jobs.starting.clear();
  kernel.jobs.waiters.set(job, [1]);
  assert.equal(leftoverOf(kernel), null);
  kernel.jobs.waiters.set(`999.${HOST}`, [1]);
  assert.equal(leftoverOf(kernel), `the wait for the end of 999.${HOST}`);
  kernel.jobs.waiters.clear();
  kernel.scheds.qruns.set(job, [1]);
  assert.equal(leftoverOf(kernel), `the qrun of ${job}`);
  kernel.scheds.qruns.clear();
  const sched = kernel.scheds.by_name.get("default");
  sched?.known.jobs.add(`999.${HOST}`);
  assert.equal(leftoverOf(kernel), null, "it is not connected");
  if (sched !== undefined) sched.link = 1;
  assert.equal(leftoverOf(kernel), `what default knows of 999.${HOST}`);
});
