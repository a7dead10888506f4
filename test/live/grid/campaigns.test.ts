// Campaigns over two of our own complexes (docs/campaigns.md): pbs_grid, its commands, and jobs that really run.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";
import { type Grid, numbersIn, startGrid } from "./bed.ts";

let near: Complex;
let far: Complex;
let grid: Grid;

before(async () => {
  [near, far] = await Promise.all([startComplex(), startComplex()]);
  for (const complex of [near, far]) complex.qmgr("set server job_history_enable=True", "set node @default resources_available.ncpus=4");
  grid = startGrid();
  for (const [name, { home }] of Object.entries({ near, far }))
    grid.must("gridclusters", ["--add", name, "--type", "partita", "--conf", join(home, "pbs.conf")]);
});
after(async () => {
  grid?.stop();
  await Promise.all([near?.stop(), far?.stop()]);
});

/** A campaign whose jobs append their parameter to a file and then run these lines of the shell. */
function campaign(name: string, lines: string, more: object = {}): { readonly file: string; readonly jdl: object } {
  const file = join(grid.work, `${name}.out`);
  const script = join(grid.work, `${name}.sh`);
  writeFileSync(script, `echo "$1" >> ${file}\n${lines}\n`);
  const common = { name, exec_file: `/bin/sh ${script}`, exec_directory: grid.work, walltime: "00:05:00", clusters: { near: {}, far: {} } };
  return { file, jdl: { ...common, ...more } };
}

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, at) => at);

test("a campaign over two complexes: each job runs once, on both clusters", async () => {
  const { file, jdl } = campaign("both", "sleep 0.2", { nb_jobs: 60, canary: false });
  const id = grid.submit(jdl);
  const { total_jobs, finished_jobs, clusters } = await grid.untilState(id, "terminated");
  assert.deepEqual([total_jobs, finished_jobs], [60, 60]);
  assert.deepEqual(numbersIn(file), upTo(60));
  assert.ok(clusters.every(({ terminated }) => terminated > 0));
  const jobs = grid.jobs(id);
  assert.equal(jobs.length, 60);
  assert.equal(new Set(jobs.map((job) => job.id)).size, 60);
  assert.ok(jobs.every(({ state, exit_code }) => state === "terminated" && exit_code === 0));
});

test("a job gets its words without a shell, and the variables of CiGri", async () => {
  const out = join(grid.work, "words");
  const exec_file = `/bin/sh -c 'printf "%s\\n" "$@" >> ${out}; env > ${out}.env' x "two words" $HOME`;
  const params = ["a 'b c' $PATH;`id`"];
  const id = grid.submit({ ...campaign("words", "").jdl, exec_file, params });
  await grid.untilState(id, "terminated");
  assert.deepEqual(readFileSync(out, "utf8").split("\n"), ["two words", "$HOME", "a", "b c", "$PATH;`id`", ""]);
  const env = new Map(
    readFileSync(`${out}.env`, "utf8")
      .split("\n")
      .map((line) => [line.split("=")[0], line.slice(line.indexOf("=") + 1)]),
  );
  const [job] = grid.jobs(id);
  const expected = {
    ...{ CIGRI_JOB_ID: String(job?.id), CIGRI_JOBID: String(job?.id), CIGRI_CAMPAIGNID: String(id), CIGRI_CAMPAIGN_ID: String(id) },
    ...{ CIGRI_JOB_NAME: "a", CIGRI_JOBNAME: "a", CIGRI_WORKDIR: grid.work, CIGRI_WORKING_DIRECTORY: grid.work },
    ...{ CIGRI_RESOURCES: "1:ncpus=1", CIGRI_WALLTIME: "00:05:00", CIGRI_WALLTIME_SECONDS: "300", PBS_CAMPAIGN_ID: String(id) },
  };
  for (const [name, value] of Object.entries(expected)) assert.equal(env.get(name), value, name);
  for (const name of ["CIGRI_NODE_FILE", "CIGRI_NODEFILE", "CIGRI_USER"]) assert.notEqual(env.get(name) ?? "", "", name);
});

