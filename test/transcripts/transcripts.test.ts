// Sessions recorded from a real PBS, replayed command by command against a system-mode complex. The recordings and the replay
// tool are in the shared folder beside the checkout (test/live/shared.ts). Without the folder or without root, the tests are
// skipped with a message.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, lstatSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex } from "../live/complex.ts";
import { SHARED, whyNoShared } from "../live/shared.ts";

/** Recordings that must pass completely. */
const RECORDINGS =
  `qmgr-abbreviations qmgr-help-active qmgr-permissions qmgr-print-roundtrip qmgr-queues qmgr-stdin qmgr-syntax-errors qmgr-values
node-partitions node-states nodes queue-busy queue-types resources server-attributes server-limits sched-objects sched-refusals admin-usage pbsnodes-formats
qstat-errors qstat-lists qstat-long qstat-server-queue
qsub-attributes qsub-env qsub-refusals qsub-refusals2 qsub-resources qsub-script-directives qsub-script-directives2 qsub-server-refusals
dependencies job-files2 qalter qalter2 qdel qselect arrays sched-arrays hold-release2 hold-release move-order-run job-life job-files exit-status limits comments-fit comments-fit2
hooks msched-basic msched-dirs msched-refusals sched-order-formula sched-order-sortkey sched-order-multikey sched-order-queueprio sched-node-sort-key sched-place-vnodes
sched-fairshare-pbsfs msched-fairshare sched-dyn-res sched-eligible-time
sched-limits-entity sched-limits-old sched-comment-custom sched-comment-ncpus sched-comment-queue sched-comment-states sched-cycle-log
sched-preempt-delete sched-preempt-levels sched-preempt-requeue sched-preempt-suspend sched-qrun
sched-psets-span sched-backfill-off sched-backfill-topjob sched-shrink-to-fit sched-dedicated-now sched-dedicated-time sched-primetime
resv-sub-forms resv-acl resv-alter resv-degraded resv-denied resv-from-job resv-jobs-inside resv-life resv-logs resv-standing msched-resv`.split(
    /\s+/,
  );

/**
 * Commands that intentionally answer differently from the recording. only: the lines that may differ, in the form of a diff;
 * without it the whole answer may differ.
 */
type Difference = {
  readonly why: string;
  readonly recording: string;
  readonly command: string;
  readonly only?: readonly (string | RegExp)[];
};
const NEVER_RAN = ["+    Exit_status = 271"];
const DIFFERS: readonly Difference[] = [
  {
    why: "this complex does not lie in /etc, so its jobs are told where its pbs.conf is",
    recording: "qsub-env",
    only: [/^\+PBS_CONF_FILE=\S+\/pbs\.conf$/],
    command: "cat envjob.o*",
  },
  {
    why: "our first job runs before the third is submitted, there the node daemon took longer: the same lines in another order",
    recording: "sched-eligible-time",
    command:
      "tail -n +$(cat /tmp/mark.server_logs) PBS_HOME/server_logs/$(date +%Y%m%d) | cut -d';' -f2- | grep -E ';(J1|J2|J3);Accrue' | sed 's/ for [0-9]* secs.*//'",
  },
  { why: "our job has ended by then: a job of no work takes PBS a second", recording: "queue-types", command: "qstat -Q" },
  { why: "the held job that qrun started has ended by then", recording: "move-order-run", command: "qrls J1 J2" },
  { why: "our job is in substate 42, with resources_used, as soon as it is in R", recording: "queue-busy", command: "qstat" },
  {
    why: "our job is in substate 42, with resources_used, as soon as it is in R",
    recording: "qalter",
    command: "qstat -fw J2 | grep -E 'Job_Name|Priority|walltime|comment|Hold'",
  },
  {
    why: "recorded within one second, in which server lines stand before accounting records",
    recording: "job-life",
    command: "tracejob -w 900 J1 | sed 's/group=[^ ]*/group=GROUP/' | grep -E ' [SA]  ' | grep -v 'pending copy'",
  },
  {
    why: "a job that was deleted before it ran has Exit_status 271 here and none there",
    recording: "exit-status",
    only: NEVER_RAN,
    command:
      "for i in J1 J2 J3 J4 J5 J6 J7 J8 J9; do echo \"== $i\"; qstat -xfw $i | grep -E 'job_state|substate|Exit_status|comment|run_count|Stageout'; done",
  },
  {
    why: "a job that was deleted before it ran has Exit_status 271 here and none there",
    recording: "qdel",
    only: NEVER_RAN,
    command: "qstat -xfw J7 | grep -E 'job_state|substate|Exit'",
  },
  {
    why: "a job that was deleted for its dependency has Exit_status 271 here and none there",
    recording: "dependencies",
    only: NEVER_RAN,
    command: "for i in J1 J2 J3 J4 J5 J6; do echo \"== $i\"; qstat -xfw $i | grep -E 'job_state|substate|depend|Exit|comment'; done",
  },
];

