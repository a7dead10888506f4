// The disk of mom_priv is full: running jobs continue, the host gets no new ones, and a mom that starts meanwhile knows its
// jobs.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";

const skip = process.getuid?.() === 0 ? false : "needs root";
let complex: Complex;
let priv = "";
before(async () => {
  if (skip !== false) return;
  complex = await startComplex();
  complex.qmgr("set server job_history_enable = True", "set server node_silence_timeout = 4");
  complex.halt();
  priv = join(complex.pbsHome, "mom_priv");
  const copy = `${complex.pbsHome}/../copy`;
  cpSync(priv, copy, { recursive: true });
  assert.equal(spawnSync("mount", ["-t", "tmpfs", "-o", "size=3m,mode=700", "none", priv]).status, 0);
  cpSync(copy, priv, { recursive: true });
  rmSync(copy, { recursive: true });
  complex.start();
});
after(async () => {
  complex?.halt();
  if (priv !== "") spawnSync("umount", ["-l", priv]);
  await complex?.stop();
});

/** Fills the disk to the last byte. */
function fill(): void {
  const rest = join(priv, "fill");
  for (let size = 1 << 20; size >= 1; size >>= 1) {
    try {
      for (;;) writeFileSync(rest, Buffer.alloc(size), { flag: "a" });
    } catch {
      // The disk is full for pieces of this size.
    }
  }
}
const vnode = (): { readonly state: string; readonly comment?: string } => {
  const { nodes } = JSON.parse(complex.must("pbsnodes", ["-a", "-F", "json"])) as {
    nodes: Record<string, { state: string; comment?: string }>;
  };
  return Object.values(nodes)[0] ?? { state: "none" };
};
const isUnknown = (): boolean => /state-unknown/.test(vnode().state) && /its records cannot be written: ENOSPC/.test(vnode().comment ?? "");

test("jobs go on, new ones wait until there is room; a mom that is started meanwhile comes up and keeps its jobs", { skip }, async () => {
  const running = complex.submit(["--", "/bin/sleep", "1000"]);
  await complex.untilJob(running, "R");
  fill();
  // The mom's next write shows that the disk is full.
  complex.must("qalter", ["-l", "walltime=5000", running]);
  await until("the vnode is unknown, with the reason", isUnknown);
  const waiting = complex.submit(["--", "/bin/true"]);
  process.kill(complex.pid("mom") as number, "SIGKILL");
  await until("the mom has ended", () => complex.pid("mom") === null);
  complex.must("pbs_mom", []);
  await until("the vnode is unknown again", isUnknown);
  assert.deepEqual([complex.job(running).job_state, complex.job(waiting).job_state], ["R", "Q"]);
  rmSync(join(priv, "fill"));
  await complex.untilJob(waiting, "F");
  assert.deepEqual([complex.job(running).job_state, complex.job(running).run_count], ["R", 1]);
  const told = complex.log("mom_logs").match(/records: (ENOSPC.*|written again)/g) ?? [];
  assert.deepEqual([told.filter((text) => text.includes("ENOSPC")).length, told.filter((text) => text.includes("again")).length], [2, 1]);
  complex.must("qdel", [running]);
  assert.equal((await complex.untilJob(running, "F")).Exit_status, 271);
});

test("a starter that is killed while the disk is full is started again when there is room, and jobs run", { skip }, async () => {
  fill();
  process.kill(complex.pid("starter") as number, "SIGKILL");
  const waiting = complex.submit(["--", "/bin/true"]);
  await until("the vnode is unknown", () => /state-unknown/.test(vnode().state));
  rmSync(join(priv, "fill"));
  await complex.untilJob(waiting, "F");
  assert.equal(complex.job(waiting).Exit_status, 0);
});
