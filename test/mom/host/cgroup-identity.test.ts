// A mom kills only processes of its own jobs: neither groups of another mom with equal paths and job ids, nor processes that
// merely name a job of the same id.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openGroups } from "#mom/host/cgroup.ts";
import { groupIdentity, saveIdentity } from "#mom/host/cgroup-identity.ts";
import { settleLostRuns } from "#mom/starter/lost-runs.ts";

const NO_LIMITS = { memory_bytes: null, pids_max: null, cpus: null, ncpus: null };

/** What stands for a kernel with groups of version 2, and the mom_priv of a mom on it. */
async function onHost(work: (host: { readonly root: string; readonly mom_priv: string; readonly proc: string }) => unknown): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "partita-groups-"));
  const [root, mom_priv, proc] = ["cgroup", "mom_priv", "proc"].map((name) => join(directory, name)) as [string, string, string];
  for (const each of [root, mom_priv, proc]) mkdirSync(each);
  writeFileSync(join(proc, "mounts"), `cgroup2 ${root} cgroup2 rw 0 0\n`);
  writeFileSync(join(proc, "cgroup"), "0::/\n");
  try {
    await work({ root, mom_priv, proc });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const open = (mom_priv: string, proc: string) => {
  const groups = openGroups(mom_priv, (text) => assert.fail(text), proc);
  assert.ok(groups !== null);
  return groups;
};

test("a starter that comes back finds the groups of its mom's jobs", () =>
  onHost(({ root, mom_priv, proc }) => {
    open(mom_priv, proc).within("1.n1", NO_LIMITS, () => undefined);
    assert.deepEqual(open(mom_priv, proc).jobs(), ["1.n1"]);
    assert.equal(readdirSync(root).filter((name) => name.startsWith("partita.")).length, 1);
  }));

const OTHERS: { readonly [whose: string]: (host: { readonly root: string; readonly mom_priv: string }) => void } = {
  "a mom at the same path in another mount namespace": ({ mom_priv }) => {
    renameSync(mom_priv, `${mom_priv}.theirs`);
    mkdirSync(mom_priv);
  },
  "a mom whose mom_priv is a copy": ({ mom_priv }) => {
    renameSync(mom_priv, `${mom_priv}.theirs`);
    cpSync(`${mom_priv}.theirs`, mom_priv, { recursive: true });
  },
  "a group made anew by somebody under our name": ({ root }) => {
    const [name = ""] = readdirSync(root).filter((each) => each.startsWith("partita."));
    renameSync(join(root, name), join(root, "gone"));
    mkdirSync(join(root, name, "1.n1"), { recursive: true });
  },
  "an identity of an earlier boot": ({ mom_priv }) => {
    const file = join(mom_priv, "cgroups");
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), boot: "another" }));
  },
  "an identity that is no text of ours": ({ mom_priv }) => writeFileSync(join(mom_priv, "cgroups"), '{"name":"partita.../../x"}'),
};

for (const [whose, become] of Object.entries(OTHERS)) {
  test(`${whose}: no job of the group is taken for one's own`, () =>
    onHost((host) => {
      open(host.mom_priv, host.proc).within("1.n1", NO_LIMITS, () => undefined);
      become(host);
      const groups = open(host.mom_priv, host.proc);
      assert.deepEqual(groups.jobs(), []);
      assert.equal(groups.kill("1.n1"), 0);
      assert.equal(readdirSync(host.root).filter((name) => name.startsWith("partita.")).length, 2);
    }));
}

test("directories that are not there yet are no reason for another name", () =>
  onHost(({ mom_priv }) => {
    const first = groupIdentity(mom_priv, "b", () => []);
    saveIdentity(mom_priv, first, [mom_priv]);
    assert.equal(groupIdentity(mom_priv, "b", () => [mom_priv, `${mom_priv}/none`]).name, first.name);
    assert.notEqual(groupIdentity(mom_priv, "b", () => [join(mom_priv, "..")]).name, first.name);
    assert.ok(existsSync(join(mom_priv, "cgroups")));
  }));

test("processes of a lost run are known by its secret: another mom's job of the same id goes on", async () => {
  const start = (cookie: string): ChildProcess =>
    spawn("/bin/sleep", ["1000"], { stdio: "ignore", detached: true, env: { PBS_JOBID: "1.n1", PBS_JOBCOOKIE: cookie } });
  const [ours, theirs] = [start("ours"), start("theirs")];
  try {
    await Promise.all([ours, theirs].map((child) => once(child, "spawn")));
    for (const pid of [0, theirs.pid as number]) {
      const run = { job: "1.n1", run_count: 1, pid, at_ms: 1, ticks: 0, cookie: "ours", state: "running" as const };
      settleLostRuns({ boot: "b", runs: new Map([[run.job, run]]), last: new Map() }, "b", null);
    }
    if (ours.signalCode === null) await once(ours, "exit");
    assert.equal(ours.signalCode, "SIGKILL");
    assert.equal(readFileSync(`/proc/${theirs.pid}/stat`, "latin1").includes(") Z "), false);
    assert.equal(theirs.signalCode, null);
  } finally {
    for (const child of [ours, theirs]) child.kill("SIGKILL");
  }
});
