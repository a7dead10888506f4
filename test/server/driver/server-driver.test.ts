// The driver of the server's core in a simulated world: when it writes, when messages leave, and how it recovers from a fault
// (I1-I3 of server-driver.ts).

import assert from "node:assert/strict";
import { test } from "node:test";
import type { StandbyView } from "#protocol/hosts-view.ts";
import type { ShutdownRequest } from "#protocol/messages.ts";
import { HandClock } from "#server/driver/hand-clock.ts";
import { immediatePorts } from "#server/driver/immediate-ports.ts";
import type { Done, HistoryPort, LeasePort, LoadedState } from "#server/driver/ports.ts";
import { ServerDriver } from "#server/driver/server-driver.ts";
import type { ServerConfig } from "#server/engine/transaction.ts";
import { freshState } from "#server/state/load.ts";
import { addJob, CONFIG, HOST, harness, holdCommits, outcome, ROOT, release, START_S, settle, stateOf } from "../harness.ts";

/** A server whose commits and loads wait for the test. */
function world(lease?: LeasePort, waiting: readonly StandbyView[] = []) {
  const clock = new HandClock(START_S * 1000);
  const commits: ((fault: Error | null) => void)[] = [];
  const answers = new Map<number, string>();
  const bugs: unknown[] = [];
  const seen = { commits: 0, loads: 0, dropped: 0 };
  const planted: { in_start: boolean; in_load: Error | null } = { in_start: false, in_load: null };
  const ports = immediatePorts(clock, {
    links: {
      toSched: () => undefined,
      toMoms: () => undefined,
      end: () => undefined,
      dropDaemons: () => void seen.dropped++,
      setLimits: () => undefined,
      close: (done) => done(),
    },
    clients: {
      answer(frames) {
        for (const frame of frames) {
          // A request that was already answered needs no further reply (ClientsPort).
          if (frame.kind !== "part" && !answers.has(frame.token))
            answers.set(frame.token, frame.kind === "ok" ? "ok" : `${frame.code} ${frame.text}`);
        }
      },
      taken: (_token, then) => then(),
      of: (token) => (answers.has(token) ? undefined : { uid: 0, link: token }),
      open: () => Array.from({ length: tokens }, (_none, at) => at + 1).filter((token) => !answers.has(token)),
    },
    onBug: (error) => void bugs.push(error),
  });
  const store = {
    ...ports.store,
    history: { ...ports.store.history, read: failedRead },
    ...(lease === undefined ? {} : { lease }),
    commit(_rows: unknown, done: (fault: Error | null) => void): void {
      assert.equal(commits.length, 0, "one commit at a time");
      seen.commits++;
      commits.push(done);
    },
    load(done: Done<LoadedState>): void {
      seen.loads++;
      if (planted.in_load !== null) return done({ ok: false, error: planted.in_load });
      const state = freshState(HOST, CONFIG);
      if (planted.in_start) state.scheds.values = fail;
      done({ ok: true, value: { state, due: [] } });
    },
  };
  const config: ServerConfig =
    lease === undefined ? CONFIG : { ...CONFIG, pair: { role: "primary", host: HOST, other: "spare", standbys: () => waiting } };
  const driver = new ServerDriver({ ...ports, store }, config, freshState(HOST, CONFIG));
  let tokens = 0;
  /** a change of the server, whose token is returned */
  const change = (value: string, chars = value.length): number => {
    const token = ++tokens;
    const attrs = [{ name: "comment", op: "=" as const, value }];
    driver.request(ROOT, { kind: "manager", verb: "set", object: "server", name: "", attrs }, token, 0, chars);
    clock.settle();
    return token;
  };
  const status = (): number => {
    const token = ++tokens;
    driver.request(ROOT, { kind: "status", object: "server", ids: [] }, token);
    clock.settle();
    return token;
  };
  /** the commit in progress ends */
  const written = (fault: Error | null): void => {
    commits.shift()?.(fault);
    clock.settle();
  };
  const pass = (ms: number): void => {
    clock.now_ms += ms;
    clock.ring();
    clock.settle();
  };
  const terminate = (pair: Pick<ShutdownRequest, "other" | "secondary_only"> = {}): number => {
    const token = ++tokens;
    driver.request(ROOT, { kind: "shutdown", manner: "quick", scheds: false, moms: false, ...pair }, token);
    clock.settle();
    return token;
  };
  const statusOfJob = (id: string): number => {
    const token = ++tokens;
    driver.request(ROOT, { kind: "status", object: "job", ids: [id], history: "with" }, token);
    clock.settle();
    return token;
  };
  driver.start();
  clock.settle();
  while (commits.length > 0) written(null);
  return { driver, clock, commits, answers, bugs, seen, planted, change, status, statusOfJob, terminate, written, pass };
}

