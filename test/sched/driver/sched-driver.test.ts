// The loop round the cycle: what a scheduler does with a lost connection, with verdicts and at its end.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Bed, connect, connected } from "./bed.ts";

const kinds = ({ words }: Bed): string[] => words.map((word) => word.split(" ")[0] ?? "");
const askedFor = (number: number) => ({ cycle: number, command: 3 });
const DYNAMIC = { dyn_res: [{ resource: "licences", program: "/bin/licences", args: [] }] };

test("a cycle is decided, carried out and ended", () => {
  const b = connected();
  b.driver.frame("sched-cycle", askedFor(7));
  assert.match(b.words.join("\n"), /^sched-decisions {"cycle":7,.*"kind":"run","job":"1"/);
  b.driver.frame("sched-verdicts", { cycle: 7, verdicts: [{ ok: true }] });
  assert.equal(kinds(b).at(-1), "sched-cycle-end");
  assert.equal(b.driver.isIdle, true);
});

test("verdicts that are not as many as the decisions are no answer to them", () => {
  const b = connected();
  b.driver.frame("sched-cycle", askedFor(1));
  assert.throws(() => b.driver.frame("sched-verdicts", { cycle: 1, verdicts: [{ ok: true }, { ok: true }] }), /1 decisions, 2 verdicts/);
});

test("a scheduler that was refused leaves its next connection alone", () => {
  const b = connected();
  b.driver.frame("sched-refused", { code: 15226, text: "no such scheduler" });
  b.driver.lost("the server closed the connection");
  connect(b);
  b.words.length = 0;
  b.clock.now_ms += 5000;
  b.clock.ring();
  assert.deepEqual(b.words, []);
  b.driver.frame("sched-refused", { code: 15226, text: "no such scheduler" });
  b.clock.now_ms += 5000;
  b.clock.ring();
  assert.deepEqual(b.words, ["reconnect refused"], "a server that does not end the connection");
});

test("a question is answered on the connection that it came over, or never", () => {
  const b = connected();
  for (const token of [1, 2]) b.driver.frame("sched-ask", { token, question: { kind: "explain", job: "1", sees_others: true } });
  assert.match(b.words.join("\n"), /^sched-answer {"token":1,.*$/, "the second one waits");
  b.driver.lost("the server closed the connection");
  b.words.length = 0;
  connect(b);
  b.clock.ring();
  assert.deepEqual(kinds(b), ["sched-hello", "sched-fault"]);
  b.words.length = 0;
  b.driver.frame("sched-ask", { token: 1, question: { kind: "view", sees_others: true } });
  assert.match(b.words.join("\n"), /^sched-answer {"token":1,.*$/);
});

test("a cycle begins with the answers of its programs, and does not begin when they are killed at the scheduler's end", () => {
  const b = connected(DYNAMIC);
  b.driver.frame("sched-cycle", askedFor(1));
  assert.deepEqual(b.words, []);
  b.answers.shift()?.(new Map());
  assert.deepEqual(kinds(b), ["sched-decisions"]);
  b.driver.frame("sched-verdicts", { cycle: 1, verdicts: [{ ok: true }] });
  b.driver.frame("sched-cycle", askedFor(2));
  b.words.length = 0;
  let is_over = false;
  b.driver.leave(() => {
    is_over = true;
  });
  b.answers.shift()?.(new Map());
  assert.deepEqual(b.words, ["sched-leaving {}", "stop programs", "close"]);
  assert.equal(is_over, true);
});

test("a scheduler leaves when its cycle is over, or after five seconds", () => {
  for (const late of [false, true]) {
    const b = connected();
    b.driver.frame("sched-cycle", askedFor(1));
    b.words.length = 0;
    let times = 0;
    b.driver.leave(() => times++);
    assert.deepEqual(b.words, ["sched-leaving {}"]);
    if (!late) b.driver.frame("sched-verdicts", { cycle: 1, verdicts: [{ ok: true }] });
    b.clock.now_ms += 10_000;
    b.clock.ring();
    assert.deepEqual(kinds(b), ["sched-leaving", ...(late ? [] : ["sched-cycle-end"]), "stop", "close"]);
    assert.equal(times, 1);
  }
});

test("a connection with a frame that is not understood, or with a gap, is given up once, and nothing that follows counts", () => {
  const broken = { "a frame that is none": { revision: "x" }, "a gap in revisions": { revision: 9, changes: [] } };
  for (const [what, delta] of Object.entries(broken)) {
    const b = connected();
    b.driver.frame("sched-delta", delta);
    b.driver.frame("sched-delta", delta);
    b.driver.frame("sched-cycle", askedFor(1));
    assert.deepEqual(b.words, ["reconnect broken"], what);
    b.driver.lost("the server closed the connection");
    connect(b);
    b.words.length = 0;
    b.driver.frame("sched-cycle", askedFor(2));
    assert.deepEqual(kinds(b), ["sched-decisions"], what);
  }
});

test("of what waited for the end of a cycle, nothing counts after a gap in revisions", () => {
  const b = connected();
  b.driver.frame("sched-cycle", askedFor(1));
  b.driver.frame("sched-delta", { revision: 9, changes: [] });
  b.driver.frame("sched-cycle", askedFor(2));
  b.words.length = 0;
  b.driver.frame("sched-verdicts", { cycle: 1, verdicts: [{ ok: true }] });
  assert.deepEqual(kinds(b), ["sched-cycle-end", "reconnect"]);
});
