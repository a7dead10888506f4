// Steps of a run at which hooks or scripts run, and the effects of their answers (docs/reference/execution.md 6 and 9,
// docs/reference/files.md 7).

import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_REQUESTS } from "#hooks/run/hook-input.ts";
import type { SequenceEnd } from "#hooks/run/hook-sequence.ts";
import type { ScriptEnd } from "#mom/job/pelog.ts";
import { helloJobs } from "#mom/run/core.ts";
import type { MomHook } from "#protocol/mom-link.ts";
import { acknowledged, exited, finished, job, OWNER, prepared, run, started, type World, world } from "../world.ts";

const hook = (name: string, event: string, more: Partial<MomHook> = {}): MomHook => ({
  name,
  type: "site",
  event: event.split(","),
  user: "pbsadmin",
  alarm: 30,
  freq: 120,
  order: 1,
  debug: false,
  fail_action: ["none"],
  script: { language: "python", content: "" },
  config: null,
  ...more,
});

function worldWith(...hooks: readonly MomHook[]): World {
  const w = world();
  give(w, hooks);
  return w;
}
const give = (w: World, hooks: readonly MomHook[]): void =>
  void w.on({ kind: "hooks", hooks: { digest: "d1", hooks, resources: {} }, from: "server" });

/** Answers the latest question. */
function answer(w: World, end: Partial<SequenceEnd> = {}): string[] {
  const step = w.state.next_step - 1;
  const whole: SequenceEnd = {
    kind: "accept",
    hook: "h",
    message: null,
    changes: {},
    requests: NO_REQUESTS,
    fail_action: [],
    accepted: [],
    logs: [],
    ...end,
  };
  return w.on({ kind: "hooked", step, end: whole });
}
const say = (w: World, end: ScriptEnd): string[] => w.on({ kind: "scripted", step: w.state.next_step - 1, end });
const wishes = (wish: "rerun" | "delete"): SequenceEnd["requests"] => ({ ...NO_REQUESTS, jobs: { "1.n1": wish } });

const EVENTS =
  "execjob_begin,execjob_prologue,execjob_launch,execjob_epilogue,execjob_end,execjob_abort,execjob_preterm,execjob_postsuspend,execjob_preresume";

test("a job asks at each of its stations and goes on when it may", () => {
  const w = worldWith(hook("h", EVENTS));
  const j = job();
  assert.deepEqual(w.on({ kind: "start", job: j, owner: OWNER }), ["hooks execjob_begin h"]);
  assert.deepEqual(answer(w), ["prepare 1.n1"]);
  assert.deepEqual(w.on(prepared(j)), ["hooks execjob_prologue h"]);
  assert.deepEqual(answer(w), ["hooks execjob_launch h"]);
  assert.deepEqual(helloJobs(w.state), [{ job: "1.n1", run_count: 1, state: "starting" }]);
  assert.deepEqual(answer(w), ["start 1.n1"]);
  assert.deepEqual(w.on(started(j, w.now_ms)), ["mom-started 1.n1"]);
  assert.deepEqual(w.on(exited(j, w.now_ms, { code: 3 })), ["hooks execjob_epilogue h"]);
  assert.deepEqual(answer(w), ["finish 1.n1 deliver"]);
  assert.deepEqual(w.on(finished(j)), ["mom-obit 1.n1 3"]);
  assert.deepEqual(w.on(acknowledged(j)), ["hooks execjob_end h"]);
  assert.deepEqual(helloJobs(w.state), [{ job: "1.n1", run_count: 1, state: "ended" }]);
  assert.deepEqual(answer(w), ["drop 1.n1 1"]);
});

test("what hooks of begin, prologue and launch answer becomes the job's exit status; output of a run that never was is dropped", () => {
  const rows: readonly (readonly [what: string, end: Partial<SequenceEnd>, exit_status: number])[] = [
    ["reject", { kind: "reject", message: "no" }, -16],
    ["reject and delete()", { kind: "reject", message: "no", requests: wishes("delete") }, -17],
    ["accept and rerun()", { requests: wishes("rerun") }, -18],
    ["accept and delete()", { requests: wishes("delete") }, -19],
    ["exception", { kind: "failed" }, -22],
    ["alarm", { kind: "alarm" }, -22],
  ];
  for (const event of ["execjob_begin", "execjob_prologue", "execjob_launch"]) {
    for (const [what, end, exit_status] of rows) {
      const w = worldWith(hook("h", event));
      const j = job();
      w.on({ kind: "start", job: j, owner: OWNER });
      if (event !== "execjob_begin") w.on(prepared(j));
      const words = answer(w, end);
      if (event === "execjob_begin") assert.deepEqual(words, [`mom-obit 1.n1 ${exit_status}`], `${event} ${what}`);
      else {
        const fate = exit_status === -17 || exit_status === -19 ? "deliver" : "drop";
        assert.deepEqual(words, [`finish 1.n1 ${fate}`], `${event} ${what}`);
        assert.deepEqual(w.on(finished(j)), [`mom-obit 1.n1 ${exit_status}`], `${event} ${what}`);
      }
    }
  }
});

