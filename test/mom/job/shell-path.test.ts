// The commands of PBS in a login shell's PATH, and the names of this machine.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { ownNames } from "#mom/job/own-names.ts";
import { pathLine, promptEntry } from "#mom/job/shell-path.ts";

const SHELLS = ["/bin/sh", "/bin/bash", "/bin/dash", "/usr/bin/zsh", "/usr/bin/ksh", "/usr/bin/csh", "/usr/bin/tcsh", "/usr/bin/fish"];

test("the line for a shell puts the directory first in PATH, once, and runs what follows", () => {
  let tried = 0;
  for (const shell of SHELLS.filter((path) => existsSync(path))) {
    for (const directory of ["/opt/pbs/bin", "/home/a b/$x*/bin"]) {
      const input = `${pathLine(shell, directory)}${pathLine(shell, directory)}/usr/bin/printenv PATH\n`;
      // fish reads no commands from a socket, which is what Node would give it.
      const { stdout, stderr } = spawnSync("/bin/sh", ["-c", 'cat | "$0"', shell], {
        input,
        encoding: "utf8",
        env: { PATH: "/usr/bin:/bin" },
      });
      assert.equal(stdout, `${directory}:/usr/bin:/bin\n`, `${shell}: ${stderr}`);
      tried++;
    }
  }
  assert.ok(tried > 0);
  for (const [shell, directory] of [
    ["/usr/bin/python3", "/opt/pbs/bin"],
    ["/bin/sh", "/it's"],
    ["/bin/sh", "/a:b"],
    ["/bin/sh", "/a\nb"],
  ] as const)
    assert.equal(pathLine(shell, directory), "", `${shell} ${directory}`);
});

test("bash on a terminal gets it before its first prompt, batch jobs and other shells do not", () => {
  const [entry = ""] = promptEntry({ interactive: true }, "/bin/bash", "/opt/pbs/bin");
  assert.match(entry, /^PROMPT_COMMAND=case .*; unset PROMPT_COMMAND$/);
  if (existsSync("/bin/bash")) {
    const script = 'eval "$PROMPT_COMMAND"; /usr/bin/printenv PATH PROMPT_COMMAND';
    const ran = spawnSync("/bin/bash", ["-c", script], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: "/bin", PROMPT_COMMAND: entry.slice("PROMPT_COMMAND=".length) },
    });
    assert.equal(ran.stdout, "/opt/pbs/bin:/bin\n");
  }
  assert.deepEqual(promptEntry({}, "/bin/bash", "/opt/pbs/bin"), []);
  assert.deepEqual(promptEntry({ interactive: true }, "/bin/zsh", "/opt/pbs/bin"), []);
});

test("names of this machine: its own and those of its addresses, without what /etc/hosts says of others", () => {
  const hosts_file =
    "127.0.0.1 localhost\n127.0.1.1 vm.example.org vm # me\n::1 ip6-localhost\n10.0.0.5 alpha beta\n10.0.0.6 gamma\n# 10.0.0.5 delta\n\n";
  assert.deepEqual(ownNames({ hostname: "vm", addresses: ["127.0.0.1", "10.0.0.5"], hosts_file }), [
    "localhost",
    "vm",
    "127.0.0.1",
    "10.0.0.5",
    "vm.example.org",
    "ip6-localhost",
    "alpha",
    "beta",
  ]);
  assert.deepEqual(ownNames({ hostname: "", addresses: [], hosts_file: "" }), ["localhost"]);
});
