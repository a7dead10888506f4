// The efficiency of one job.

import assert from "node:assert/strict";
import { test } from "node:test";
import { efficiencyText, type JobFacts, jobEfficiency } from "#report/job-efficiency.ts";

const FACTS: JobFacts = {
  id: "7.svr",
  name: "sum",
  owner: "ann@login",
  queue: "workq",
  state: "F",
  exit_status: 0,
  hosts: ["h1", "h2"],
  asked: { ncpus: "4", walltime: "02:00:00", mem: "4gb" },
  used: { ncpus: "4", cput: "02:00:00", walltime: "01:00:00", mem: "1048576kb" },
};

test("compares what a job has used with what it asked for", () => {
  const { cpu_efficiency, walltime_efficiency, mem_efficiency, mem_bytes } = jobEfficiency(FACTS);
  assert.deepEqual([cpu_efficiency, walltime_efficiency, mem_efficiency, mem_bytes], [0.5, 0.5, 0.25, 2 ** 30]);
});

test("says what is unknown", () => {
  const bare = jobEfficiency({ ...FACTS, exit_status: null, hosts: [], asked: {}, used: {} });
  assert.deepEqual([bare.ncpus, bare.cpu_efficiency, bare.mem_bytes], [1, null, null]);
  assert.match(efficiencyText(bare), /^Memory: {11}unknown$/m);
});

test("writes one fact a line", () => {
  assert.equal(
    efficiencyText(jobEfficiency(FACTS)),
    [
      "Job:              7.svr (sum)",
      "Owner, queue:     ann@login, workq",
      "State:            F, exit status 0",
      "Hosts:            h1 h2",
      "Cpus:             4",
      "Cpu time:         02:00:00, 50.0 % of 01:00:00 on 4 cpus",
      "Run time:         01:00:00, 50.0 % of the requested 02:00:00",
      "Memory:           1.0 GiB, 25.0 % of the requested 4.0 GiB",
      "",
    ].join("\n"),
  );
});
