// Completion of command lines in real shells: words from the table, names from the server, and silence without one. A shell that is not installed is named.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { completionFiles, withoutCompletion } from "../../../scripts/completion/shells.mjs";
import { type Complex, startComplex } from "../complex.ts";

const folder = mkdtempSync(join(tmpdir(), "partita-completion-"));
let complex: Complex;
let job = "";
let array = "";
before(async () => {
  for (const [name, text] of completionFiles()) writeFileSync(join(folder, name), text);
  complex = await startComplex();
  complex.qmgr("set server scheduling = False", "create queue fast queue_type=e,enabled=t,started=t");
  job = complex.submit(["--", "/bin/true"]);
  array = complex.submit(["-J", "1-3", "--", "/bin/true"]);
});
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await complex?.stop();
});

/** How each shell is asked for the words that can follow a line. The line is the last argument. */
const SHELLS: Readonly<Record<string, readonly string[]>> = {
  bash: [
    "--norc",
    "-c",
    `source "$0/partita.bash"; COMP_LINE=$1; COMP_POINT=\${#1}; set -- $1; _pbs_complete "$1" "\${COMP_LINE##*[ :=]}" ""; printf '%s\\n' "\${COMPREPLY[@]}"`,
  ],
  zsh: [
    "-f",
    "-c",
    `compdef() {}; _files() {}; compadd() { while [[ $1 != -- ]]; do shift; done; shift; for each; do [[ \${each[1,\${#cur}]} = $cur ]] && print -r -- $each; done; return 0 }
     line=$1; source "$0/_partita"; words=(\${=line}); [[ $line = *' ' ]] && words+=(''); CURRENT=\${#words}; cur=\${words[CURRENT]}; _partita`,
  ],
  fish: ["--no-config", "-c", `source "$argv[1]/partita.fish"; complete -C "$argv[2]" | string replace -r '\\t.*' ''; true`],
};
const installed = Object.keys(SHELLS).filter((shell) => spawnSync(shell, ["-c", "true"]).status === 0);

function follows(shell: string, line: string, env: NodeJS.ProcessEnv = complex.env()): readonly string[] {
  const { stdout, stderr, status } = spawnSync(shell, [...(SHELLS[shell] ?? []), folder, line], { encoding: "utf8", env });
  assert.deepEqual([stderr, status], ["", 0], `${shell}: ${line}`);
  return stdout
    .split("\n")
    .filter((word) => word !== "")
    .toSorted();
}

test("every command of users and administrators has a completion", () => {
  assert.deepEqual(withoutCompletion(), []);
});

for (const shell of Object.keys(SHELLS)) {
  const skip = installed.includes(shell) ? false : `${shell} is not installed (scripts/test-host.sh)`;

  test(`${shell} completes words of the table`, { skip }, () => {
    assert.deepEqual(follows(shell, "qterm -t "), ["delay", "immediate", "quick"]);
    assert.deepEqual(follows(shell, "partita ex"), ["explain"]);
    assert.deepEqual(follows(shell, "partita cert "), ["list", "renew", "revoke", "rotate", "show", "token", "user"]);
    assert.deepEqual(follows(shell, "partita store migrate "), ["postgres", "sqlite"]);
    assert.deepEqual(follows(shell, "partita explain --js"), ["--json"]);
    assert.ok(follows(shell, "qdel -").includes("-x"));
  });

  test(`${shell} asks the server for names`, { skip }, () => {
    assert.deepEqual(follows(shell, "qdel "), [job, array].toSorted());
    assert.deepEqual(follows(shell, `qdel ${array.slice(0, array.indexOf("[") + 1)}`), [array]);
    assert.deepEqual(follows(shell, "qsub -q "), ["fast", "workq"]);
    assert.deepEqual(follows(shell, "qmove f"), ["fast"]);
    assert.deepEqual(follows(shell, `qmove fast ${job.slice(0, 2)}`), [job]);
    assert.deepEqual(follows(shell, "pbsfs -I "), ["default"]);
    assert.equal(follows(shell, "pbsnodes -o ").length, 1);
  });

  test(`${shell} prints nothing when there is no complex, and no command`, { skip }, () => {
    const nowhere = { ...complex.env(), PBS_CONF_FILE: "/nonexistent/pbs.conf" };
    for (const line of ["qdel ", "qsub -q ", "pbsnodes ", "pbs_rdel ", "griddel ", "pbsfs -I "]) {
      assert.deepEqual(follows(shell, line, nowhere), [], line);
      assert.deepEqual(
        follows(shell, line, { ...nowhere, PATH: "/usr/bin:/bin" }).filter((word) => word.startsWith(job)),
        [],
        line,
      );
    }
  });
}
