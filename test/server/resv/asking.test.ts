// Which schedulers are asked about a reservation, and the effects of their answers.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addHost,
  addSched,
  addVnode,
  commandsTo,
  cycle,
  type Harness,
  harness,
  outcome,
  ROOT,
  restart,
  schedHello,
  schedLost,
} from "../harness.ts";
import { answerResv, mirrored, resvAttrs, resvState, rsub } from "./rsub.ts";

const WORDS = "start=3600 walltime=600 select=1:ncpus=4";

/** Three schedulers: the default one with n1, s1 with v1 of p1, s2 with v2 of p2; links 1, 2, 3. */
function complex(): Harness {
  const h = harness();
  addHost(h, "n1", { ncpus: 8 });
  for (const [n, name] of [
    [1, "s1"],
    [2, "s2"],
  ] as const) {
    addSched(h, name, { partition: [`p${n}`] });
    addVnode(h, `v${n}`, { partition: `p${n}`, resources_available: { ncpus: 8 } });
  }
  schedHello(h, 1);
  schedHello(h, 2, "s1");
  schedHello(h, 3, "s2");
  for (const link of [1, 2, 3]) cycle(h, link);
  return h;
}

const asked = (h: Harness, id: string): number[] => [1, 2, 3].filter((link) => mirrored(h, link, id)?.ask !== undefined);
const setSched = (h: Harness, name: string, value: string): string =>
  outcome(h, ROOT, { kind: "manager", verb: "set", object: "sched", name, attrs: [{ name: "scheduling", op: "=", value }] });

test("without a partition all are asked, at once; whoever is switched off is not, until he is switched on", () => {
  const h = complex();
  setSched(h, "s1", "False");
  const before = [1, 2, 3].map((link) => commandsTo(h, link).length);
  const id = rsub(h, WORDS);
  assert.deepEqual(asked(h, id), [1, 3]);
  assert.deepEqual(
    [1, 2, 3].map((link, at) => commandsTo(h, link).length - (before[at] as number)),
    [1, 0, 1],
  );
  setSched(h, "s1", "True");
  assert.deepEqual(asked(h, id), [1, 2, 3]);
});

test("the first that confirms has it; the answer of another comes too late", () => {
  const h = complex();
  const id = rsub(h, WORDS);
  assert.deepEqual(answerResv(h, 3, id, "(v2:ncpus=4)", "p2"), { ok: true });
  assert.deepEqual([resvState(h, id), resvAttrs(h, id).partition], ["CO 2", "p2"]);
  assert.deepEqual(asked(h, id), []);
  const [late] = cycle(h, 2, [
    {
      kind: "confirm-resv",
      resv: id,
      partition: "p1",
      places: ["(v1:ncpus=4)"],
      occurrences: [{ start_s: resvAttrs(h, id).reserve_start ?? 0, end_s: resvAttrs(h, id).reserve_end ?? 0, place: 0 }],
    },
  ]);
  assert.deepEqual(late, { ok: false, code: 15016, text: "Request invalid for state of job" });
});

test("denied when all who could answer have refused; who goes away is not waited for", () => {
  const h = complex();
  const id = rsub(h, WORDS);
  answerResv(h, 1, id, null);
  assert.deepEqual(asked(h, id), [2, 3]);
  answerResv(h, 2, id, null);
  assert.equal(resvState(h, id), "UN 1");
  // It was told to end, so nobody starts it again.
  h.core.sched(3, "sched-leaving", {}, h.now_ms);
  schedLost(h, 3);
  assert.equal(resvState(h, id), "gone");
});

test("a scheduler that crashed comes back and is waited for", () => {
  const h = complex();
  const id = rsub(h, WORDS);
  answerResv(h, 1, id, null);
  answerResv(h, 2, id, null);
  schedLost(h, 3);
  assert.equal(resvState(h, id), "UN 1");
  schedHello(h, 4, "s2");
  answerResv(h, 4, id, "(v2:ncpus=4)", "p2");
  assert.equal(resvState(h, id), "CO 2");
});

test("nobody there: unconfirmed until somebody comes", () => {
  const h = harness();
  addHost(h, "n1", { ncpus: 8 });
  const id = rsub(h, WORDS);
  assert.equal(resvState(h, id), "UN 1");
  schedHello(h, 1);
  answerResv(h, 1, id, "(n1:ncpus=4)");
  assert.equal(resvState(h, id), "CO 2");
});

test("with a partition only its scheduler is asked, and waited for while it is down, across a restart of the server too", () => {
  const h = complex();
  h.core.sched(3, "sched-leaving", {}, h.now_ms);
  schedLost(h, 3);
  const id = rsub(h, `${WORDS} partition=p2`);
  assert.deepEqual(asked(h, id), []);
  assert.equal(resvState(h, id), "UN 1");
  restart(h);
  schedHello(h, 11);
  assert.equal(mirrored(h, 11, id)?.ask, undefined);
  assert.equal(resvState(h, id), "UN 1");
  schedHello(h, 13, "s2");
  const refusal = answerResv(h, 13, id, "(n1:ncpus=4)", "p2");
  assert.equal(refusal.ok, false);
  assert.deepEqual(answerResv(h, 13, id, "(v2:ncpus=4)", "p2"), { ok: true });
  assert.equal(resvState(h, id), "CO 2");
});

test("what cannot be promised is refused: other times, vnodes of others, vnodes that take no reservations, and it is not tried for ever", () => {
  const h = complex();
  const id = rsub(h, WORDS);
  const start_s = resvAttrs(h, id).reserve_start ?? 0;
  const confirm = (places: string[], shift_s = 0, partition = "pbs-default") =>
    cycle(h, 1, [
      {
        kind: "confirm-resv",
        resv: id,
        partition,
        places,
        occurrences: [{ start_s: start_s + shift_s, end_s: start_s + shift_s + 600, place: 0 }],
      },
    ])[0];
  const texts = [
    confirm(["(n1:ncpus=4)"], 1),
    confirm([]),
    confirm(["(v1:ncpus=4)"]),
    confirm(["(n1:ncpus=4)"], 0, "p1"),
    confirm(["(n9:ncpus=4)"]),
  ];
  assert.deepEqual(
    texts.map((verdict) => (verdict?.ok === false ? verdict.text.replace("Resource temporarily unavailable: ", "") : "ok")),
    [
      "its times are others",
      "an occurrence has no place",
      "vnode v1 is in another partition",
      "the partition is another scheduler's",
      "Unknown node  n9",
    ],
  );
  // Each of the five requests gave another cycle. The next request counts as the scheduler's refusal, and a last cycle
  // considers jobs.
  assert.deepEqual(asked(h, id), [1, 2, 3]);
  const cycles = commandsTo(h, 1).length;
  confirm(["(v1:ncpus=4)"]);
  assert.equal(commandsTo(h, 1).length, cycles + 1);
  assert.deepEqual([resvState(h, id), asked(h, id)], ["UN 1", [2, 3]]);
});
