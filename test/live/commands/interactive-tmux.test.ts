// qsub -I in a window of tmux, a real terminal program with keys, a screen and a window that changes its size.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";

const skip = spawnSync("tmux", ["-V"]).status === 0 ? false : "tmux is not installed (scripts/test-host.sh installs it)";
const SOCKET = `partita-test-${process.pid}`;

let complex: Complex;

function tmux(...words: readonly string[]): string {
  const done = spawnSync("tmux", ["-L", SOCKET, "-f", "/dev/null", ...words], { encoding: "utf8", env: { ...complex.env(), PS1: "$ " } });
  assert.equal(done.status, 0, `tmux ${words.join(" ")}: ${done.stderr}`);
  return done.stdout;
}
const screen = (): string => tmux("capture-pane", "-p", "-t", "w");
const keys = (...words: readonly string[]): string => tmux("send-keys", "-t", "w", ...words);
const shows = (what: RegExp) => until(`${what} on the screen:\n${screen()}`, () => what.exec(screen()) ?? undefined);

before(async () => {
  if (skip !== false) return;
  complex = await startComplex();
  complex.qmgr("set server job_history_enable=True");
  tmux("new-session", "-d", "-s", "w", "-x", "100", "-y", "30", "-c", complex.work(), "sh");
});
after(async () => {
  if (skip !== false) return;
  spawnSync("tmux", ["-L", SOCKET, "kill-server"]);
  await complex?.stop();
});

test("a session in tmux: size, resizing, a full-screen program, suspension, the shell's modes afterwards", { skip }, async () => {
  await shows(/[$#]/);
  keys("stty -g > modes-before; qsub -I -S /bin/sh", "Enter");
  await shows(/qsub: job \S+ ready/);
  keys("export PS1='in> '; clear; stty size", "Enter");
  await shows(/^30 100$/m);
  keys("clear; trap 'stty size' WINCH; echo tra''pped", "Enter");
  // A signal that arrives before the trap is set is lost.
  await shows(/^trapped/m);
  tmux("resize-window", "-t", "w", "-x", "120", "-y", "40");
  await until("the new size", () => {
    keys("", "Enter");
    return /^40 120$/m.test(screen());
  });
  keys("clear; trap - WINCH; printf '\\033[11;21Hhe''re\\033[13;1H'", "Enter");
  await shows(/^ {20}here/m);
  const job = Object.keys(complex.jobs())[0] as string;
  keys("clear", "Enter");
  keys("~", "C-z");
  await shows(/Stopped|suspended/);
  keys("fg", "Enter");
  // Input typed before qsub has its terminal again is lost.
  await until("the session is back", () => {
    keys("echo ba''ck", "Enter");
    return /^back$/m.test(screen());
  });
  keys("exit 4", "Enter");
  await shows(/qsub: job \S+ completed/);
  keys("stty -g > modes-after; cmp modes-before modes-after && echo the sa''me", "Enter");
  await shows(/the same/);
  assert.equal((await complex.untilJob(job, "F")).Exit_status, 4);
});
