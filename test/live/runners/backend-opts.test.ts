// A job with options for its backend gets a runner that was asked for with these options (docs/runners.md).

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Complex, startComplex } from "../complex.ts";

let complex: Complex;
before(async () => {
  complex = await startComplex();
  complex.qmgr(
    "set server job_history_enable=t",
    "create queue cloud queue_type=e,enabled=t,started=t,partition=cloud",
    "create sched cs partition=cloud",
    "set sched cs scheduling=t",
    "create backend sl type=local",
    "set backend sl partition=cloud,max_runners=4,enabled=t",
  );
});
after(() => complex?.stop());

test("backend_opts: jobs with and without options run, each on a runner of its own bucket", async () => {
  const submit = (...options: readonly string[]): string =>
    complex.submit(["-q", "cloud", "-l", "walltime=0:01:00", "-o", "/dev/null", "-e", "/dev/null", ...options, "--", "/bin/true"]);
  const ids = [submit("-W", "backend_opts=-C fast"), submit(), submit("-W", "backend_opts=-C fast"), submit()];
  const jobs = await Promise.all(ids.map((id) => complex.untilJob(id, "F")));
  assert.deepEqual(
    jobs.map(({ Exit_status }) => Exit_status),
    [0, 0, 0, 0],
  );
  assert.equal(jobs[0]?.["backend_opts"], "-C fast");
  const [fast, plain] = [new Set([jobs[0]?.["runner"], jobs[2]?.["runner"]]), [jobs[1]?.["runner"], jobs[3]?.["runner"]]];
  assert.ok(plain.every((runner) => !fast.has(runner)));
});