/** The system's own Python: the Python of a version manager would add words to PATH that a recording checks. */
const PYTHON = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";

const TMPDIR = "/var/tmp";
const why = whyNoShared() ?? (process.geteuid?.() === 0 ? undefined : "needs root: jobs of other users, system mode");
let complex: Complex;

before(async () => {
  if (why === undefined) removeOldDirectories();
  if (why === undefined) complex = await startComplex({ mode: "system", conf: { PBS_TMPDIR: TMPDIR } });
});
after(async () => {
  if (why === undefined) await complex.stop();
});

for (const name of RECORDINGS) {
  test(`transcript ${name}`, { skip: why ?? false }, () => {
    const file = join(SHARED, "transcripts", `${name}.txt`);
    assert.ok(existsSync(file), `${file} is missing`);
    const replay = spawnSync(PYTHON, [join(SHARED, "transcripts", "replay"), "run", "--keep-going", "--reset", freshComplex(name), file], {
      env: complex.env(),
      encoding: "utf8",
      timeout: 600_000,
    });
    const failures = failuresOf(replay.stdout);
    const counted = failures.filter((failure) => !DIFFERS.some((known) => known.recording === name && isKnown(known, failure)));
    assert.equal(
      counted.length,
      0,
      `${counted.length} of the commands differ:\n${counted.map(({ text }) => text).join("\n")}\n${replay.stderr}`,
    );
    assert.match(replay.stdout, /^\d+ passed, \d+ failed$/m, `the replay did not end:\n${replay.stdout}${replay.stderr}`);
  });
}

/**
 * The shell command that recreates a fresh complex. The replay can distinguish the variable R5 from the reservation R5 only if
 * their numbers differ, so deleted jobs have used up the small numbers.
 */
function freshComplex(name: string): string {
  const reset = `${complex.command("partita")} reset --home ${complex.home} --yes`;
  return name.includes("resv")
    ? `${reset} && yes -- '-h -- /bin/true' | head -30 | su pbsuser1 -c 'qsub --batch -' | xargs qdel -x`
    : reset;
}

/**
 * Recorded jobs have their TMPDIR in /var/tmp. A directory of another test user, left by a killed complex of an earlier run,
 * would block its job.
 */
function removeOldDirectories(): void {
  const uids = new Set(
    ["pbsuser1", "pbsuser2", "pbsuser3"].map((user) => Number(spawnSync("id", ["-u", user], { encoding: "utf8" }).stdout)),
  );
  for (const name of readdirSync(TMPDIR)) {
    const path = join(TMPDIR, name);
    if (/^pbs\.\d+(\[\d*\])?\./.test(name) && uids.has(lstatSync(path).uid)) rmSync(path, { recursive: true, force: true });
  }
}

type Failure = { readonly command: string; readonly text: string };

function isKnown({ command, only }: Difference, failure: Failure): boolean {
  if (command !== failure.command) return false;
  const differing = failure.text.split("\n").filter((line) => /^[+-](?!--)/.test(line));
  return (
    only === undefined || differing.every((line) => only.some((known) => (typeof known === "string" ? known === line : known.test(line))))
  );
}

/** The replay prints `--- FILE: KIND COMMAND` (further lines of the command begin with `> `) and then the differences. */
function failuresOf(output: string): readonly Failure[] {
  return output
    .split(/^(?=--- )/m)
    .filter((text) => text.startsWith("--- "))
    .map((text) => ({ command: /^--- \S+: . (.*(?:\n> .*)*)/.exec(text)?.[1] ?? "", text }));
}
