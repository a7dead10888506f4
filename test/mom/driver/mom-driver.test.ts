// The loop round the mom's core: the order in which records and messages leave, and the mom's ends of its links.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_SETTINGS } from "#mom/config/config.ts";
import { MomDriver } from "#mom/driver/mom-driver.ts";
import type { MomPorts, ServerEnd } from "#mom/driver/ports.ts";
import type { MomEvent } from "#mom/run/event.ts";
import { job } from "../world.ts";
import { type Bed, bed } from "./bed.ts";

const IDENTITY = { host: "n1", port: 15002, pid: 1, is_system: false, alarm_s: 10, runner: null };
const kinds = (words: readonly string[]): string[] => words.map((word) => word.split(" ")[0] ?? "");

/** A mom that its server has welcomed. */
function welcomed(): Bed {
  const b = bed();
  new MomDriver(b.ports, IDENTITY, DEFAULT_SETTINGS).start();
  b.starter?.heard["starter-state"]({ pid: 1, runs: [], last: [], pongs: true });
  b.server?.opened();
  b.server?.frame("mom-welcome", { keep: [], kill: [], acknowledged: [] });
  b.clock.endTurn();
  return b;
}

function dialled({ server }: Bed): ServerEnd {
  assert.ok(server !== null, "the server was not dialled");
  return server;
}

/** Two jobs whose files are made. */
function twoPrepared(b: Bed): void {
  b.server?.frame("mom-start", { jobs: [job(), job({ id: "2.n1" })] });
  b.clock.endTurn();
  b.words.length = 0;
  const made = (id: string) => ({ job: id, run_count: 1, ok: true, stdout: "/o", stderr: "/e" }) as const;
  b.agents[0]?.heard["agent-prepared"]({ jobs: [made("1.n1"), made("2.n1")] });
}

/** A job runs and ends, and its output is delivered. */
function end(b: Bed, id: string): void {
  const run = { job: id, run_count: 1 };
  b.starter?.heard["starter-started"]({ runs: [{ ...run, pid: 5, at_ms: 1 }] });
  b.starter?.heard["starter-exited"]({ runs: [{ ...run, status: { code: 0 }, cput_s: 0, at_ms: 2 }] });
  b.agents[0]?.heard["agent-finished"]({ jobs: [{ ...run, delivered: 2, total: 2, failures: [] }] });
}

test("the server is dialled when the starter has told its runs, and hears a hello", () => {
  const b = bed();
  new MomDriver(b.ports, IDENTITY, DEFAULT_SETTINGS).start();
  assert.deepEqual(kinds(b.words), ["launch", "starter-hello"]);
  assert.equal(b.server, null);
  b.starter?.heard["starter-state"]({ pid: 1, runs: [], last: [] });
  dialled(b).opened();
  assert.equal(kinds(b.words).at(-1), "mom-hello");
});

test("the starts of one turn are one message to the starter", () => {
  const b = welcomed();
  twoPrepared(b);
  assert.deepEqual(kinds(b.words), [], "the turn is not over");
  b.clock.endTurn();
  assert.deepEqual(kinds(b.words), ["starter-start"]);
});

test("records are written once in a turn, before the starter is told", () => {
  const b = welcomed();
  twoPrepared(b);
  for (const id of ["1.n1", "2.n1"]) end(b, id);
  b.clock.endTurn();
  b.words.length = 0;
  b.server?.frame("mom-obit-ack", {
    jobs: [
      { job: "1.n1", run_count: 1 },
      { job: "2.n1", run_count: 1 },
    ],
  });
  b.clock.endTurn();
  assert.deepEqual(
    b.words.map((word) => word.split(" ").slice(0, 2).join(" ").slice(0, 14)),
    ["records 2", "starter-forget"],
  );
});

test("a frame that is no message of a server ends the connection", () => {
  const b = welcomed();
  b.words.length = 0;
  b.server?.frame("mom-start", { jobs: 5 });
  assert.deepEqual(b.words, ["reconnect"]);
  b.server?.frame("mom-start", { jobs: [job()] });
  b.server?.frame("mom-start", { jobs: 6 });
  b.clock.endTurn();
  assert.deepEqual(b.words, ["reconnect"], "what still comes over it has no effect");
  b.server?.closed("the server closed the connection");
  b.server?.opened();
  b.server?.frame("mom-welcome", { keep: [], kill: [], acknowledged: [] });
  b.server?.frame("mom-start", { jobs: [job()] });
  assert.equal(kinds(b.words).includes("mom-accepted"), true, "the new one is heard");
});