test("a job deleted while its hooks run does not start, whatever they answer", () => {
  for (const [events, before] of [
    ["execjob_begin", []],
    ["execjob_prologue", ["prepared"]],
  ] as const) {
    const w = worldWith(hook("h", events));
    const j = job();
    w.on({ kind: "start", job: j, owner: OWNER });
    if (before.length > 0) w.on(prepared(j));
    assert.deepEqual(w.on({ kind: "terminate", data: { job: j.id, run_count: 1, why: "delete", kill_delay_s: 5 } }), []);
    answer(w);
    if (before.length > 0) w.on(finished(j));
    assert.equal(
      w.actions.some((action) => action.kind === "start"),
      false,
      events,
    );
    assert.equal(
      w.actions.some((action) => action.kind === "send" && action.type === "mom-obit"),
      true,
      events,
    );
  }
});

test("execjob_launch may start another program with other arguments and variables", () => {
  const w = worldWith(hook("h", "execjob_launch"));
  const j = job({ script: null, attrs: { executable: "<jsdl-hpcpa:Executable>/bin/true</jsdl-hpcpa:Executable>" } });
  w.on({ kind: "start", job: j, owner: OWNER });
  w.on(prepared(j));
  answer(w, { changes: { progname: "/bin/echo", argv: ["echo", "a b"], env: { A: "1", B: "x=y" } } });
  const start = w.actions.find((action) => action.kind === "start");
  assert.deepEqual(start?.kind === "start" && [start.spec.path, start.spec.argv, start.spec.env], [
    "/bin/echo",
    ["echo", "a b"],
    ["A=1", "B=x=y"],
  ]);
});

test("an epilogue hook that wants the job run again: its output waits, but that of a job that is being deleted is delivered", () => {
  for (const [why, fate] of [
    ["rerun", "keep"],
    ["delete", "deliver"],
  ] as const) {
    const w = worldWith(hook("h", "execjob_epilogue"));
    const j = job();
    run(w, j);
    w.on({ kind: "terminate", data: { job: j.id, run_count: 1, why, kill_delay_s: 0 } });
    w.on(exited(j, w.now_ms, { signal: 9 }));
    assert.deepEqual(answer(w, { requests: wishes("rerun") }), [`finish 1.n1 ${fate}`], why);
    assert.deepEqual(w.on(finished(j)), ["mom-obit 1.n1 -18"]);
  }
});

test("a run that is given up while its execjob_begin hooks are asked takes what an earlier one kept along", () => {
  const w = worldWith(hook("h", "execjob_begin"));
  w.state.kept.add("1.n1");
  w.on({ kind: "start", job: job({ run_count: 2 }), owner: OWNER });
  w.on({ kind: "welcome", data: { keep: [], kill: ["1.n1"], acknowledged: [] } });
  assert.deepEqual(answer(w), ["purge /pbs/spool/1.n1.OU,/pbs/spool/1.n1.ER", "drop 1.n1 2"]);
  assert.equal(w.state.kept.size, 0);
});

test("what hooks change of the job goes to the server, and counts for this run at once", () => {
  const w = worldWith(hook("h", "execjob_begin,execjob_epilogue"));
  const j = job();
  w.on({ kind: "start", job: j, owner: OWNER });
  const words = answer(w, { hook: "h", changes: { job: { Account_Name: "acct", Resource_List: { walltime: "00:01:00" } } } });
  const told = { hook: "h", event: "execjob_begin", actions: [], restart_cycle: false, vnodes: {} };
  const changes = { Account_Name: "acct", Resource_List: { walltime: "00:01:00" } };
  assert.deepEqual(words, [`mom-hook ${JSON.stringify({ ...told, job: { job: "1.n1", run_count: 1, changes } })}`, "prepare 1.n1"]);
  assert.deepEqual(w.state.runs.get("1.n1")?.job.attrs["Resource_List"], { ncpus: 1, walltime: 60 });
  w.on(prepared(j));
  w.on(started(j, w.now_ms));
  w.on(exited(j, w.now_ms, { code: 0 }));
  answer(w, { changes: { job: { resources_used: { vmem: "9kb", ncpus: "no number" } } } });
  w.on(finished(j));
  const obit = w.actions.find((action) => action.kind === "send" && action.type === "mom-obit");
  assert.ok(obit?.kind === "send" && obit.type === "mom-obit");
  assert.deepEqual([obit.data.used["vmem"], obit.data.used["ncpus"]], ["9kb", 1]);
});

