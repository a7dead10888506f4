// server_dyn_res: lines of sched_config, answers of programs, and their effects on jobs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { createUniverse, setDynamic } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import { parseSchedConfig } from "#sched/policy/sched-config.ts";
import { dynValue, parseDynRes } from "#sched/shapes/dyn-res.ts";
import { resourceSpace } from "#sched/shapes/resource-space.ts";
import { book, decisionTexts, snapshotOf } from "../world.ts";

test("a line names a resource, a program by its path, and arguments; the last line of a resource counts", () => {
  assert.deepEqual(parseDynRes("lic !/opt/lic  -n 3"), { resource: "lic", program: "/opt/lic", args: ["-n", "3"] });
  assert.deepEqual(parseDynRes(" my_lic-2!/x "), { resource: "my_lic-2", program: "/x", args: [] });
  const { config } = parseSchedConfig(
    'preemptive_sched: False\nserver_dyn_res: "a !/1"\nserver_dyn_res: b !/2 x\nserver_dyn_res: "a !/3"\n',
  );
  assert.deepEqual(
    config.dyn_res.map(({ resource, program, args }) => [resource, program, ...args].join(" ")),
    ["a /3", "b /2 x"],
  );
});

test("the first line is the value, if it fits the resource's type", () => {
  const types = ["long", "float", "size", "boolean", "string", "string_array"];
  const { all } = resourceSpace(types.map((type) => ({ name: type, type, flags: "" })));
  // biome-ignore format: a table
  const table: readonly (readonly [type: string, output: string, value: unknown])[] = [
    ["long",         "5\n7\n",        5],
    ["long",         "  5  ",         5],
    ["long",         "",              null],
    ["long",         "\n5",           null],
    ["long",         "five",          null],
    ["long",         "-1",            null],
    ["float",        "2.5",           2.5],
    ["size",         "2mb",           2048],
    ["size",         "2 mb",          null],
    ["boolean",      "true",          true],
    ["boolean",      "maybe",         null],
    ["string",       "red",           "red"],
    ["string_array", "red,blue",      "red,blue"],
    ["nosuch",       "1",             null],
  ];
  for (const [type, output, value] of table) assert.equal(dynValue(all.get(type), output), value, `${type} ${JSON.stringify(output)}`);
});

test("it replaces what attributes say; with flag q what runs is taken from it, without it only what this cycle gives away", () => {
  const policies = book({ resources: new Set(["ncpus", "lic", "seats"]) });
  const world = {
    nodes: "n ncpus=64",
    jobs: "",
    server: { resources_available: { lic: 1 } },
    assigned: { seats: 3 },
    resources: [
      { name: "lic", type: "long", flags: "" },
      { name: "seats", type: "long", flags: "q" },
    ],
  };
  const template = snapshotOf({ nodes: "n ncpus=64", jobs: "1; 2; 3" }).jobs;
  const jobs = template.map((job, at) => ({ ...job, resources: { ncpus: 1, ...([{ lic: 2 }, { lic: 2 }, { seats: 2 }][at] as object) } }));
  const universe = createUniverse({ ...snapshotOf(world), jobs }, mirrorOptions(policies));
  const go = (): string[] => decisionTexts(cycle(universe, policies, { now_s: 1, command: SCHED_COMMAND.TIME }));
  setDynamic(
    universe,
    new Map([
      ["lic", 3],
      ["seats", 4],
    ]),
  );
  assert.deepEqual(go(), [
    "1=(n:ncpus=1)",
    "2: Not Running: Insufficient amount of server resource: lic (R: 2 A: 1 T: 3)",
    "3: Not Running: Insufficient amount of server resource: seats (R: 2 A: 1 T: 4)",
  ]);
  setDynamic(universe, new Map());
  assert.deepEqual(go()[0], "1: Can Never Run: Insufficient amount of server resource: lic (R: 2 A: 1 T: 1)");
});
