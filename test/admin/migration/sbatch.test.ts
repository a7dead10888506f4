// Scripts of Slurm become scripts of PBS.

import assert from "node:assert/strict";
import { test } from "node:test";
import { translateScript } from "../../../src/admin/migration/sbatch.ts";

const directives = (...lines: string[]): string[] =>
  translateScript(`#!/bin/sh\n${lines.map((line) => `#SBATCH ${line}\n`).join("")}hostname\n`)
    .script.split("\n")
    .filter((line) => line.startsWith("#PBS"))
    .map((line) => line.slice("#PBS ".length));

test("translates options that stand for themselves", () => {
  for (const [slurm, pbs] of [
    ["--job-name=sum", "-N sum"],
    ["-J sum", "-N sum"],
    ["-t 90", "-l walltime=01:30:00"],
    ["--time=1-02:03:04", "-l walltime=26:03:04"],
    ["--time=2-0", "-l walltime=48:00:00"],
    ["--time 30:10", "-l walltime=00:30:10"],
    ["--time=1:00:00", "-l walltime=01:00:00"],
    ["-p long,short", "-q long"],
    ["--account=chem", "-A chem"],
    ["--array=0-9%2", "-J 0-9%2"],
    ["-a 0-10:5", "-J 0-10:5"],
    ["--dependency=afterok:1:2,afterany:3", "-W depend=afterok:1:2,afterany:3"],
    ["--mail-type=BEGIN,END,FAIL", "-m bea"],
    ["--mail-type=NONE", "-m n"],
    ["--mail-user=a@b.c", "-M a@b.c"],
    ["--export=ALL", "-V"],
    ["--export=A,B=2", "-v A,B=2"],
    ["-H", "-h"],
    ["--no-requeue", "-r n"],
    ["-L matlab:2,abaqus:5", "-l matlab=2,abaqus=5"],
    ["-e err.txt", "-e err.txt"],
  ] as const)
    assert.deepEqual(directives(slurm), [pbs], slurm);
});

test("makes one select of nodes, tasks, cpus, memory and devices", () => {
  for (const [slurm, pbs] of [
    ["-n 1", ["-l select=1:ncpus=1"]],
    ["--ntasks=4 --cpus-per-task=2 --mem-per-cpu=1G", ["-l select=4:ncpus=2:mpiprocs=1:ompthreads=2:mem=2gb"]],
    ["-N 2 --ntasks-per-node=16 --mem=64G", ["-l select=2:ncpus=16:mpiprocs=16:mem=64gb", "-l place=scatter"]],
    ["-N 2 -n 6 --exclusive", ["-l select=2:ncpus=3:mpiprocs=3", "-l place=scatter:excl"]],
    ["--gres=gpu:a100:2 -c 8", ["-l select=1:ncpus=8:ompthreads=8:ngpus=2"]],
    ["--mem=512", ["-l select=1:ncpus=1:mem=512mb"]],
    ["--mem=0 -w node7", ["-l select=1:ncpus=1:host=node7"]],
  ] as const)
    assert.deepEqual(directives(slurm), pbs, slurm);
});

test("joins the streams where Slurm writes one file, and explains paths", () => {
  assert.deepEqual(directives("-o out/%a.txt"), ["-o out/^array_index^.txt", "-j oe"]);
  assert.deepEqual(directives("-o logs/slurm-%j.out -e err"), ["-o logs/", "-e err"]);
  assert.deepEqual(directives("-o slurm-%j.out -e err"), ["-e err"]);
});

test("keeps the body, and gives the variables of Slurm that it uses", () => {
  const { script, notes, options } = translateScript(
    [
      "#!/bin/bash",
      "#SBATCH --qos=high --constraint=avx # comment",
      "# a comment",
      "",
      "srun ./a $SLURM_JOB_ID $SLURM_LOCALID",
      "#SBATCH -n 4",
      "",
    ].join("\n"),
  );
  assert.equal(
    script,
    [
      "#!/bin/bash",
      "# a comment",
      "",
      'cd "$PBS_O_WORKDIR" || exit 1',
      'export SLURM_JOB_ID="$PBS_JOBID"',
      "srun ./a $SLURM_JOB_ID $SLURM_LOCALID",
      "#SBATCH -n 4",
      "",
    ].join("\n"),
  );
  assert.deepEqual(
    options.map(({ line, option, pbs }) => [line, option, pbs]),
    [
      [2, "--qos=high", ""],
      [2, "--constraint=avx", ""],
    ],
  );
  assert.equal(notes.length, 2);
  assert.match(notes[1] ?? "", /^SLURM_LOCALID: /);
});

test("takes what is not a script of Slurm, too", () => {
  for (const text of ["", "\n\n", "#SBATCH", "#SBATCH --time", "#SBATCH --time=soon -n", "#SBATCH 'x"])
    assert.equal(typeof translateScript(text).script, "string");
});
