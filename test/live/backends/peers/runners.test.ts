// Jobs on runners that a real Slurm starts: from qmgr to the end of the last runner.

import { after, before, test } from "node:test";
import { mixedJobs } from "../mixed-jobs.ts";
import { slurmSeat } from "./mixed-seats.ts";
import { startFreshPeer, stopPeer, whyNoPeer } from "./peer-bed.ts";

const skip = whyNoPeer("slurm") ?? false;

before(() => skip === false && startFreshPeer("slurm"));
after(() => skip === false && stopPeer("slurm"));

test("mixed jobs on runners that Slurm starts complete exactly once", { skip }, async (t) => {
  t.diagnostic(JSON.stringify(await mixedJobs(slurmSeat())));
});
