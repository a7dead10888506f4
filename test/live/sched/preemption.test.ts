// Preemption with real processes: the preempted job is suspended, requeued or deleted, and continues where it was.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Complex, startComplex, until } from "../complex.ts";

describe("preemption", () => {
  let complex: Complex;
  before(async () => {
    complex = await startComplex();
    complex.qmgr(
      "set server job_history_enable=True",
      "create queue express queue_type=e,enabled=True,started=True,Priority=200",
      `set node ${hostOf(complex)} resources_available.ncpus=2`,
    );
  });
  after(() => complex.stop());

  /** A job with all cpus that ends when its file appears. */
  let count = 0;
  const submit = (...args: readonly string[]): { id: string; end: () => void } => {
    const file = join(complex.work(), `end${++count}`);
    const id = complex.submit([...args, "-l", "select=1:ncpus=2", "--", "/bin/sh", "-c", `while [ ! -e ${file} ]; do sleep 0.1; done`]);
    return { id, end: () => writeFileSync(file, "") };
  };
  /** The kernel's state of the processes of a job; T means stopped. */
  const processes = (id: string): string => statesOf(Number((complex.job(id) as { session_id?: number }).session_id)).join("");

  test("suspended: state S, its processes stopped (T), the room given; it goes on where it was", async () => {
    const victim = submit();
    await complex.untilJob(victim.id, "R");
    const run = complex.job(victim.id);
    await until("its process", () => processes(victim.id).length > 0);
    complex.qmgr("set server scheduling=False");
    const urgent = submit("-q", "express");
    const explained = complex.must("partita", ["explain", urgent.id]);
    assert.match(explained, /Scheduler default has scheduling = False/);
    complex.qmgr("set server scheduling=True");
    await complex.untilJob(urgent.id, "R");
    assert.equal(complex.job(victim.id).job_state, "S");
    assert.match(processes(victim.id), /^[TZ]*T[TZ]*$/);
    assert.match(complex.log("sched_logs"), new RegExp(`;Job;${victim.id};Job preempted by suspension`));
    assert.match(
      complex.must("partita", ["explain", victim.id]),
      /state S: it waits\n(.*\n)* {2}preempted +.*; it goes before other jobs of its level\n/,
    );
    urgent.end();
    await complex.untilJob(urgent.id, "F");
    await complex.untilJob(victim.id, "R");
    await until("its processes go on", () => !processes(victim.id).includes("T"));
    victim.end();
    const done = await complex.untilJob(victim.id, "F");
    assert.deepEqual([done.Exit_status, done.run_count, done.exec_vnode], [0, run.run_count, run.exec_vnode]);
  });

  test("requeued: it starts anew when there is room", async () => {
    complex.qmgr("set sched default preempt_order=R");
    const victim = submit();
    await complex.untilJob(victim.id, "R");
    const urgent = submit("-q", "express");
    await complex.untilJob(urgent.id, "R");
    assert.equal(complex.job(victim.id).job_state, "Q");
    urgent.end();
    await complex.untilJob(victim.id, "R");
    assert.equal(complex.job(victim.id).run_count, 2);
    victim.end();
    await complex.untilJob(victim.id, "F");
  });

  test("none of the methods works: nobody goes, and the job waits", async () => {
    const victim = submit("-r", "n");
    await complex.untilJob(victim.id, "R");
    const urgent = submit("-q", "express");
    await until("it is told", () => complex.job(urgent.id).comment?.startsWith("Not Running: ") === true);
    assert.deepEqual([complex.job(victim.id).job_state, complex.job(urgent.id).job_state], ["R", "Q"]);
    victim.end();
    await complex.untilJob(urgent.id, "R");
    urgent.end();
    await complex.untilJob(urgent.id, "F");
  });

  test("deleted: it is gone for good", async () => {
    complex.qmgr("set sched default preempt_order=D");
    const victim = submit();
    await complex.untilJob(victim.id, "R");
    const urgent = submit("-q", "express");
    await complex.untilJob(urgent.id, "R");
    await complex.untilJob(victim.id, "F");
    urgent.end();
    await complex.untilJob(urgent.id, "F");
  });
});

function hostOf(complex: Complex): string {
  return /^(\S+)\n/m.exec(complex.must("pbsnodes", ["-a"]))?.[1] ?? "";
}

/** States of the processes of a session, one letter each. */
function statesOf(session: number): string[] {
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^[0-9]+$/.test(pid) || !existsSync(`/proc/${pid}/stat`)) return [];
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const [state = "", , , own] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return Number(own) === session && session > 0 ? [state] : [];
    } catch {
      return [];
    }
  });
}