test("of fail_action the server hears what is to be done now; what it cannot hear is told later", () => {
  const w = worldWith(hook("h", "execjob_begin", { fail_action: ["offline_vnodes", "scheduler_restart_cycle"] }));
  w.on({ kind: "disconnected" });
  w.on({ kind: "start", job: job(), owner: OWNER });
  assert.deepEqual(answer(w, { kind: "alarm", fail_action: ["offline_vnodes", "scheduler_restart_cycle"] }), []);
  w.on({ kind: "connected" });
  const told = w.on({ kind: "welcome", data: { keep: [], kill: [], acknowledged: [] } });
  const report = {
    hook: "h",
    event: "execjob_begin",
    actions: ["offline_vnodes", "scheduler_restart_cycle"],
    restart_cycle: false,
    vnodes: {},
  };
  assert.deepEqual(told, ["mom-obit 1.n1 -22", `mom-hook ${JSON.stringify(report)}`]);
});

test("execjob_preterm: who is deleted goes on if a hook wants it; by force and for a rerun nobody is asked", () => {
  const terminate = (why: "delete" | "rerun", kill_delay_s: number) =>
    ({ kind: "terminate", data: { job: "1.n1", run_count: 1, why, kill_delay_s } }) as const;
  const w = worldWith(hook("h", "execjob_preterm"));
  run(w, job());
  assert.deepEqual(w.on(terminate("delete", 10)), ["hooks execjob_preterm h"]);
  assert.deepEqual(w.on(terminate("delete", 10)), [], "asked once");
  assert.deepEqual(answer(w, { kind: "reject", message: "stay" }), ["mom-kept 1.n1 stay"]);
  w.on(terminate("delete", 10));
  assert.deepEqual(answer(w), ["signal 1.n1 15"]);
  for (const [why, delay_s] of [
    ["delete", 0],
    ["rerun", 10],
  ] as const) {
    const forced = worldWith(hook("h", "execjob_preterm"));
    run(forced, job());
    assert.deepEqual(forced.on(terminate(why, delay_s)), ["signal 1.n1 9"], why);
  }
});

test("execjob_preresume keeps a job suspended; execjob_postsuspend comes afterwards", () => {
  const w = worldWith(hook("h", "execjob_postsuspend,execjob_preresume"));
  run(w, job());
  const signal = (token: number, name: string) => w.on({ kind: "signal", data: { token, job: "1.n1", signal: name } });
  assert.deepEqual(signal(1, "suspend"), ["signal 1.n1 19", "hooks execjob_postsuspend h", "mom-result ok"]);
  assert.deepEqual(answer(w, { kind: "reject", message: "too late" }), []);
  assert.deepEqual(signal(2, "resume"), ["hooks execjob_preresume h"]);
  assert.deepEqual(answer(w, { kind: "reject", message: "not now" }), ["mom-result 15169"]);
  assert.deepEqual(signal(3, "resume"), ["hooks execjob_preresume h"]);
  assert.deepEqual(answer(w), ["signal 1.n1 18", "mom-result ok"]);
});

test("exechost_periodic runs every freq seconds and may give up jobs; $reject_root_scripts takes no hooks", () => {
  const w = worldWith(hook("p", "exechost_periodic", { freq: 60 }));
  run(w, job());
  w.on({ kind: "tick" });
  w.now_ms += 61_000;
  assert.deepEqual(w.on({ kind: "tick" }), ["hooks exechost_periodic p"]);
  w.now_ms += 61_000;
  assert.deepEqual(w.on({ kind: "tick" }), [], "it still runs");
  assert.deepEqual(answer(w, { requests: wishes("rerun") }), ["signal 1.n1 15"]);
  w.on(exited(job(), w.now_ms, { signal: 15 }));
  assert.deepEqual(w.on(finished(job())), ["mom-obit 1.n1 -18"]);

  const open = world();
  give(open, [hook("p", "execjob_begin")]);
  assert.deepEqual(open.logged(), Array(2).fill("copy hook-related file request received"), "attributes and script");
  give(open, [hook("p", "execjob_begin", { freq: 60 })]);
  assert.equal(open.logged().length, 1, "attributes alone");

  const closed = world({ config: { reject_root_scripts: true } });
  give(closed, [hook("p", "execjob_begin")]);
  assert.deepEqual(closed.state.hooks.hooks, []);
  assert.deepEqual(closed.logged(), ["execution of root scripts rejected"]);
});