test("a mom that stood still gives its connection up, and acts on nothing that still comes over it", () => {
  const b = welcomed();
  b.words.length = 0;
  b.clock.now_ms += 60_000;
  b.server?.frame("mom-start", { jobs: [job()] });
  b.server?.frame("mom-start", { jobs: [job({ id: "2.n1" })] });
  b.clock.endTurn();
  assert.deepEqual(b.words, ["reconnect"]);
  b.server?.opened();
  assert.match(b.words.at(-1) ?? "", /^mom-hello .*"jobs":\[\]/);
});

test("a grace that comes without a question counts at once, answers nothing and is named to the server", () => {
  const b = bed();
  const driver = new MomDriver(b.ports, IDENTITY, DEFAULT_SETTINGS);
  driver.start();
  b.starter?.heard["starter-state"]({ pid: 1, runs: [], last: [], pongs: true });
  const server = dialled(b);
  server.opened();
  const grace = { number: 1, requeue_s: 310, sister_s: 300 };
  server.frame("mom-welcome", { keep: [], kill: [], acknowledged: [], grace });
  b.clock.endTurn();
  const answered_ms = driver.state.contact?.answered_ms;
  b.words.length = 0;
  b.clock.pass(5000);
  server.frame("mom-heard", { number: 0, grace: { ...grace, number: 2, sister_s: 60 } });
  b.clock.endTurn();
  assert.deepEqual(driver.state.contact, { answered_ms, requeue_s: 310, sister_s: 60 });
  assert.ok(kinds(b.words).includes("mom-report"), b.words.join());
});

test("a pong tells the server of a full disk, and of a starter that does not answer", () => {
  const b = welcomed();
  const pong = (): string => {
    b.server?.frame("mom-ping", { number: 1, silence_s: 40 });
    return b.words.findLast((word) => word.startsWith("mom-pong")) ?? "";
  };
  assert.equal(pong(), `mom-pong {"number":1,"clock_ms":${b.clock.wall_ms()}}`);
  b.is_full = true;
  b.server?.frame("mom-start", { jobs: [job()] });
  b.clock.endTurn();
  assert.match(pong(), /records cannot be written: ENOSPC/);
  b.is_full = false;
  b.server?.frame("mom-start", { jobs: [job({ id: "2.n1" })] });
  b.clock.endTurn();
  for (let s = 0; s < 21; s++) b.clock.pass(1000);
  assert.match(pong(), /the starter of its jobs does not answer/);
  b.starter?.heard["starter-pong"]({});
  assert.match(pong(), /its file agent does not answer/);
});

test("a file agent that dies is started again after a pause, and asked again what it has not answered", () => {
  const b = welcomed();
  b.server?.frame("mom-start", { jobs: [job()] });
  b.clock.endTurn();
  assert.equal(kinds(b.words).at(-1), "agent-prepare");
  b.words.length = 0;
  b.agents[0]?.closed();
  assert.deepEqual(b.words, []);
  b.clock.pass(100);
  assert.deepEqual(kinds(b.words), ["launch", "agent-prepare"]);
});

test("a request that would delay others goes to an agent of its own", () => {
  const b = welcomed();
  twoPrepared(b);
  b.clock.endTurn();
  const run = { job: "1.n1", run_count: 1 };
  b.starter?.heard["starter-started"]({ runs: [{ ...run, pid: 5, at_ms: 1 }] });
  b.starter?.heard["starter-exited"]({ runs: [{ ...run, status: { code: 0 }, cput_s: 0, at_ms: 2 }] });
  b.clock.endTurn();
  assert.equal(kinds(b.words).at(-1), "agent-finish");
  b.words.length = 0;
  b.agents[0]?.heard["agent-bulky"]({ jobs: [run] });
  b.clock.endTurn();
  assert.deepEqual(kinds(b.words), ["launch", "agent-finish"]);
  assert.equal(b.words[0], "launch bulk");
});

