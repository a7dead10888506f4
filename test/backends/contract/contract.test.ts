import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { RunnerSighting } from "#backends/contract/backend.ts";
import { BACKOFF_FIRST_MS, BACKOFF_MAX_MS, pauseAfter } from "#backends/contract/backoff.ts";
import { BackendError, cleanText, FAULT_KINDS, FAULT_TEXT_MAX, kindOf } from "#backends/contract/fault.ts";
import { amountOf, amountsSetting, flagSetting, numberSetting, textSetting, timeoutOf } from "#backends/contract/settings.ts";
import { byJobNumber, withoutSurplus } from "#backends/contract/sightings.ts";
import { isTagOf, makeTag, parseTag, TAG_MAX } from "#backends/contract/tag.ts";
import { BACKEND_OPTION_ROWS } from "#model/tables/backend-options.ts";

test("T2: a tag gives back its parts, and other texts are no tags", () => {
  const parts = { complex: "k3x", backend: "big-slurm_2", serial: 1234567 };
  assert.deepEqual(parseTag(makeTag(parts)), parts);
  assert.equal(isTagOf("k3x.sl.7", { complex: "k3x", backend: "sl" }), true);
  assert.equal(isTagOf("k3x.sl.7", { complex: "k3y", backend: "sl" }), false);
  assert.equal(isTagOf("k3x.sl2.7", { complex: "k3x", backend: "sl" }), false);
  for (const text of [
    "",
    "k3x.sl",
    "k3x.sl.07",
    "k3x.sl.-1",
    "K3x.sl.1",
    "k3x.s l.1",
    "k3x.sl.1\n",
    "k3x..1",
    `k.${"b".repeat(40)}.1`,
    "k.sl.9999999999999999",
  ])
    assert.equal(parseTag(text), null, JSON.stringify(text));
  assert.throws(() => makeTag({ complex: "Up", backend: "sl", serial: 1 }), RangeError);
  assert.ok(makeTag({ complex: "a".repeat(16), backend: "b".repeat(31), serial: 999_999_999_999_999 }).length <= TAG_MAX);
});

test("F1: a text of another program becomes one clean line, bounded, without secrets", () => {
  assert.equal(cleanText("sbatch: error:\n\tno\u001b[31m way\u0000\r\n"), "sbatch: error: no [31m way");
  assert.equal(cleanText("token abc123 refused", ["abc123", ""]), "token *** refused");
  assert.equal(cleanText("a\u202egnp.exe"), "a gnp.exe");
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 3000 }), (text) => {
      const clean = cleanText(text);
      assert.ok(clean.length <= FAULT_TEXT_MAX && !["\n", "\r", "\0", "\u001b"].some((each) => clean.includes(each)));
      assert.equal(cleanText(clean), clean);
    }),
  );
});

test("the first rule that matches gives the kind", () => {
  const rules = [
    [/quota/i, "limit"],
    [/quota|down/i, "transient"],
  ] as const;
  assert.equal(kindOf("Quota exceeded", rules, "configuration"), "limit");
  assert.equal(kindOf("is down", rules, "configuration"), "transient");
  assert.equal(kindOf("what?", rules, "configuration"), "configuration");
});

test("K1: every kind of fault is followed by another attempt after at most a minute", () => {
  for (const kind of FAULT_KINDS)
    for (const failures of [1, 2, 5, 100, 1_000_000]) {
      const pause = pauseAfter(kind, failures, 1);
      assert.ok(pause >= BACKOFF_FIRST_MS && pause <= BACKOFF_MAX_MS, `${kind} ${failures}: ${pause}`);
    }
  assert.equal(pauseAfter("transient", 1, 1), BACKOFF_FIRST_MS);
  assert.equal(pauseAfter("transient", 3, 1), 4 * BACKOFF_FIRST_MS);
  assert.equal(pauseAfter("impossible", 1, 1), BACKOFF_MAX_MS);
  assert.ok(pauseAfter("limit", 4, 0) < pauseAfter("limit", 4, 1), "the random share matters");
});

