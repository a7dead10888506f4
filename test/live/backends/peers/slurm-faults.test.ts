// What happens to jobs on runners while a real Slurm cannot be used, and devices that Slurm gives to runners.

import assert from "node:assert/strict";
import { chmodSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../../complex.ts";
import { STATE, startFreshPeer, startPeer, stopPeer, USER, whyNoPeer } from "./peer-bed.ts";

const skip = whyNoPeer("slurm") ?? false;
const SLURM_CONF = join(STATE, "slurm", "slurm.conf");
/** Two fake devices on each node. */
const GRES = { SLURM_SET: "GresTypes=gpu;NodeName=DEFAULT Gres=gpu:2" };
const TOLD_S_MAX = 60;
let complex: Complex;

before(async () => {
  if (skip !== false) return;
  stopPeer("slurm");
  complex = await startComplex({ owner: USER });
  complex.qmgr("set server job_history_enable=t", "create sched cs partition=cloud", "set sched cs scheduling=t");
});
after(async () => {
  await complex?.stop();
  if (skip === false) stopPeer("slurm");
});

/** Makes a backend with a queue and a partition of its own. */
function backend(name: string, attributes: readonly string[]): void {
  complex.qmgr(
    `create queue q${name} queue_type=e,enabled=t,started=t,partition=${name}`,
    `set sched cs partition+=${name}`,
    `create backend ${name} type=slurm`,
    ...[`config=${SLURM_CONF}`, ...attributes, `partition=${name}`, "max_runners=4", "enabled=t"].map(
      (each) => `set backend ${name} ${each}`,
    ),
  );
}

const submit = (name: string, command: string, ...more: readonly string[]): string =>
  complex.submit([
    "-q",
    `q${name}`,
    "-l",
    "walltime=0:01:00",
    "-o",
    "/dev/null",
    "-e",
    "/dev/null",
    ...more,
    "--",
    "/bin/sh",
    "-c",
    command,
  ]);

const comment = (id: string): string => String(complex.job(id)["comment"]);

async function ranOnSlurm(id: string): Promise<void> {
  const job = await complex.untilJob(id, "F");
  assert.equal(job.Exit_status, 0);
  assert.match(String(job["backend_id"]), /^\d+_\d+$/);
}

test("while Slurm is down, jobs run on this machine, or wait and say why; they go on when it is there", { skip }, async () => {
  backend("falls", []);
  const local = submit("falls", "true");
  const job = await complex.untilJob(local, "F");
  assert.equal(job.Exit_status, 0);
  assert.match(String(job["backend_id"]), /^\d+$/, "the id is a pid");
  assert.match(complex.qmgr("list backend falls"), /state = failing[\s\S]*last_error = .*slurm/i);
  complex.qmgr("set backend falls enabled=f");
  backend("holds", ["fallback=hold"]);
  const waits = submit("holds", "true");
  await until("the job says why it waits", () => /Backend holds fails: .*slurm/i.test(comment(waits)), TOLD_S_MAX);
  assert.match(complex.must("qstat", ["-s", waits]), /Backend holds fails/);
  assert.match(complex.must("partita", ["explain", waits, "--home", complex.home]), /Backend holds fails/);
  assert.match(complex.qmgr("list backend holds"), /last_error = .*slurm/i);
  startFreshPeer("slurm");
  await ranOnSlurm(waits);
});

test("an sbatch that hangs is told, and the job runs when it does not hang any more", { skip }, async () => {
  const bin = complex.work(USER);
  for (const name of ["sbatch", "squeue", "scancel", "scontrol"]) {
    const hang = name === "sbatch" ? `[ -e ${bin}/hang ] && exec sleep 1000\n` : "";
    writeFileSync(join(bin, name), `#!/bin/sh\n${hang}exec /usr/bin/${name} "$@"\n`);
    chmodSync(join(bin, name), 0o755);
  }
  writeFileSync(join(bin, "hang"), "");
  backend("hangs", [`bin=${bin}`, "fallback=hold", "command_timeout=5"]);
  const id = submit("hangs", "true");
  await until("the job says why it waits", () => /sbatch did not answer within 5 s/.test(comment(id)), TOLD_S_MAX);
  unlinkSync(join(bin, "hang"));
  await ranOnSlurm(id);
});

test("two devices of Slurm are given to one job each, whatever the job's own environment says", { skip }, async () => {
  stopPeer("slurm");
  // The start script makes the rest of the directory; Slurm reads gres.conf beside slurm.conf.
  startFreshPeer("slurm");
  writeFileSync(
    join(STATE, "slurm", "gres.conf"),
    "AutoDetect=off\nNodeName=sn[1-2] Name=gpu File=/dev/zero\nNodeName=sn[1-2] Name=gpu File=/dev/null\n",
  );
  startPeer("slurm", GRES);
  backend("gpus", []);
  const out = join(complex.work(USER), "gpus");
  const command = `dev=$CUDA_VISIBLE_DEVICES; exec 9>> ${out}.$dev; flock -n 9 || dev=shared; echo $dev >> ${out}; sleep 5`;
  const more = ["-W", "backend_opts=--gres=gpu:1 --nodelist=sn1", "-v", "CUDA_VISIBLE_DEVICES=7"];
  const ids = Array.from({ length: 4 }, () => submit("gpus", command, ...more));
  for (const id of ids) await ranOnSlurm(id);
  const devices = readFileSync(out, "utf8").trim().split("\n");
  assert.equal(devices.length, ids.length);
  assert.deepEqual([...new Set(devices)].sort(), ["0", "1"], "both devices were used, and never by two jobs at once");
});
