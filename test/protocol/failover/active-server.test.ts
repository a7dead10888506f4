// How a command finds the active one of two servers: refusals, silence, answers that come late, and the ends of the search.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connectActive, failoverAnswer, failoverWait, type Opened, type OpenTo } from "#protocol/failover/active-server.ts";

type Fake = { readonly open: OpenTo<string>; readonly opened: string[]; readonly closed: string[] };

/** What a server does at each attempt; the last one is repeated. answers after so many ms; never: accepts the connection and says nothing; loses: ends the connection. */
type Step = number | "refuses" | "never" | "loses" | "lasting";

const failure = (code: string): Error => Object.assign(new Error(code), { code });

function fake(name: string, ...steps: readonly Step[]): Fake {
  const opened: string[] = [];
  const closed: string[] = [];
  const open = async (): Promise<Opened<string>> => {
    const step = steps[Math.min(opened.length, steps.length - 1)] ?? "never";
    opened.push(String(step));
    if (step === "refuses") throw failure("ECONNREFUSED");
    if (step === "lasting") throw new Error("no certificate");
    const answered =
      step === "loses" ? Promise.reject(failure("ECONNRESET")) : new Promise((resolve) => step !== "never" && setTimeout(resolve, step));
    return { connection: name, answered, close: () => closed.push(name) };
  };
  return { open, opened, closed };
}

const seek = (near: Fake | null, servers: readonly Fake[], wait_ms = 5000, answer_ms = 100): Promise<string> =>
  connectActive({ near: near?.open ?? null, servers: servers.map(({ open }) => open), wait_ms, answer_ms });

test("active server: the one that answers first, not the one that accepts first", async () => {
  const silent = fake("head", "never");
  assert.equal(await seek(null, [silent, fake("spare", 0)]), "spare");
  assert.deepEqual(silent.closed, ["head"]);
  assert.equal(await seek(null, [fake("head", "refuses"), fake("spare", 0)]), "spare");
  assert.equal(await seek(null, [fake("head", 0), fake("spare", "refuses")]), "head");
});

test("active server: during a take-over, until the other one answers", async () => {
  assert.equal(await seek(null, [fake("head", "never"), fake("spare", "refuses", "refuses", "loses", 0)]), "spare");
});

test("active server: the one on the same host is asked alone first", async () => {
  const others = [fake("head", 0), fake("spare", 0)];
  assert.equal(await seek(fake("near", 10), others), "near");
  assert.deepEqual(
    others.map(({ opened }) => opened),
    [[], []],
  );
  assert.equal(await seek(fake("near", "never"), [fake("head", "never"), fake("spare", 0)]), "spare", "it was stopped");
  assert.equal(await seek(fake("near", 400), [fake("head", "never"), fake("spare", "refuses")]), "near", "it was only busy");
  const begin_ms = performance.now();
  assert.equal(await seek(fake("near", "refuses"), [fake("head", "refuses"), fake("spare", 0)], 5000, 60_000), "spare");
  assert.ok(performance.now() - begin_ms < 30_000, "a refusal is an answer");
});

test("active server: at the end of the search, one that has accepted the connection; otherwise the error of the first one", async () => {
  assert.equal(await seek(fake("near", "never"), [fake("head", "never"), fake("spare", "refuses")], 600), "near");
  await assert.rejects(seek(null, [fake("head", "refuses"), fake("spare", "refuses")], 600), /ECONNREFUSED/);
  await assert.rejects(seek(null, [fake("head", "refuses"), fake("spare", "lasting")], 60_000), /no certificate/);
});

test("active server: times of pbs.conf in seconds", () => {
  assert.deepEqual([failoverWait(undefined), failoverWait("5"), failoverWait("x")], [20_000, 5000, 20_000]);
  assert.deepEqual([failoverAnswer(undefined), failoverAnswer("7"), failoverAnswer("-1")], [2000, 7000, 2000]);
});