test("a starter that is lost is connected again, and what was for it meanwhile is dropped", () => {
  const b = welcomed();
  b.starter?.lost();
  twoPrepared(b);
  b.clock.endTurn();
  assert.deepEqual(kinds(b.words), []);
  b.clock.pass(200);
  assert.equal(kinds(b.words).at(-1), "starter-hello");
  b.starter?.heard["starter-state"]({ pid: 2, runs: [], last: [] });
  b.clock.endTurn();
  assert.equal(kinds(b.words).at(-1), "starter-start");
});

test("a mom that is to leave its jobs ends when its agent has ended", () => {
  const b = welcomed();
  b.server?.frame("mom-quit", {});
  b.clock.endTurn();
  assert.equal(b.words.includes("ended"), false);
  b.agents[0]?.closed();
  assert.deepEqual(kinds(b.words).slice(-2), ["starter-quit", "ended"]);
});

test("a mom that ends while its agent is dead writes its records before the starter hears of them", () => {
  const b = welcomed();
  twoPrepared(b);
  end(b, "1.n1");
  b.clock.endTurn();
  b.agents[0]?.closed();
  b.words.length = 0;
  b.server?.frame("mom-obit-ack", { jobs: [{ job: "1.n1", run_count: 1 }] });
  b.server?.frame("mom-quit", {});
  b.clock.endTurn();
  assert.deepEqual(kinds(b.words), ["records", "starter-forget", "starter-quit", "ended"]);
});

test("what a mom that ends still asks of its agent leaves after the records", () => {
  const b = welcomed();
  b.words.length = 0;
  b.server?.frame("mom-start", { jobs: [job()] });
  b.server?.frame("mom-quit", {});
  b.clock.endTurn();
  const [records, prepare] = ["records", "agent-prepare"].map((kind) => kinds(b.words).indexOf(kind));
  assert.ok(records !== undefined && prepare !== undefined && records >= 0 && records < prepare, b.words.join("\n"));
});

test("two signals to one run in one turn are two messages, and both leave after the records of the turn", () => {
  const b = welcomed();
  twoPrepared(b);
  b.starter?.heard["starter-started"]({ runs: [{ job: "1.n1", run_count: 1, pid: 5, at_ms: 1 }] });
  b.clock.endTurn();
  b.words.length = 0;
  b.server?.frame("mom-signal", { token: 1, job: "1.n1", signal: "SIGUSR1" });
  b.server?.frame("mom-signal", { token: 2, job: "1.n1", signal: "SIGUSR2" });
  b.server?.frame("mom-start", { jobs: [job({ id: "3.n1" })] });
  assert.equal(b.words.filter((word) => word.startsWith("starter-")).length, 0, "the turn is not over");
  b.clock.endTurn();
  assert.deepEqual(
    kinds(b.words).filter((kind) => kind === "records" || kind === "starter-signal"),
    ["records", "starter-signal", "starter-signal"],
  );
});

test("the server is told that a run is suspended after the record and after the signal, and frames behind that wait, too", () => {
  const b = welcomed();
  twoPrepared(b);
  b.clock.endTurn();
  b.starter?.heard["starter-started"]({ runs: [{ job: "1.n1", run_count: 1, pid: 5, at_ms: 1 }] });
  b.clock.endTurn();
  b.words.length = 0;
  b.server?.frame("mom-signal", { token: 7, job: "1.n1", signal: "suspend" });
  assert.deepEqual(
    kinds(b.words).filter((kind) => kind.startsWith("mom-")),
    [],
  );
  b.clock.endTurn();
  assert.deepEqual(kinds(b.words), ["records", "starter-signal", "mom-result"]);
});

test("requests to a file agent of one turn leave after its records, in the order in which they were made", () => {
  const b = welcomed();
  twoPrepared(b);
  for (const id of ["1.n1", "2.n1"]) b.starter?.heard["starter-started"]({ runs: [{ job: id, run_count: 1, pid: 5, at_ms: 1 }] });
  b.clock.endTurn();
  b.words.length = 0;
  const exits = (id: string) =>
    b.starter?.heard["starter-exited"]({ runs: [{ job: id, run_count: 1, status: { code: 0 }, cput_s: 0, at_ms: 2 }] });
  exits("1.n1");
  b.server?.frame("mom-start", { jobs: [job({ id: "3.n1" })] });
  exits("2.n1");
  assert.equal(b.words.filter((word) => word.startsWith("agent-")).length, 0, "the turn is not over");
  b.clock.endTurn();
  assert.deepEqual(
    kinds(b.words).filter((kind) => kind === "records" || kind.startsWith("agent-")),
    ["records", "agent-finish", "agent-prepare", "agent-finish"],
  );
});