test("exit codes: 66 and 67 run again, others wait for a decision, and gridevents -f -r runs them again", async () => {
  const once = join(grid.work, "once");
  const lines = `[ -e ${once}.$1 ] && exit 0\n: > ${once}.$1\ncase $1 in 0) exit 66;; 1) exit 67;; 2) exit 3;; esac`;
  const { file, jdl } = campaign("codes", lines, { nb_jobs: 4 });
  const id = grid.submit(jdl);
  await until("an event, and all other jobs done", () => {
    const { finished_jobs, event_jobs } = grid.campaign(id);
    return finished_jobs === 3 && event_jobs === 1;
  });
  assert.equal(grid.campaign(id).state, "in_treatment");
  assert.match(grid.must("gridevents", [String(id)]), /EXIT_ERROR .*exit code 3/);
  grid.must("gridevents", ["-f", "-r", "-c", String(id)]);
  await grid.untilState(id, "terminated");
  assert.deepEqual(numbersIn(file), [0, 0, 1, 1, 2, 2, 3]);
});

test("griddel -p and -r hold and continue a campaign; griddel ends its jobs", async () => {
  const { file, jdl } = campaign("endless", "sleep 1000", { nb_jobs: 100 });
  const id = grid.submit(jdl);
  await until("a job that runs", () => grid.campaign(id).running_jobs > 0);
  grid.must("griddel", ["-p", String(id)]);
  assert.equal(grid.campaign(id).state, "paused");
  grid.must("griddel", ["-r", String(id)]);
  assert.equal(grid.campaign(id).state, "in_treatment");
  grid.must("gridhold", [String(id)]);
  grid.must("gridrls", [String(id)]);
  grid.must("griddel", [String(id)]);
  assert.equal(grid.campaign(id).state, "cancelled");
  await until("no job of the campaign left", () => {
    const { running_jobs, waiting_jobs } = grid.campaign(id);
    return running_jobs + waiting_jobs === 0;
  });
  const live = [near, far].flatMap((complex) => Object.values(complex.jobs()).filter(({ job_state }) => !"FX".includes(job_state)));
  assert.deepEqual(live, []);
  assert.ok(existsSync(file));
});

test("a test campaign behind a default campaign of 10,000 jobs starts as soon as a resource is free", async () => {
  const large = grid.submit(campaign("large", "sleep 0.5", { nb_jobs: 10_000, canary: false }).jdl);
  await until("jobs of the large campaign", () => grid.campaign(large).finished_jobs > 0);
  const probe = grid.submit(campaign("probe", "true", { nb_jobs: 10 }).jdl, "-t", "test");
  const { finished_jobs, clusters } = await grid.untilState(probe, "terminated");
  assert.equal(finished_jobs, 2);
  assert.ok(clusters.every(({ terminated }) => terminated === 1));
  assert.ok(grid.campaign(large).finished_jobs < 1000);
  grid.must("griddel", [String(large)]);
});

test("faults in a campaign file are told with their place; a wrong command line with the usage", () => {
  const file = join(grid.work, "bad.json");
  const refused = (text: string): string => {
    writeFileSync(file, text);
    const { status, stderr } = grid.run("gridsub", [file]);
    assert.equal(status, 1);
    return stderr;
  };
  assert.match(refused('{ "name": "x",\n  "nb_jobs": }'), /bad\.json:2:14: /);
  assert.match(refused('{"name":"x","nb_jobs":1,"exec_file":"/bin/true","clusters":{"nowhere":{}}}'), /no cluster nowhere/);
  assert.match(refused('{"name":"x","params":["a 1","a 1"],"exec_file":"/bin/true","clusters":{"near":{}}}'), /again/);
  for (const [command, ...args] of [
    ["gridsub"],
    ["gridsub", "-x"],
    ["griddel"],
    ["griddel", "x"],
    ["gridstat", "-F", "xml"],
    ["gridclusters", "--add", "a"],
  ]) {
    const { status, stderr } = grid.run(command ?? "", args);
    assert.equal(status, 2, command);
    assert.match(stderr, /Usage: grid/);
  }
  for (const command of ["gridsub", "gridstat", "griddel", "gridhold", "gridrls", "gridevents", "gridclusters"])
    assert.match(grid.must(command, ["--help"]), new RegExp(`^Usage: ${command}`));
  assert.equal(grid.run("gridstat", ["999"]).status, 1);
});
