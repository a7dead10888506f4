// While query_other_jobs is False, no request reveals the id or owner of another user's job, and the server's log is not
// readable by everybody.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Request } from "#protocol/messages.ts";
import { logMode } from "#server/shell/daemon.ts";
import { openLog } from "#support/log.ts";
import { ALICE, addHost, addJob, BOB, HOST, harness, obit, outcome, ROOT, runOn, statusOf } from "../harness.ts";

const HOUR = { name: "Resource_List", resource: "walltime", value: "3600" };

/** All requests of a user on a job by its id. */
const REQUESTS: readonly ((job: string) => Request)[] = [
  (job) => ({ kind: "locate-job", job }),
  (job) => ({ kind: "explain-job", job }),
  (job) => ({ kind: "wait-job", job }),
  (job) => ({ kind: "delete-job", job }),
  (job) => ({ kind: "delete-job", job, history: true }),
  (job) => ({ kind: "submit-resv", attrs: [{ name: "qmove", value: job }, HOUR] }),
  (job) => ({ kind: "submit-resv", attrs: [{ name: "reserve_job", value: job }] }),
  (job) => ({ kind: "hold-job", job, holds: "u" }),
  (job) => ({ kind: "release-job", job, holds: "u" }),
  (job) => ({ kind: "modify-job", job, attrs: [{ name: "Priority", op: "=", value: "1" }] }),
  (job) => ({ kind: "move-job", job, destination: "workq" }),
  (job) => ({ kind: "signal-job", job, signal: "SIGUSR1" }),
  (job) => ({ kind: "message-job", job, message: "x", files: "e" }),
  (job) => ({ kind: "order-job", job, other: job }),
];

test("no request tells whether another's job has an id: live, running or finished it is as unknown as one that nobody has", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const [waits, runs, over] = [addJob(h), addJob(h), addJob(h)];
  for (const id of [runs, over]) runOn(h, id, "n1", link);
  obit(h, link, over);
  h.core.state.server = { ...h.core.state.server, query_other_jobs: false, job_history_enable: true };
  for (const of of REQUESTS) {
    const nobodys = outcome(h, BOB, of(`999.${HOST}`));
    assert.match(nobodys, /^15001 /);
    for (const id of [waits, runs, over]) assert.equal(outcome(h, BOB, of(id)), nobodys, JSON.stringify(of(id)));
  }
  const shown = statusOf(h, BOB, { kind: "status", object: "job", ids: [waits, runs, over, `999.${HOST}`], history: "with" }) as {
    code?: number;
  }[];
  assert.deepEqual(
    shown.map(({ code }) => code),
    [15001, 15001, 15001, 15001],
  );
  assert.equal(outcome(h, ALICE, { kind: "locate-job", job: waits }), "ok");
  assert.equal(outcome(h, ROOT, { kind: "locate-job", job: over }), "ok");
});

test("pbsnodes -a: of the jobs on a vnode a user sees those that he may", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const [alices, bobs] = [addJob(h), addJob(h, {}, BOB)];
  for (const id of [alices, bobs]) runOn(h, id, "n1", link);
  const jobs = (who: typeof BOB): unknown =>
    (statusOf(h, who, { kind: "status", object: "node", ids: [] }) as { attrs: { jobs?: string } }[])[0]?.attrs.jobs;
  assert.equal(jobs(BOB), `${alices}/0, ${bobs}/1`);
  h.core.state.server = { ...h.core.state.server, query_other_jobs: false };
  assert.equal(jobs(BOB), `${bobs}/1`);
  assert.equal(jobs(ROOT), `${alices}/0, ${bobs}/1`);
  assert.equal(jobs({ ...BOB, user: "carol" }), undefined);
});

test("the server's log is readable by root and its group, unless pbs.conf says otherwise", () => {
  assert.deepEqual([undefined, "0644", "644", "600", "777", "x"].map(logMode), [0o640, 0o644, 0o644, 0o600, 0o666, 0o640]);
  const directory = mkdtempSync(join(tmpdir(), "partita-log-"));
  try {
    const log = openLog({ dir: directory, daemon: "Server@svr", mode: logMode(undefined), delay_ms: 0 });
    log.record(1, "Svr", "x", "text");
    log.close();
    assert.equal(statSync(log.path).mode & 0o777, 0o640);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
