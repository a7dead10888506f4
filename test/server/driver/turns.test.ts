// The order of requests: equal time for users, then for connections, however much one of them asks.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { ServerLink } from "#protocol/wire/ipc-transport.ts";
import type { Core } from "#server/core/core.ts";
import { type Connection, connections, createShares, isListing } from "#server/driver/connections.ts";
import { historySteps } from "#server/driver/history-steps.ts";
import { atOnce, storePort } from "#server/driver/store-port.ts";
import { createTurns } from "#server/driver/turns.ts";
import { memoryStore } from "#store/memory-store.ts";
import type { UserDatabase } from "#support/passwd.ts";

/** Work that takes the stated time on a simulated clock. */
function world() {
  let now_ms = 0;
  const turns = createTurns(() => now_ms);
  const done: string[] = [];
  const add = (uid: number, connection: number, ms: number, name: string, then?: () => void): void =>
    turns.add(uid, connection, () => {
      now_ms += ms;
      done.push(name);
      then?.();
    });
  return { turns, done, add };
}

test("turns: a user with one request is served next, however many requests of how many connections another has", () => {
  const { turns, done, add } = world();
  for (let connection = 1; connection <= 100; connection++) for (let at = 0; at < 20; at++) add(1, connection, 10, "heavy");
  assert.equal(turns.serve(30), true);
  add(2, 500, 1, "light");
  turns.serve(11);
  assert.ok(done.indexOf("light") <= 4, `served as number ${done.indexOf("light")}`);
});

test("turns: two users who always have work get equal time, whatever a request of theirs takes", () => {
  const { turns, done, add } = world();
  const again = (uid: number, ms: number, name: string): void => add(uid, uid, ms, name, () => again(uid, ms, name));
  again(1, 30, "long");
  again(2, 1, "short");
  turns.serve(3000);
  const long_ms = done.filter((name) => name === "long").length * 30;
  const short_ms = done.filter((name) => name === "short").length;
  assert.ok(Math.abs(long_ms - short_ms) <= 60, `${long_ms} ms and ${short_ms} ms`);
});

test("turns: a connection whose next request is on its way keeps what it was charged", () => {
  const { turns, done, add } = world();
  const ask = (): void => {
    for (let connection = 1; connection <= 20; connection++) add(1, connection, 10 + connection, "large");
  };
  ask();
  while (turns.serve(1));
  ask();
  turns.serve(1);
  add(1, 500, 1, "small");
  turns.serve(20);
  assert.deepEqual(done.slice(20, 23), ["large", "small", "large"]);
});

test("turns: connections of one user get equal time; the order within a connection stays", () => {
  const { turns, done, add } = world();
  for (let at = 0; at < 50; at++) add(1, 1, 10, `a${at}`);
  for (let at = 0; at < 3; at++) add(1, 2, 10, `b${at}`);
  turns.serve(70);
  assert.deepEqual(
    done.filter((name) => name.startsWith("b")),
    ["b0", "b1", "b2"],
  );
  assert.ok(done.filter((name) => name.startsWith("a")).length <= 4, done.join(" "));
});

test("turns: nobody saves up time by pausing, and work of a lost connection is dropped", () => {
  const { turns, done, add } = world();
  for (let at = 0; at < 20; at++) add(1, 1, 10, "one");
  turns.serve(100);
  for (let at = 0; at < 20; at++) add(2, 2, 10, "two");
  turns.serve(100);
  assert.ok(Math.abs(done.filter((name) => name === "two").length - 5) <= 1, done.join(" "));
  turns.drop(1, 1);
  turns.drop(2, 2);
  assert.equal(turns.serve(1000), false);
  assert.equal(done.length, 20);
});

test("turns: whoever waits for a piece of work hears of it when its connection is lost before its turn", () => {
  const { turns, done, add } = world();
  const piece = (connection: number, name: string): void =>
    turns.add(
      1,
      connection,
      () => void done.push(name),
      () => void done.push(`${name} dropped`),
    );
  add(1, 1, 10, "first");
  piece(1, "lost");
  piece(2, "kept");
  turns.drop(1, 1);
  turns.serve(1000);
  assert.deepEqual(done, ["lost dropped", "kept"]);
});

test("history: lists of ids whose readers are gone before their turn give back their share", async () => {
  const { turns } = world();
  const given: number[] = [];
  const open = new Set([1, 2, 3]);
  const core = { historyRead: (token: number) => void given.push(token) } as unknown as Core;
  const history = historySteps({
    history: storePort(memoryStore(), "svr", atOnce).history,
    core: (work) => work(core, 0),
    turn: (token, work) =>
      turns.add(
        7,
        token,
        () => work(open.has(token)),
        () => work(false),
      ),
    taken: (_token, then) => then(),
    uidOf: (token) => (open.has(token) ? 7 : undefined),
    rows_max: () => 10,
    failed: (_token, error) => assert.fail(error),
  });
  const read = (token: number): void => history.read(token, ["1.svr", "2.svr"]);
  for (const token of [1, 2]) read(token);
  await setImmediate();
  for (const token of [1, 2]) {
    open.delete(token);
    turns.drop(7, token);
  }
  read(3);
  for (let at = 0; at < 10; at++) {
    await setImmediate();
    turns.serve(1000);
  }
  assert.deepEqual(given, [3]);
});

test("turns: an error in a piece of work takes nothing away from the others", () => {
  const { turns, done, add } = world();
  turns.add(1, 1, () => {
    throw new Error("planted");
  });
  add(1, 1, 1, "after");
  assert.throws(() => turns.serve(10), /planted/);
  turns.serve(10);
  assert.deepEqual(done, ["after"]);
});

test("shares: a user's listings beyond the share wait in order, those of others do not; who leaves does not wait", () => {
  const shares = createShares<string>(() => 2);
  const begun: string[] = [];
  const take = (uid: number, owner: string): boolean => shares.take(uid, owner, () => begun.push(owner));
  assert.deepEqual([take(1, "a"), take(1, "b"), take(1, "c"), take(1, "d"), take(2, "x")], [true, true, false, false, true]);
  shares.leave(1, "c");
  shares.over(1);
  assert.deepEqual(begun, ["a", "b", "x", "d"]);
  shares.over(1);
  shares.over(1);
  assert.equal(take(1, "e"), true);
  assert.equal(isListing({ kind: "status", object: "job", ids: ["1"] }), false);
  assert.equal(isListing({ kind: "status", object: "job", ids: [], history: "with" }), true);
  assert.equal(isListing({ kind: "select-jobs", criteria: [] }), true);
});

test("shares: a connection that is lost with listings under way begins none of those it still waited for", () => {
  const shares = createShares<Connection>(() => 1);
  const users = { userByUid: () => null } as unknown as UserDatabase;
  const conns = connections({ users, host: "svr", own_uid: 0, system: true, listings: shares });
  const begun: string[] = [];
  const connect = (id: number): Connection => conns.add({ id, peer: { uid: 7, gid: 7, pid: 100 } } as unknown as ServerLink);
  const list = (connection: Connection, name: string): void =>
    void shares.take(7, connection, () => {
      begun.push(name);
      conns.open(connection, 1, true);
    });
  const [lost, other] = [connect(1), connect(2)];
  list(lost, "first");
  list(lost, "second");
  list(other, "other's");
  conns.remove(lost.link);
  assert.deepEqual(begun, ["first", "other's"]);
  assert.equal(conns.tokens().length, 1, "nothing of the lost connection is open");
});
