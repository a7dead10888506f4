// Campaigns over a real Slurm and a complex of our own, in system mode: jobs run as the user of the campaign.

import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { becoming, type Complex, startComplex, until } from "../../complex.ts";
import { type Grid, linesOf, numbersIn, startGrid } from "../../grid/bed.ts";
import { peerEnv, startFreshPeer, stopPeer, whyNoPeer } from "./peer-bed.ts";

const skip = whyNoPeer("slurm") ?? false;

let grid: Grid;
let complex: Complex;
before(async () => {
  if (skip !== false) return;
  startFreshPeer("slurm", { SLURM_NODE_CPUS: "4" });
  complex = await startComplex({ mode: "system" });
  complex.qmgr("set server job_history_enable=True", "set node @default resources_available.ncpus=4");
  grid = startGrid({ system: true });
  chmodSync(grid.work, 0o1777);
  grid.must("gridclusters", ["--add", "sl", "--type", "slurm", "--conf", peerEnv("slurm")["SLURM_CONF"] ?? ""]);
  grid.must("gridclusters", ["--add", "own", "--type", "partita", "--conf", join(complex.home, "pbs.conf")]);
});
after(async () => {
  grid?.stop();
  await complex?.stop();
  if (skip === false) stopPeer("slurm");
});

/** Submits a campaign as the user batch1. */
function submit(jdl: object): number {
  const file = join(grid.work, "campaign.json");
  writeFileSync(file, JSON.stringify(jdl));
  return Number(grid.must("gridsub", [file], becoming("batch1")).trim());
}

const common = (name: string, lines: string) => {
  const script = join(grid.work, `${name}.sh`);
  writeFileSync(script, `${lines}\n`);
  return {
    name,
    exec_file: `/bin/sh ${script}`,
    exec_directory: grid.work,
    walltime: "00:05:00",
    canary: false,
    clusters: { sl: {}, own: {} },
  };
};

test("jobs of 1 and 4 cpus run once, as the user of the campaign, on both systems", { skip }, async () => {
  const out = join(grid.work, "out");
  const users = join(grid.work, "users");
  const lines = `echo "$1" >> ${out}; echo "$(id -un) $(wc -l < "$CIGRI_NODE_FILE")" >> ${users}; sleep 0.3`;
  const small = submit({ ...common("small", lines), nb_jobs: 36 });
  const large = submit({ ...common("large", lines), params: ["100", "101", "102", "103"], resources: "/nodes=1/core=4" });
  const seen = await Promise.all([small, large].map((id) => grid.untilState(id, "terminated")));
  assert.deepEqual(numbersIn(out), [...Array.from({ length: 36 }, (_, at) => at), 100, 101, 102, 103]);
  assert.deepEqual([...new Set(linesOf(users).map((line) => line.split(" ")[0]))], ["batch1"]);
  assert.ok(seen[0]?.clusters.every(({ terminated }) => terminated > 0));
});

test("on Slurm: exit codes, and jobs that are ended", { skip }, async () => {
  const id = submit({ ...common("five", "exit 5"), nb_jobs: 1, clusters: { sl: {} } });
  await until("an event", () => grid.campaign(id).event_jobs === 1);
  assert.match(grid.must("gridevents", [String(id)]), /EXIT_ERROR .*exit code 5/);
  grid.must("griddel", [String(id)]);
  const sleeping = submit({ ...common("sleeping", "sleep 1000"), nb_jobs: 20, clusters: { sl: {} } });
  await until("jobs that run", () => grid.campaign(sleeping).running_jobs > 0);
  grid.must("griddel", [String(sleeping)]);
  await until("no job left", () => {
    const { running_jobs, waiting_jobs } = grid.campaign(sleeping);
    return running_jobs + waiting_jobs === 0;
  });
});