test("output of tasks on a sister is dropped at the end of the run if it has reached the mother superior, otherwise kept", () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, tasks: number, all: boolean, asked: boolean, output: string])[] = [
    ["it was sent",              1, true,  true,  "drop"],
    ["it could not be sent",     1, false, true,  "deliver"],
    ["there were no tasks",      0, false, false, "drop"],
  ];
  for (const [what, tasks, all, asked, output] of rows) {
    const b = bed();
    const drained: string[] = [];
    let happen: (event: MomEvent) => void = () => undefined;
    const open: MomPorts["tasks"]["open"] = (state, hear) => {
      happen = hear;
      const drainLast = (id: string, then: (all: boolean) => void): void => {
        drained.push(id);
        then(all);
      };
      return { ...b.ports.tasks.open(state, hear), drainLast };
    };
    new MomDriver({ ...b.ports, tasks: { open } }, IDENTITY, DEFAULT_SETTINGS).start();
    b.starter?.heard["starter-state"]({ pid: 1, runs: [], last: [], pongs: true });
    b.server?.opened();
    b.server?.frame("mom-welcome", { keep: [], kill: [], acknowledged: [] });
    const spread = job({ exec_host: "n0/0+n1/0", exec_vnode: "(n0:ncpus=1)+(n1:ncpus=1)", tasks: { n0: "/n0", n1: "/n1" } });
    b.server?.frame("mom-start", { jobs: [spread] });
    b.clock.endTurn();
    const run = { job: "1.n1", run_count: 1 };
    b.agents[0]?.heard["agent-prepared"]({ jobs: [{ ...run, ok: true, stdout: "/o", stderr: "/e" }] });
    b.starter?.heard["starter-started"]({ runs: [{ ...run, pid: 5, at_ms: 1 }] });
    const wanted = { kind: "spawn", ...run, cookie: null, host: "n1", argv: ["true"], env: [], shell: false } as const;
    for (let task = 0; task < tasks; task++) happen({ kind: "task-asked", asked: task, by: { uid: 0, daemon: true }, wanted });
    b.words.length = 0;
    b.starter?.heard["starter-exited"]({ runs: [{ ...run, status: { code: 0 }, cput_s: 0, at_ms: 2 }] });
    b.clock.endTurn();
    assert.deepEqual(drained, asked ? ["1.n1"] : [], what);
    const finish = b.words.find((word) => word.startsWith("agent-finish")) ?? "";
    assert.ok(finish.endsWith(`"output":"${output}"}]}`), what);
  }
});

test("output of a sister is answered when the file agent has written it, or has ended", () => {
  const b = bed();
  const driver = new MomDriver(b.ports, IDENTITY, DEFAULT_SETTINGS);
  driver.start();
  b.starter?.heard["starter-state"]({ pid: 1, runs: [], last: [], pongs: true });
  b.server?.opened();
  b.server?.frame("mom-welcome", { keep: [], kill: [], acknowledged: [] });
  b.clock.endTurn();
  twoPrepared(b);
  b.clock.endTurn();
  b.starter?.heard["starter-started"]({ runs: [{ job: "1.n1", run_count: 1, pid: 5, at_ms: 1 }] });
  const output = (offset: number) =>
    ({ kind: "output", job: "1.n1", run_count: 1, cookie: null, letter: "o", from: "n2", offset, content: "dGV4dA==" }) as const;
  const said = (): string[] => b.words.filter((word) => word.startsWith("say "));
  for (const asked of [1, 2]) driver.happen({ kind: "task-asked", asked, by: { uid: 0, daemon: true }, wanted: output(4 * asked) });
  b.clock.endTurn();
  assert.deepEqual(said(), []);
  b.agents[0]?.heard["agent-appended"]({ runs: [], asked: [1] });
  assert.deepEqual(said(), ["say 1 task-done"]);
  b.agents[0]?.closed();
  assert.deepEqual(said(), ["say 1 task-done", "say 2 task-done"]);
});