test("settings have the type of their attribute, and unset ones what the table assumes", () => {
  assert.equal(textSetting({}, "flavors"), ".*");
  assert.equal(textSetting({}, "bin"), null);
  assert.equal(numberSetting({ max_spawns: 3 }, "max_spawns"), 3);
  assert.equal(timeoutOf({}), 30_000);
  assert.equal(timeoutOf({ command_timeout: 5 }), 5000);
  assert.equal(flagSetting({}, "use_nice"), false);
  assert.equal(flagSetting({ use_nice: true }, "use_nice"), true);
  const isConfiguration = (error: unknown): boolean => error instanceof BackendError && error.kind === "configuration";
  assert.throws(() => textSetting({ bin: 3 }, "bin"), isConfiguration);
  assert.throws(() => numberSetting({ max_spawns: "3" }, "max_spawns"), isConfiguration);
  assert.throws(() => amountsSetting({ resources_available: { mem: "much" } }, "resources_available"), isConfiguration);
  assert.deepEqual(amountsSetting({ resources_available: { ncpus: 4, mem: "2gb", lic: "3" } }, "resources_available"), {
    ncpus: 4,
    mem: 2_097_152,
    lic: 3,
  });
});

test("amounts are numbers, or sizes in kilobytes", () => {
  const rows: readonly (readonly [value: unknown, amount: number | null])[] = [
    [3, 3],
    ["4", 4],
    ["1.5", 1.5],
    ["2mb", 2048],
    ["1025b", 2],
    [true, 1],
    ["many", null],
    [Number.NaN, null],
    [undefined, null],
  ];
  for (const [value, amount] of rows) assert.equal(amountOf(value), amount, String(value));
});

test("the checks of the attributes refuse what could become an option, a second word or a slow expression", () => {
  const check = (name: string, text: string): boolean => BACKEND_OPTION_ROWS.find(([row]) => row === name)?.[5]?.check?.(text) ?? false;
  const rows: readonly (readonly [name: string, text: string, fine: boolean])[] = [
    ["remote_queue", "main.q@@allhosts", true],
    ["remote_queue", "-p", false],
    ["remote_queue", "a b", false],
    ["account", "p$(id)", false],
    ["bin", "/opt/sge/bin/lx-amd64", true],
    ["bin", "opt/sge", false],
    ["cpu_resource", "slots_r", true],
    ["cpu_resource", "a=1,b", false],
    ["url", "http://127.0.0.1:25000/v3", true],
    ["url", "unix:/run/x.sock", false],
    ["url", "http://user:secret@host/", false],
    ["url", "file:///etc/passwd", false],
    ["time_origin", "2023-01-01 00:00:00", true],
    ["time_origin", "2023-01-01 00:00 +02:00", true],
    ["time_origin", "yesterday", false],
    ["flavors", "m1\\..*", true],
    ["flavors", ".*", true],
    ["flavors", "m1[.]small|m2[.].*", true],
    ["flavors", "(a*)*b", false],
    ["flavors", "a**", false],
    ["flavors", "*", false],
    ["flavors", ".*.*.*.*.*x", false],
    ["repo_key", "repo:", true],
    ["repo_key", "a b", false],
  ];
  for (const [name, text, fine] of rows) assert.equal(check(name, text), fine, `${name}=${text}`);
  for (const text of ["m1\\..*", ".*", "m1[.]small|m2[.].*"]) assert.doesNotThrow(() => new RegExp(text));
});

test("of two submissions of one runner the first is kept, but never one that has ended in place of one that lives", () => {
  const sighting = (id: string, state: RunnerSighting["state"]): RunnerSighting => {
    const common = { reason: "", user: "u", host: null, ending: null, fault: null } as const;
    return { tag: "k.sl.1", index: 0, id, state, ...common };
  };
  const ids = (...all: readonly RunnerSighting[]): readonly string[] => {
    const { kept, surplus } = withoutSurplus(all, byJobNumber);
    return [kept.map(({ id }) => id).join(","), surplus.map(({ id }) => id).join(",")];
  };
  assert.deepEqual(ids(sighting("12_0", "running"), sighting("7_0", "queued")), ["7_0", "12_0"]);
  assert.deepEqual(ids(sighting("12_0", "running"), sighting("7_0", "ended")), ["12_0", ""]);
  assert.deepEqual(ids(sighting("12_0", "ended"), sighting("7_0", "ended")), ["7_0", ""]);
  assert.deepEqual(ids(sighting("12_0", "running"), sighting("7_0", "ended"), sighting("15_0", "running")), ["12_0", "15_0"]);
});
