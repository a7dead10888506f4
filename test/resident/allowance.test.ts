// Which commands a resident takes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { RULES, whyOwnProcess } from "#resident/allowance.ts";
import { COMMANDS } from "#resident/commands.ts";
import type { CommandRequest } from "#resident/request.ts";
import { PROGRAMS } from "../../scripts/lib/programs.mjs";

function request(line: string, more: Partial<CommandRequest> = {}): CommandRequest {
  const [program = "", ...argv] = line.split(" ");
  const nobody = { stdin_is_tty: false, stdout_is_tty: false, stderr_is_tty: false };
  return { circumstances: "", ...nobody, cwd: "/home/u", env: {}, program, argv, ...more };
}

const tty = { stdin_is_tty: true, stdout_is_tty: true, stderr_is_tty: true };

test("the allow-list names every command, and the resident loads those that it can take and no other", () => {
  const commands = PROGRAMS.filter(({ kind }) => kind === "command").map(({ name }) => name);
  assert.deepEqual(Object.keys(RULES).sort(), [...commands].sort());
  const taken = commands.filter((name) => whyOwnProcess(request(name as string)) === null);
  assert.deepEqual(Object.keys(COMMANDS).sort(), [...taken].sort());
});

test("commands that a resident takes, and those that need a process of their own", () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [line: string, why: RegExp | null, more?: Partial<CommandRequest>])[] = [
    ["qsub -l select=1 job.sh",      null],
    ["qsub -N I -v X=1 -- prog -I",  null],
    ["qsub",                         null,                tty],
    ["qsub -o /dev/null -e /dev/null job.sh", null],
    ["qsub -I",                      /terminal/,          tty],
    ["qsub -lselect=1 -hI",          /terminal/,          tty],
    ["qsub -X -l ncpus=1",           /terminal/],
    ["qsub -W block=true job.sh",    /as long as/],
    ["qsub -W umask=22,block=true",  /as long as/],
    ["qsub -W block\t=\ttrue",       /as long as/],
    ["qsub --batch -",               /many jobs/],
    ["qsub /dev/stdin",              /every process/],
    ["qsub /dev/fd/63",              /every process/],
    ["qsub /proc/self/fd/0",         /every process/],
    ["qmgr -c list",                 null,                tty],
    ["qmgr -a",                      null],
    ["qmgr",                         /typed at/,          tty],
    ["qmgr --plain",                 /typed at/,          tty],
    ["qmgr -n -ecprint",             null,                tty],
    ["qstat -f",                     null,                { cwd: "/" }],
    ["qstat -f",                     /every process/,     { cwd: "/proc/1" }],
    ["qstat -f",                     /PBS_CONF_FILE/,     { env: { PBS_CONF_FILE: "pbs.conf" } }],
    ["qstat -f",                     /every process/,     { env: { PBS_CONF_FILE: "/dev/fd/3" } }],
    ["qstat -f",                     null,                { env: { PBS_CONF_FILE: "/etc/pbs.conf" } }],
    ["qstat -f",                     /PBS_HOME/,          { env: { PBS_HOME: "spool" } }],
    ["pbs_attach -j 1 true",         /own process/],
    ["pbs_server",                   /no command/],
    ["constructor",                  /no command/],
  ];
  for (const [line, why, more] of rows) {
    const told = whyOwnProcess(request(line, more));
    if (why === null) assert.equal(told, null, line);
    else assert.match(told ?? "taken", why, line);
  }
});
