// Campaign files: what they may say, how it is read, and where a fault is shown.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type ClusterFacts, campaignOf, type Jdl, type JdlOptions, jdlFaultText, parseJdl } from "#grid/jdl/jdl.ts";
import { parameterAt } from "#grid/jdl/parameters.ts";
import type { ClusterType } from "#grid/jdl/resources.ts";

const facts = (name: string, type: ClusterType, more: Partial<ClusterFacts> = {}): [string, ClusterFacts] => [
  name,
  { ...{ name, type, default_resources: null, resource_unit: "resource_id" }, ...more },
];
const CLUSTERS = new Map([
  facts("here", "partita"),
  facts("luke", "oar"),
  facts("sn", "slurm"),
  facts("big", "pbs", { default_resources: "2:ncpus=8" }),
]);

function read(file: unknown, options?: JdlOptions): Jdl {
  const result = parseJdl(typeof file === "string" ? file : JSON.stringify(file), CLUSTERS, options);
  assert.ok("jdl" in result, JSON.stringify(result));
  return result.jdl;
}

function faults(file: unknown, options?: JdlOptions): string[] {
  const result = parseJdl(typeof file === "string" ? file : JSON.stringify(file), CLUSTERS, options);
  assert.ok("faults" in result, "the file should be refused");
  return result.faults.map((fault) => jdlFaultText(fault, "c.json"));
}

const base = { name: "c", nb_jobs: 3, exec_file: "./run.sh", clusters: { here: {} } };

test("a section of a cluster has precedence over the top of the file", () => {
  const { clusters } = read({
    ...base,
    walltime: "00:10:00",
    max_jobs: 5,
    prologue: ["mkdir -p 'a b'", "touch x"],
    clusters: {
      here: { walltime: 90, exec_file: "sh -c 'echo \"$1\"' x" },
      luke: { type: "normal", properties: "gpu='YES'", cluster_job_type: "besteffort" },
    },
  });
  const [here, luke] = [...clusters.values()];
  assert.deepEqual([here?.walltime_s, here?.max_jobs, here?.exec, here?.best_effort], [90, 5, ["sh", "-c", 'echo "$1"', "x"], true]);
  assert.deepEqual(
    [luke?.walltime_s, luke?.exec, luke?.best_effort, luke?.properties, luke?.job_type],
    [600, ["./run.sh"], false, "gpu='YES'", "besteffort"],
  );
  assert.deepEqual(here?.prologue, [
    ["mkdir", "-p", "a b"],
    ["touch", "x"],
  ]);
  assert.deepEqual([...clusters.keys()], ["here", "luke"]);
});

test("parameters come from a count, a list, or a file that the command reads", () => {
  const counted = read(base).source;
  assert.ok(counted.kind === "given");
  assert.deepEqual([counted.parameters.count, parameterAt(counted.parameters, 2)], [3, "2"]);
  const { nb_jobs: _, ...rest } = base;
  const listed = read({ ...rest, params: ["a 1", "b 2"] }).source;
  assert.ok(listed.kind === "given");
  assert.equal(parameterAt(listed.parameters, 1), "b 2");
  assert.deepEqual(read({ ...rest, param_file: "p.txt" }).source, { kind: "file", path: "p.txt" });
});

test("the type of a campaign: the command has precedence over the file", () => {
  assert.equal(read(base).kind, "default");
  assert.equal(read({ ...base, campaign_type: "test" }).kind, "test");
  assert.equal(read({ ...base, test_mode: true }).kind, "test");
  assert.equal(read({ ...base, campaign_type: "test" }, { kind: "default" }).kind, "default");
});

test("options of checkpoints, copies, errors and inputs", () => {
  const jdl = read({
    ...base,
    checkpointing: { signal: "SIGUSR1", cost: 30, mtbf: "10:00:00", data: "everywhere" },
    duplication: { late_factor: 2.5 },
    error_budget: { count: 9 },
    canary: false,
    inputs: [{ file: "~/data/{1}.bin", bytes: 1e9 }],
  });
  assert.deepEqual(jdl.clusters.get("here")?.checkpointing, {
    signal: "SIGUSR1",
    pace: { cost_s: 30, mtbf_s: 36_000 },
    data: "everywhere",
  });
  assert.deepEqual(jdl.duplication, { at_end: true, late_factor: 2.5, copies_max: 2 });
  assert.deepEqual(read(base).duplication, { at_end: false, late_factor: null, copies_max: 1 });
  assert.deepEqual([jdl.error_budget, jdl.canary], [{ count: 9, percent: 0 }, false]);
  assert.deepEqual(jdl.inputs, [{ file: "~/data/{1}.bin", to: null, bytes: 1e9 }]);
});

test("the planner sees cpus, walltime and max_jobs of each cluster", () => {
  const campaign = campaignOf(7, "anna", read({ ...base, clusters: { luke: { select: "2:ncpus=4", max_jobs: 3 }, big: {} } }));
  assert.deepEqual(
    [...campaign.clusters],
    [
      ["luke", { resources: 8, walltime_s: 3600, jobs_max: 3 }],
      ["big", { resources: 16, walltime_s: 3600, jobs_max: null }],
    ],
  );
});

