import assert from "node:assert/strict";
import { test } from "node:test";
import { BackendError } from "#backends/contract/fault.ts";
import { parseOrderRecord, runnerOfEnviron } from "#backends/local/answer.ts";
import { localFault } from "#backends/local/faults.ts";
import { localOptions } from "#backends/local/options.ts";
import { amountsFor, SINGLE, startable, sumOf } from "#backends/local/request.ts";
import { birthOfStat } from "#backends/shell/processes.ts";
import { request } from "../order.ts";

const CAPACITY = { ncpus: 4, mem: 8_000_000, lic: 2 };

test("L2: a request is impossible if this machine can never meet it, and the text says what to do", () => {
  const rows: readonly (readonly [parts: Parameters<typeof request>[0], says: RegExp | null])[] = [
    [{ ncpus: 4 }, null],
    [{ ncpus: 5 }, /5 of ncpus wanted, 4 there/],
    [{ mem_kb: 8_000_001 }, /mem wanted/],
    [{ tmp_kb: 10 ** 12 }, null],
    [{ resources: { lic: 2 } }, null],
    [{ resources: { lic: 3 } }, /3 of lic/],
    [{ resources: { gpus: 1 } }, /resources_available\.gpus=N/],
    [{ resources: { lic: "blue" } }, /is no number/],
    [{ options: { partition: "main" } }, /option partition/],
  ];
  for (const [parts, says] of rows) {
    const ask = () => amountsFor(request(parts), CAPACITY);
    if (says === null) assert.doesNotThrow(ask);
    else assert.throws(ask, (error) => error instanceof BackendError && error.kind === "impossible" && says.test(error.message));
  }
});

test("L2: a diverted request is cut to the capacity, and takes the single unit if something cannot be mapped", () => {
  assert.deepEqual(amountsFor(request({ ncpus: 2, diverted: true }), CAPACITY), { ncpus: 2 });
  assert.deepEqual(amountsFor(request({ ncpus: 64, diverted: true }), CAPACITY), { ncpus: 4, [SINGLE]: 1 });
  assert.deepEqual(amountsFor(request({ resources: { gpus: 1 }, diverted: true }), CAPACITY), { ncpus: 1, [SINGLE]: 1 });
  assert.deepEqual(amountsFor(request({ options: { qos: "fast" }, diverted: true }), CAPACITY), { ncpus: 1, [SINGLE]: 1 });
});

test("L1: what starts fits, by priority and then by size", () => {
  const waiting = (rows: readonly (readonly [name: string, ncpus: number, priority: number])[]) =>
    rows.map(([item, ncpus, priority]) => ({ item, amounts: { ncpus }, priority }));
  const rows: readonly (readonly [list: Parameters<typeof waiting>[0], used: number, starts: string])[] = [
    [
      [
        ["a", 1, 0],
        ["b", 3, 0],
        ["c", 1, 0],
      ],
      0,
      "ba",
    ],
    [
      [
        ["a", 1, 0],
        ["b", 1, 5],
      ],
      0,
      "ba",
    ],
    [
      [
        ["a", 4, 0],
        ["b", 1, 0],
      ],
      1,
      "b",
    ],
    [
      [
        ["a", 1, 0],
        ["b", 1, 0],
        ["c", 1, 0],
      ],
      2,
      "ab",
    ],
    [
      [
        ["a", 2, 9],
        ["b", 4, 10],
      ],
      0,
      "b",
    ],
    [[], 0, ""],
  ];
  for (const [list, ncpus, starts] of rows)
    assert.equal(startable(waiting(list), CAPACITY, { ncpus }).join(""), starts, JSON.stringify(list));
  const singles = ["a", "b"].map((item) => ({ item, amounts: { ncpus: 1, [SINGLE]: 1 }, priority: 0 }));
  assert.deepEqual(startable(singles, CAPACITY, {}), ["a"]);
  assert.deepEqual(startable(singles, CAPACITY, { [SINGLE]: 1 }), []);
  assert.deepEqual(sumOf([{ ncpus: 1 }, { ncpus: 2, lic: 1 }]), { ncpus: 3, lic: 1 });
});

test("the machine's processors and memory are the capacity unless the site says otherwise", () => {
  const settings = { name: "l", type: "local", complex: "k", user: "me", state_dir: "/s", attributes: {} } as const;
  assert.deepEqual(localOptions(settings, { ncpus: 8, mem_kb: 100 }).capacity, { ncpus: 8, mem: 100 });
  const given = { ...settings, attributes: { resources_available: { ncpus: 2, lic: 1 } } };
  assert.deepEqual(localOptions(given, { ncpus: 8, mem_kb: 100 }).capacity, { ncpus: 2, mem: 100, lic: 1 });
});

test("errors of the system that pass are transient, others need a person", () => {
  const kind = (code: string) => localFault(Object.assign(new Error(code), { code })).kind;
  assert.deepEqual(["EAGAIN", "ENOMEM", "ENOENT", "EACCES"].map(kind), ["transient", "transient", "configuration", "configuration"]);
});

test("a runner is known by the environment of its process", () => {
  const environ = (...entries: string[]) => `${entries.join("\0")}\0`;
  const rows: readonly (readonly [text: string, found: object | null])[] = [
    [environ("A=1", "PARTITA_RUNNER_TAG=k.b.7", "PARTITA_RUNNER_INDEX=2", "X="), { tag: "k.b.7", index: 2 }],
    [environ("PARTITA_RUNNER_TAG=k.b.7"), null],
    [environ("PARTITA_RUNNER_TAG=../x", "PARTITA_RUNNER_INDEX=2"), null],
    [environ("PARTITA_RUNNER_TAG=k.b.7", "PARTITA_RUNNER_INDEX=-1"), null],
    [environ("Z=PARTITA_RUNNER_TAG=k.b.7", "PARTITA_RUNNER_INDEX=2"), null],
    ["", null],
  ];
  for (const [text, found] of rows) assert.deepEqual(runnerOfEnviron(text), found, JSON.stringify(text));
});

test("the birth of a process is read although the program's name has brackets; zombies have ended", () => {
  const stat = (name: string, state: string) => `77 (${name}) ${state} 1 77 77 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0`;
  assert.equal(birthOfStat(stat("sleep", "S")), 4711);
  assert.equal(birthOfStat(stat("a) R 1 (b", "R")), 4711);
  assert.equal(birthOfStat(stat("sleep", "Z")), null);
  assert.equal(birthOfStat(""), null);
});

test("a record of an order is checked when it is read", () => {
  const record = {
    tag: "k.b.1",
    owner: null,
    argv: ["/bin/true"],
    env: {},
    amounts: { ncpus: 1 },
    walltime_s: 60,
    wish: { start_s: null, priority: 0 },
    runners: [{ state: "running", process: { pid: 77, birth: 4711, boot: "b" } }],
  };
  assert.deepEqual(parseOrderRecord(JSON.stringify(record)), record);
  for (const wrong of [
    { tag: "../../etc" },
    { argv: [] },
    { runners: [{ state: "gone", process: null }] },
    { runners: [{ state: "running", process: { pid: 1, birth: 0, boot: "" } }] },
  ])
    assert.throws(() => parseOrderRecord(JSON.stringify({ ...record, ...wrong })), JSON.stringify(wrong));
  assert.throws(() => parseOrderRecord("{"));
});
