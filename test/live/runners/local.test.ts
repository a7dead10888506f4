// Runners of this machine: a backend of type local, from qmgr to the end of the last runner (docs/runners.md).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";

let complex: Complex;
before(async () => {
  complex = await startComplex();
});
after(() => complex?.stop());

const SET_UP = [
  "set server job_history_enable=t",
  "create queue cloud queue_type=e,enabled=t,started=t,partition=cloud",
  "create sched cs partition=cloud",
  "set sched cs scheduling=t",
  "create backend sl type=local",
  "set backend sl partition=cloud,max_runners=4,enabled=t",
];

type Runner = { readonly runner: string; readonly backend: string; readonly state: string };
const runners = (): readonly Runner[] =>
  (JSON.parse(complex.must("partita", ["runners", "-F", "json", "--home", complex.home])) as { readonly runners: readonly Runner[] })
    .runners;

test("runners: jobs run on runners of this machine, which come and leave by themselves", async () => {
  complex.qmgr(...SET_UP);
  const out = join(complex.work(), "out");
  const ids = Array.from({ length: 6 }, (_, at) =>
    complex.submit([
      "-q",
      "cloud",
      "-l",
      "walltime=0:01:00",
      "-j",
      "oe",
      "-o",
      "/dev/null",
      "--",
      "/bin/sh",
      "-c",
      `echo ${at} >> ${out}; env > ${out}.env`,
    ]),
  );
  for (const id of ids) {
    const job = await complex.untilJob(id, "F");
    assert.equal(job.Exit_status, 0);
    assert.equal(job["backend"], "sl");
    assert.match(String(job["runner"]), /^sl-\d+-\d+$/);
    assert.match(String(job.exec_vnode), /^\(sl-\d+-\d+:ncpus=1\)$/);
  }
  assert.deepEqual(readFileSync(out, "utf8").trim().split("\n").sort(), ["0", "1", "2", "3", "4", "5"]);
  assert.doesNotMatch(readFileSync(`${out}.env`, "utf8"), /PARTITA_RUNNER/);
  await until("the runners have left", () => runners().length === 0);
  assert.doesNotMatch(complex.must("pbsnodes", ["-a"]), /sl-/);
  assert.match(complex.qmgr("list backend sl"), /state = ready/);
});
