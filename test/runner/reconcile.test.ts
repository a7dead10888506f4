// What a backend shows, beside what the server has recorded (src/runner/reconcile.ts).

import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunnerSighting } from "#backends/contract/backend.ts";
import type { RunnerWork } from "#protocol/runner-link.ts";
import { LEAVE_MS, type Reconciled, type ReconcileInput, reconcile } from "#runner/reconcile.ts";

const work = (name: string, more: Partial<RunnerWork> = {}): RunnerWork => {
  const [backend = "", serial = "0", index = "0"] = name.split("-");
  const bucket = { key: "b", owner: "a", queue: "q", project: "p", ncpus: 1, mem_kb: 0, tmp_kb: 0, walltime_s: null, resources: {} };
  return { name, backend, serial: Number(serial), index: Number(index), bucket, doing: "asked", asked_s: 0, life_s: 60, ...more };
};
const sighting = (serial: number, index: number, more: Partial<RunnerSighting> = {}): RunnerSighting => ({
  tag: `c.sl.${serial}`,
  index,
  id: `${1000 + serial}_${index}`,
  state: "running",
  reason: "",
  host: null,
  ending: null,
  fault: null,
  user: null,
  ...more,
});
const of = (runners: readonly RunnerWork[], sightings: readonly RunnerSighting[], more: Partial<ReconcileInput> = {}): Reconciled =>
  reconcile({
    runners,
    sightings,
    tagOf: (serial) => `c.sl.${serial}`,
    submitting: new Set(),
    known_tags: new Set(),
    strangers: new Map(),
    now_ms: 0,
    ...more,
  });

test("reconcile: ids are told once, reasons of waiting runners are passed on", () => {
  const found = of(
    [work("sl-1-0"), work("sl-1-1", { remote: "1001_1" }), work("sl-2-0")],
    [
      sighting(1, 0),
      sighting(1, 1),
      sighting(2, 0, { state: "queued", reason: "Priority", fault: { kind: "configuration", text: "(PartitionTimeLimit)" } }),
    ],
  );
  assert.deepEqual(found.remotes, { "sl-1-0": "1001_0", "sl-2-0": "1002_0" });
  assert.deepEqual(found.reasons, { "sl-2-0": "(PartitionTimeLimit)" });
  assert.deepEqual([found.gone, found.cancel, found.release], [[], [], []]);
});

test("reconcile: a runner that the backend does not show is gone, unless it is connected or being submitted", () => {
  const runners = [
    work("sl-1-0"),
    work("sl-1-1", { doing: "busy" }),
    work("sl-1-2", { doing: "busy", away: true }),
    work("sl-2-0"),
    work("sl-3-0"),
  ];
  const sightings = [sighting(3, 0, { state: "ended", ending: "error", reason: "OUT_OF_MEMORY" })];
  const { gone } = of(runners, sightings, { submitting: new Set(["c.sl.2"]) });
  assert.deepEqual(gone, [
    { name: "sl-1-0", why: "the backend does not show it" },
    { name: "sl-1-2", why: "the backend does not show it" },
    { name: "sl-3-0", why: "it failed: OUT_OF_MEMORY" },
  ]);
});

test("reconcile: a runner without a record is cancelled after a while, and a tag without anything is released", () => {
  const first = of([], [sighting(1, 0), sighting(2, 0, { state: "ended" })], { known_tags: new Set(["c.sl.9"]) });
  assert.deepEqual([first.cancel, first.release], [[], ["c.sl.9", "c.sl.2"]]);
  const later = of([], [sighting(1, 0)], { strangers: first.strangers, now_ms: LEAVE_MS });
  assert.deepEqual(
    later.cancel.map(({ id }) => id),
    ["1001_0"],
  );
  const recorded = of([work("sl-1-0")], [sighting(1, 0)], { strangers: first.strangers, now_ms: LEAVE_MS });
  assert.deepEqual([recorded.cancel, recorded.release], [[], []]);
  const submitting = of([], [sighting(1, 0)], { submitting: new Set(["c.sl.1"]), strangers: first.strangers, now_ms: LEAVE_MS });
  assert.deepEqual([submitting.cancel, submitting.release], [[], []]);
});