test("prologue: 0 runs, 1 ends the job, anything else sends it back; the epilogue changes nothing", () => {
  const rows: readonly (readonly [end: ScriptEnd, words: readonly string[]])[] = [
    [{ kind: "ended", code: 0, text: "" }, ["start 1.n1"]],
    [
      { kind: "ended", code: 1, text: "nonzero p/e exit status" },
      [
        "append /pbs/spool/1.n1.ER Could not run prolog: pro/epilogue failed, file: /pbs/mom_priv/prologue, exit: 1, nonzero p/e exit status",
        "finish 1.n1 deliver",
      ],
    ],
    [{ kind: "ended", code: 2, text: "nonzero p/e exit status" }, ["finish 1.n1 drop"]],
    [{ kind: "ended", code: -1, text: "Permission Error" }, ["finish 1.n1 drop"]],
    [{ kind: "ended", code: -3, text: "wait failed" }, ["finish 1.n1 drop"]],
  ];
  for (const [end, words] of rows) {
    const w = world({ scripts: true });
    w.on({ kind: "start", job: job(), owner: OWNER });
    assert.deepEqual(w.on(prepared(job())), ["script prologue 1.n1|alice|users|ncpus=1"]);
    assert.deepEqual(say(w, end), words, JSON.stringify(end));
    if (end.kind !== "ended" || end.code !== 0) continue;
    w.on(started(job(), w.now_ms));
    const used = "cpupercent=0,cput=00:00:00,mem=0kb,ncpus=1,vmem=0kb,walltime=00:00:02";
    assert.deepEqual(w.on(exited(job(), w.now_ms + 2000, { code: 4 })), [
      `script epilogue 1.n1|alice|users|name|4711|ncpus=1|${used}|workq|null|4`,
    ]);
    assert.deepEqual(say(w, { kind: "ended", code: 9, text: "nonzero p/e exit status" }), ["finish 1.n1 deliver"]);
    assert.deepEqual(w.on(finished(job())), ["mom-obit 1.n1 4"]);
  }
});

test("where hooks of their event exist the scripts are not run", () => {
  const w = world({ scripts: true });
  give(w, [hook("h", "execjob_prologue,execjob_epilogue")]);
  run(w, job());
  assert.equal(
    w.actions.some((action) => action.kind === "run-script"),
    false,
  );
});

test("an answer that comes when its run is over means nothing", () => {
  const w = worldWith(hook("h", "execjob_begin"));
  w.on({ kind: "start", job: job(), owner: OWNER });
  const step = w.state.next_step - 1;
  w.on({ kind: "start", job: job({ run_count: 2 }), owner: OWNER });
  assert.deepEqual(answer(w), ["drop 1.n1 1", "hooks execjob_begin h"]);
  assert.deepEqual(w.on({ kind: "scripted", step, end: { kind: "none" } }), []);
});

test("a run that was ended before it could begin says whether it is to run again, and that output of the run before is kept", () => {
  for (const [asked, status] of [
    [["rerun"], -11],
    [["delete"], 271],
    [["rerun", "delete"], 271],
  ] as const) {
    const w = worldWith(hook("h", "execjob_end"));
    const first = job();
    run(w, first);
    w.on({ kind: "terminate", data: { job: first.id, run_count: 1, why: "rerun", kill_delay_s: 0 } });
    w.on(exited(first, w.now_ms, { signal: 9 }));
    w.on(finished(first));
    assert.deepEqual(w.on(acknowledged(first)), ["hooks execjob_end h"]);
    w.on({ kind: "start", job: job({ run_count: 2 }), owner: OWNER });
    for (const why of asked) w.on({ kind: "terminate", data: { job: "1.n1", run_count: 2, why, kill_delay_s: 0 } });
    assert.deepEqual(answer(w), ["drop 1.n1 1", `mom-obit 1.n1 ${status}`]);
    const sent = w.actions.findLast((action) => action.kind === "send" && action.type === "mom-obit");
    assert.ok(sent?.kind === "send" && sent.type === "mom-obit" && sent.data.kept === true);
  }
});

test("a run that is to be run again while its execjob_begin hooks run says so", () => {
  const w = worldWith(hook("h", "execjob_begin"));
  w.on({ kind: "start", job: job(), owner: OWNER });
  w.on({ kind: "terminate", data: { job: "1.n1", run_count: 1, why: "rerun", kill_delay_s: 0 } });
  assert.deepEqual(answer(w), ["mom-obit 1.n1 -11"]);
});