const fail = (): never => {
  throw new Error("planted");
};

const failedRead: HistoryPort["read"] = (_ids, _rows_max, done) => done({ ok: false, error: new Error("disk error") });

test("what comes while a commit is under way gathers for the next one; each is answered after its own commit", () => {
  const { answers, change, written } = world();
  const [first, second, third] = [change("a"), change("b"), change("c")];
  assert.equal(answers.size, 0);
  written(null);
  assert.deepEqual([answers.get(first), answers.has(second)], ["ok", false]);
  written(null);
  assert.deepEqual([answers.get(second), answers.get(third)], ["ok", "ok"]);
});

test("a server that gives way to another one has not been told to end; qterm tells it", () => {
  const { driver } = world();
  driver.stop(true);
  assert.equal(driver.isToldToEnd, false);
  const told = world();
  told.terminate();
  assert.equal(told.driver.isToldToEnd, true);
});

for (const other of ["stop", "idle"] as const)
  test(`qterm with the order to ${other} for the other server: without the order it fails and the server goes on; with it the server ends`, () => {
    const orders: string[] = [];
    let tell = (_fault: Error | null): void => assert.fail("no order");
    const { driver, clock, answers, change, terminate, written } = world({
      holds: () => true,
      confirm: (done) => done(null),
      order(order, role, done) {
        orders.push(`${order} ${role}`);
        tell = done;
      },
    });
    const first = terminate({ other });
    assert.deepEqual([answers.has(first), driver.isToldToEnd], [false, false], "the order comes first");
    tell(new Error("the database does not answer"));
    clock.settle();
    const what = other === "idle" ? "stay idle" : "end";
    assert.equal(answers.get(first), `15010 System error: the other server cannot be told to ${what}: the database does not answer`);
    const goes_on = change("still here");
    written(null);
    assert.deepEqual([answers.get(goes_on), driver.isToldToEnd, driver.isOver], ["ok", false, false]);

    const second = terminate({ other });
    tell(null);
    clock.settle();
    written(null);
    assert.deepEqual([answers.get(second), driver.isToldToEnd, driver.isOver], ["ok", true, true]);
    const order = other === "idle" ? "idle secondary" : "stop null";
    assert.deepEqual(orders, [order, order]);
  });

const STANDBY: StandbyView = { role: "secondary", host: "spare", pid: 1, waits: true, seen_s: START_S };

test("qterm -F fails if the secondary cannot be told to end, or does not wait", () => {
  const lease: LeasePort = { holds: () => true, confirm: (done) => done(null), order: (_order, _role, done) => done(new Error("away")) };
  const { driver, answers, terminate } = world(lease, [STANDBY]);
  const token = terminate({ secondary_only: true });
  assert.equal(answers.get(token), "15010 System error: the other server cannot be told to end: away");
  assert.equal(driver.isToldToEnd, false);
  for (const waiting of [[], [{ ...STANDBY, waits: false }]]) {
    const alone = world({ ...lease, order: () => assert.fail("an order to nobody") }, waiting);
    assert.equal(
      alone.answers.get(alone.terminate({ secondary_only: true })),
      "15010 System error: no secondary server waits: there is none to end",
    );
  }
});

test("a server that cannot write ends, and answers only if it certainly leads", () => {
  for (const leads of [true, false]) {
    let holds = true;
    const lease: LeasePort = {
      holds: () => holds,
      confirm: (done) => done(new Error("connection lost")),
      order: (_order, _role, done) => done(null),
    };
    const { driver, answers, change, terminate, written, pass } = world(lease);
    change("a");
    written(new Error("connection lost"));
    pass(200);
    holds = leads;
    const token = terminate();
    assert.deepEqual([driver.isOver, answers.get(token)], [true, leads ? "ok" : undefined]);
  }
});

test("a commit that fails refuses its batch and all open requests; the state is loaded again, daemons are dropped", () => {
  const { driver, answers, seen, change, written, pass } = world();
  const [first, second] = [change("a"), change("b")];
  const before = driver.core;
  written(new Error("disk full"));
  assert.deepEqual([answers.get(first), answers.get(second)], ["15010 System error: disk full", "15010 System error: disk full"]);
  assert.deepEqual([seen.dropped, seen.loads, driver.core === before], [1, 0, true]);
  pass(200);
  assert.deepEqual([seen.loads, driver.core === before], [1, false]);
  assert.equal(driver.core.state.server["comment"], undefined);
});

