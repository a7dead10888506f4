// $restrict_user with real processes. The mom has a separate pid namespace, so that this test ends no foreign processes.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { after, test } from "node:test";
import { becoming, type Complex, startComplex, until } from "../complex.ts";
import { addHost, type Host } from "../hosts-bed.ts";
import { lackOfUsers } from "../needed-users.ts";

const NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"] as const;
const [USER, STRANGER, SPARED] = ["pbsuser1", "pbsuser2", "pbsuser3"];
const skip =
  lackOfUsers(USER, STRANGER, SPARED) ||
  (spawnSync(NAMESPACE[0], [...NAMESPACE.slice(1), "true"]).status !== 0 && "needs a pid namespace of its own, which cannot be made here");
const BETA = "127.0.0.2";

let complex: Complex | undefined;
let host: Host | undefined;
after(async () => {
  await host?.close();
  await complex?.stop();
});

test("who has no job on the host loses his processes there; root, those excepted and owners of jobs do not", { skip }, async () => {
  complex = await startComplex({ mode: "system" });
  complex.qmgr("set server job_history_enable = true");
  host = await addHost(complex, BETA, { config: `$restrict_user True\n$restrict_user_exceptions ${SPARED}\n`, within: NAMESPACE });
  const mom = host.pid;
  /** A process in the mom's namespace, and its end. */
  const sit = (name: string | null) => {
    const become = name === null ? [] : becoming(name);
    const child = spawn("nsenter", ["-t", String(mom), "-p", "-m", "--", ...become, "sleep", "1000"], { stdio: "ignore" });
    const ended = new Promise<string>((resolve) => child.once("exit", (status, signal) => resolve(signal ?? String(status))));
    return { child, ended };
  };
  const kept = [sit(null), sit(SPARED)];
  // While the user has a job here, in whatever state, the user's other processes are left alone.
  const id = complex.submit(["-l", `select=1:host=${BETA}`, "-o", "/dev/null", "-e", "/dev/null", "--", "/bin/sleep", "1000"], {
    as: USER,
  });
  await until("his job runs", () => complex?.job(id)["substate"] === 42);
  const owner = sit(USER);
  const stranger = sit(STRANGER);
  assert.equal(await stranger.ended, "SIGKILL");
  // The same pass has examined the other processes.
  for (const { child } of [...kept, owner]) assert.deepEqual([child.exitCode, child.signalCode], [null, null]);
  await until("the mom's log tells", () => /;process \d+ killed: its owner has no job here \(\$restrict_user\)/.test(host?.log() ?? ""));
  complex.must("qdel", [id]);
  await complex.untilJob(id, "F");
  assert.equal(await owner.ended, "SIGKILL", "his job is over, and so is his right to be here");
  for (const { child } of kept) {
    assert.deepEqual([child.exitCode, child.signalCode], [null, null]);
    child.kill("SIGKILL");
  }
});
