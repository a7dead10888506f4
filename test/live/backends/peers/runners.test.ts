// Jobs of Partita on runners that a real Slurm starts: from qmgr to the end of the last runner.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../../complex.ts";
import { STATE, startFreshPeer, stopPeer, whyNoPeer } from "./peer-bed.ts";

const skip = whyNoPeer("slurm") ?? false;
const JOBS = 20;
let complex: Complex;

before(async () => {
  if (skip !== false) return;
  complex = await startComplex();
  complex.qmgr("set server job_history_enable=t");
});
after(() => complex?.stop());

/** Runs jobs in a partition of their own, whose runners come from a backend with these attributes. isEmpty: whether the peer has no job left. */
async function jobsOn(name: string, attributes: string, backend_id: RegExp, isEmpty: () => boolean): Promise<void> {
  complex.qmgr(
    `create queue q${name} queue_type=e,enabled=t,started=t,partition=p${name}`,
    `create sched s${name} partition=p${name}`,
    `set sched s${name} scheduling=t`,
    `create backend ${name} type=${name}`,
    `set backend ${name} ${attributes}`,
    `set backend ${name} partition=p${name},max_runners=4,enabled=t`,
  );
  const out = join(complex.work(), name);
  const words = ["-q", `q${name}`, "-l", "walltime=0:01:00", "-j", "oe", "-o", "/dev/null", "--", "/bin/sh", "-c"];
  const ids = Array.from({ length: JOBS }, (_, at) => complex.submit([...words, `echo ${at} >> ${out}`]));
  for (const id of ids) {
    const job = await complex.untilJob(id, "F");
    assert.equal(job.Exit_status, 0);
    assert.equal(job["backend"], name);
    assert.match(String(job["backend_id"]), backend_id);
  }
  const numbers = readFileSync(out, "utf8").trim().split("\n").map(Number);
  assert.deepEqual(
    numbers.sort((a, b) => a - b),
    Array.from({ length: JOBS }, (_, at) => at),
  );
  await until(`${name} has no job left`, isEmpty);
  assert.match(complex.qmgr(`list backend ${name}`), /state = ready/);
}

test("jobs run once each on runners that Slurm starts, and nothing is left in Slurm", { skip }, async (t) => {
  startFreshPeer("slurm");
  t.after(() => stopPeer("slurm"));
  const config = join(STATE, "slurm", "slurm.conf");
  const env = { PATH: "/usr/bin:/bin", SLURM_CONF: config };
  await jobsOn("slurm", `config=${config}`, /^\d+_\d+$/, () => execFileSync("squeue", ["-h"], { env, encoding: "utf8" }) === "");
});