test("a store that cannot be loaded for a while is loaded again, after pauses that are doubled; then the server goes on", () => {
  const { driver, answers, seen, planted, change, written, pass } = world();
  const before = driver.core;
  change("a");
  planted.in_load = new Error("the database has taken too long");
  written(new Error("connection lost"));
  pass(200);
  assert.deepEqual([seen.loads, driver.core === before], [1, true]);
  pass(399);
  assert.equal(seen.loads, 1, "not without a pause");
  pass(1);
  assert.equal(seen.loads, 2);
  assert.equal(answers.get(change("b")), "15010 System error: connection lost");
  planted.in_load = null;
  pass(800);
  assert.deepEqual([seen.loads, driver.core === before], [3, false]);
});

test("while the disk is full changes are refused and questions answered; it is probed every second and taken again", () => {
  const { driver, answers, seen, commits, change, status, written, pass } = world();
  change("a");
  written(new Error("disk full"));
  pass(200);
  const commits_before = seen.commits;
  assert.deepEqual([answers.get(change("b")), answers.get(status())], ["15010 System error: disk full", "ok"]);
  assert.deepEqual([driver.takesDaemons, seen.commits - commits_before], [false, 0]);
  pass(1000);
  assert.equal(commits.length, 1, "a probe");
  written(new Error("disk full"));
  assert.equal(answers.get(change("c")), "15010 System error: disk full");
  pass(1000);
  written(null);
  assert.equal(driver.takesDaemons, true);
  while (commits.length > 0) written(null);
  const last = change("d");
  written(null);
  assert.equal(answers.get(last), "ok");
});

test("an error of the program in the core gives up what is not committed, after the commit that is under way", () => {
  const { driver, answers, bugs, seen, change, written, pass } = world();
  const first = change("a");
  const second = change("b");
  driver.do(() => {
    throw new Error("planted");
  });
  assert.deepEqual([bugs.length, answers.size, seen.dropped], [1, 0, 0]);
  written(null);
  assert.deepEqual([answers.get(first), answers.get(second)?.slice(0, 5), seen.dropped], ["ok", "15011", 1]);
  pass(200);
  assert.equal(seen.loads, 1);
  const third = change("c");
  written(null);
  while (!answers.has(third)) written(null);
  assert.equal(answers.get(third), "ok");
});

test("a core that cannot start is started again after longer and longer pauses, and serves when it can", () => {
  const { driver, bugs, seen, planted, answers, change, written, pass } = world();
  planted.in_start = true;
  driver.do(fail);
  pass(200);
  assert.deepEqual([seen.loads, bugs.length], [1, 2]);
  for (let second = 0; second < 60; second++) pass(1000);
  assert.ok(seen.loads >= 6 && seen.loads <= 8, `${seen.loads} in a minute`);
  planted.in_start = false;
  pass(30_000);
  const last = change("a");
  while (!answers.has(last)) written(null);
  assert.equal(answers.get(last), "ok");
  planted.in_start = true;
  const before = seen.loads;
  driver.do(fail);
  written(null);
  pass(200);
  assert.equal(seen.loads, before + 1, "the first pause is short again");
});

test("requests wait for the store when those that have gathered have megabytes of text", () => {
  const { driver, clock, change, written } = world();
  change("being written");
  change("large", 5_000_000);
  let served = false;
  driver.inTurn({ uid: 1, link: 1 }, () => {
    served = true;
  });
  clock.settle();
  assert.equal(served, false);
  written(null);
  assert.equal(served, true);
});

test("a request that is served in the slice in which the core fails is refused, not forgotten", () => {
  const { driver, clock, answers, change, pass } = world();
  let token = 0;
  driver.inTurn({ uid: 1, link: 1 }, () => {
    driver.do(() => {
      throw new Error("planted");
    });
  });
  driver.inTurn({ uid: 2, link: 2 }, () => {
    token = change("in the same slice");
  });
  clock.settle();
  pass(200);
  assert.ok(token > 0);
  assert.equal(answers.get(token)?.slice(0, 5), "15011");
});

test("a hold is stored before its user is answered, and not answered by a server that is killed before", () => {
  const h = harness();
  const job = addJob(h);
  holdCommits(h);
  assert.equal(outcome(h, ROOT, { kind: "hold-job", job, holds: "u" }), "deferred");
  assert.equal(stateOf(h, job), "H 20");
  release(h);
  settle(h);
  assert.deepEqual(h.answers.get(h.next_token - 1), { ok: true });
});

test("a request whose read of the history fails is refused, and the core forgets it", () => {
  const { driver, answers, change, statusOfJob, written } = world();
  change("a");
  driver.core.state.server = { ...driver.core.state.server, job_history_enable: true };
  driver.core.state.history_count = 1;
  const token = statusOfJob(`99.${HOST}`);
  written(null);
  assert.equal(answers.get(token), "15010 System error: disk error");
  assert.equal(driver.core.kernel.requests.waiting.size, 0);
});
