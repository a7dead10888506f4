// The README's tour, typed literally by a new user whose login profile prints text: it succeeds, and every later job runs or
// gives a reason.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT } from "../shared.ts";

/** The lines of the first code block below the heading. */
function tour(): readonly string[] {
  const text = readFileSync(join(ROOT, "README.md"), "utf8");
  const [, block = ""] = /^## A tour.*\n```\n([\s\S]*?)^```$/m.exec(text) ?? [];
  return block.trimEnd().split("\n");
}

/** The user's commands between the tour and its last line. */
const LATER = [
  "echo == later",
  "qsub -W block=true -N later -- /bin/true; echo exit $?",
  "qsub -W block=true -q fast -N later_fast -- /bin/true; echo exit $?",
  "never=$(qsub -l select=1:ncpus=100000 -- /bin/true)",
  "until qstat -f $never | grep comment; do sleep 0.1; done",
  "echo 'echo $(qselect | wc -l) jobs, by a job' | qsub -W block=true -j oe -N inside -q fast; cat inside.o*",
  "qstat -x",
];

test("README: the tour as it stands there ends well, and every later job runs or says why not", () => {
  const home = mkdtempSync(join(tmpdir(), "partita-tour-"));
  try {
    const lines = tour();
    assert.ok(lines.length > 8 && lines.at(-1)?.startsWith("partita stop"), lines.join("\n"));
    // In another directory than the checkout, so that the jobs' output does not go there.
    const typed = lines.map((line) => line.replaceAll(/(?<=^|[ (])bin\/partita/g, join(ROOT, "bin/partita")));
    const script = ["set -e", ...typed.slice(0, -1), "set +e", ...LATER, typed.at(-1)].join("\n");
    writeFileSync(join(home, "tour.sh"), `${script}\n`);
    // As root the machine's profile prints text, for the processes of this test only.
    const profile = join(home, "profile.d");
    mkdirSync(profile);
    writeFileSync(join(profile, "print.sh"), "echo Welcome to this machine\n");
    const mount = `mount --bind ${profile} /etc/profile.d && cd "$HOME" && exec bash tour.sh`;
    const canMount = spawnSync("unshare", ["-m", "true"]).status === 0;
    const [program, args] = canMount ? ["unshare", ["-m", "sh", "-c", mount]] : ["bash", ["tour.sh"]];
    const env = { ...process.env, HOME: home, PARTITA_RESIDENT: "no", PBS_CONF_FILE: undefined };
    const { status, stdout, stderr } = spawnSync(program as string, args as string[], {
      cwd: home,
      env,
      encoding: "utf8",
      timeout: 540_000,
    });
    const told = `${stdout}\n${stderr}`;
    assert.equal(status, 0, told);
    assert.equal(stderr, "", told);
    const [before = "", later = ""] = stdout.split("== later\n");
    assert.match(before, /^Started pbs_comm, pbs_mom, pbs_server\.$/m);
    assert.match(before, /^1\.\S+\n2\.\S+\n/m);
    assert.deepEqual(later.match(/^exit \d+$/gm), ["exit 0", "exit 0"], told);
    assert.match(later, /comment = (?!--).*\S/);
    assert.match(later, /^\d+ jobs, by a job$/m);
    assert.match(later, / later +\S+ +\S+ F workq/);
    assert.match(later, / later_fast +\S+ +\S+ F fast/);
    assert.match(later, /^Stopped pbs_comm, pbs_mom, pbs_server, pbs_sched default, pbs_sched s1\.$/m);
  } finally {
    spawnSync(join(ROOT, "bin/partita"), ["stop", "--home", join(home, "pbs")], { stdio: "ignore" });
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
});
