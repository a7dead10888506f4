// Files that cannot be copied to the host before a job: the job waits with a reason and is tried again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addHost, addJob, advance, type Harness, harness, jobAttrs, mom, runOn, stateOf } from "../harness.ts";

const mailBodies = (h: Harness): string[] => h.actions.flatMap((action) => (action.kind === "send-mail" ? [action.mail.body] : []));

test("a failed stage-in: W 37 for half an hour with a comment and a mail, then queued again; the run does not count as failed", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const id = addJob(h);
  runOn(h, id, "n1", link);
  mom(h, link, "mom-obit", { job: id, run_count: 1, exit_status: -3, used: {}, stagein_failed: true, message: "far:/no: No such file" });
  assert.equal(stateOf(h, id), "W 37");
  const { comment, Execution_Time, exec_vnode } = jobAttrs(h, id);
  assert.match(comment ?? "", /^.+; tried again at /);
  assert.equal(exec_vnode, undefined);
  assert.equal(Number(Execution_Time) - Math.floor(h.now_ms / 1000), 1800);
  assert.match(mailBodies(h)[0] ?? "", /\nStage in of files failed; the job is tried again in 30 minutes\nfar:\/no: No such file\n$/);
  advance(h, 1801);
  assert.equal(stateOf(h, id), "Q 10");
});

test("mail about failed files is not sent with -m n", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const id = addJob(h, { Mail_Points: "n" });
  runOn(h, id, "n1", link);
  mom(h, link, "mom-obit", { job: id, run_count: 1, exit_status: -3, used: {}, stagein_failed: true, message: "no" });
  assert.deepEqual(mailBodies(h), []);
});

test("output that could not be delivered is told in the comment of a job that has ended, whatever its end", () => {
  const h = harness({ server: { job_history_enable: true } });
  const link = addHost(h, "n1");
  const words = "Unable to copy file /spool/1.OU to /full/o: ENOSPC: no space left on device, write; it is in /undelivered/1.OU";
  for (const [exit_status, expected] of [
    [0, `and finished; ${words}`],
    [3, `and failed; ${words}`],
    [-29, `and exceeded resource walltime; ${words}`],
  ] as const) {
    const id = addJob(h);
    runOn(h, id, "n1", link);
    mom(h, link, "mom-obit", { job: id, run_count: 1, exit_status, used: {}, stageout_status: 0, message: `something else\n${words}` });
    const { comment, Stageout_status, Exit_status } = jobAttrs(h, id);
    assert.ok(comment?.endsWith(` ${expected}`), comment);
    assert.deepEqual([Stageout_status, Exit_status], [0, exit_status]);
    const told = `Post job file processing error; job ${id} on host n1\nsomething else\n${words}\n`;
    assert.equal(mailBodies(h).filter((body) => body.includes(told)).length, 1);
  }
});