/** A file, or keys beside those of base, and what is said about it. */
const REFUSED: readonly [what: string, file: unknown, says: readonly string[]][] = [
  ["text that is not JSON", '{\n  "name": "c",\n  "nb_jobs" 3\n}', ['c.json:3:13: a colon is expected in place of "3"']],
  ["a trailing comma", '{"name":"c",}', ['c.json:1:13: a key in double quotes is expected in place of "}"']],
  ["an empty file", "", ["c.json:1:1: a value is expected in place of the end of the text"]],
  ["text after the object", "{} {}", ['c.json:1:4: "{" after the end of the object']],
  ["a key that stands twice", '{"name":"a",\n"name":"b"}', ['c.json:2:1: the key "name" stands twice in one object']],
  ["a text without its end", '{"name":"a', ["c.json:1:9: a text without its closing double quote"]],
  ["a list in place of an object", "[]", ["c.json:1:1: an object is expected, not an empty list"]],
  ["single quotes", "{'name': 1}", ['c.json:1:2: a key in double quotes is expected in place of "\'"']],
  ["deep nesting", "[".repeat(100), ["c.json:1:34: values are nested more than 32 deep"]],
  [
    "several faults, each with its place",
    '{ "nb_jobs": 0,\n  "exec_file": "x",\n  "clusters": { "here": { "walltime": "soon" } } }',
    [
      "c.json:1:14: nb_jobs: a whole number from 1 to 100000000 is expected, not 0",
      'c.json:3:39: clusters.here.walltime: a duration is expected, HH:MM:SS or a number of seconds, not "soon"',
      "c.json:1:1: name: this key is missing",
    ],
  ],
  ["an unknown key", { wall_time: 3 }, ["c.json:1:71: wall_time: there is no such key; is walltime meant?"]],
  [
    "dependencies",
    { dependencies: [] },
    ["c.json:1:71: dependencies: jobs of a campaign do not depend on other jobs; submit a second campaign when the first has ended"],
  ],
  [
    "staging",
    { stage_in: [] },
    ["c.json:1:71: stage_in: campaigns do not copy files; name the files of each job in inputs, or copy files in a prologue"],
  ],
  ["desktop computing", { jobs_type: "desktop_computing" }, ['c.json:1:83: jobs_type: normal is expected, not "desktop_computing"']],
  ["an unknown cluster", { clusters: { there: {} } }, ["c.json:1:68: clusters.there: there is no cluster there in the grid"]],
  ["no cluster", { clusters: {} }, ["c.json:1:59: clusters: an object that is not empty is expected, not an empty object"]],
  ["two sources of parameters", { params: ["a"] }, ["c.json:1:23: nb_jobs: params and nb_jobs are given; only one of them may be"]],
  ["no parameters", { nb_jobs: undefined }, ["c.json:1:1: the parameters are missing: give param_file, params or nb_jobs"]],
  [
    "a parameter that repeats",
    { nb_jobs: undefined, params: ["a 1", "b", " a 1 "] },
    ['c.json:1:79: params.2: the parameter "a 1" stands here again'],
  ],
  [
    "a parameter of two lines",
    { nb_jobs: undefined, params: ["a\nb"] },
    ['c.json:1:69: params.0: a parameter on one line that is not empty is expected, not "a\\nb"'],
  ],
  ["a quote that is not closed", { exec_file: "sh -c 'x" }, ["c.json:1:37: clusters.here.exec_file: a quote is not closed"]],
  ["no exec_file", { exec_file: undefined }, ["c.json:1:44: clusters.here: exec_file is missing, here and at the top"]],
  [
    "a select that cannot be read",
    { select: "2:ncpus" },
    ['c.json:1:80: clusters.here.select: neither a select (2:ncpus=4) nor a hierarchy of resources (/nodes=2/core=4): "2:ncpus"'],
  ],
  [
    "two names of resources",
    { select: "1", resources: "1" },
    ["c.json:1:80: clusters.here.select: resources and select are two names of one key; only one of them may be given"],
  ],
  [
    "resources that a cluster does not know",
    { clusters: { luke: { select: "1:ncpus=2:mem=1gb" } } },
    [
      "c.json:1:77: clusters.luke.select: cannot be asked for on luke (oar): the resource mem of a chunk has no equal in a hierarchy of resources",
    ],
  ],
  [
    "an empty pace of checkpoints",
    { checkpointing: { cost: 3 } },
    ["c.json:1:87: clusters.here.checkpointing: either period or both cost and mtbf are expected"],
  ],
  ["a walltime of nothing", { walltime: "0:0" }, ["c.json:1:82: clusters.here.walltime: a duration of at least a second is expected"]],
];

for (const [what, file, says] of REFUSED)
  test(`refused: ${what}`, () => assert.deepEqual(faults(typeof file === "object" && file !== null ? { ...base, ...file } : file), says));

test("limits on parameters, length and number of faults are obeyed", () => {
  assert.match(faults({ ...base, nb_jobs: 11 }, { limits: { parameters_max: 10 } })[0] ?? "", /nb_jobs: more than 10 parameters/);
  assert.match(faults(base, { limits: { jdl_characters_max: 10 } })[0] ?? "", /more than 10 characters/);
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`x${at}`, 1]));
  assert.equal(faults({ ...base, ...many }).length, 50);
});
