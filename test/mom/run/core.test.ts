import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_CPU_ENFORCEMENT } from "#mom/job/limits.ts";
import { helloJobs } from "#mom/run/core.ts";
import type { MomEvent } from "#mom/run/event.ts";
import { helloOutputs } from "#mom/run/kept-output.ts";
import type { MomJob } from "#protocol/mom-link.ts";
import { acknowledged, exited, finished, job, OWNER, prepared, run, started, type World, world } from "../world.ts";

const S = 1000;

test("a job from its start to its acknowledged obit: what is done at each step", () => {
  const w = world();
  const j = job();
  const steps: readonly (readonly [MomEvent, readonly string[]])[] = [
    [{ kind: "start", job: j, owner: OWNER }, ["prepare 1.n1"]],
    [prepared(j), ["start 1.n1"]],
    [started(j, w.now_ms), ["mom-started 1.n1"]],
    [exited(j, w.now_ms + 3 * S, { code: 0 }, 1.5), ["finish 1.n1 deliver"]],
    [finished(j), ["mom-obit 1.n1 0"]],
    [acknowledged(j), ["drop 1.n1 1"]],
  ];
  for (const [event, expected] of steps) assert.deepEqual(w.on(event), expected, event.kind);
  assert.equal(w.state.runs.size, 0);
  assert.equal(w.records.size, 0);
});

test("the log of a job has PBS's lines in PBS's order", () => {
  const w = world();
  const j = job();
  run(w, j);
  w.on(exited(j, w.now_ms + 1 * S, { code: 0 }));
  w.on(finished(j));
  w.on(acknowledged(j));
  assert.deepEqual(w.logged(), [
    "Started, pid = 4711",
    "task 00000001 terminated",
    "Terminated",
    "task 00000001 cput=00:00:00",
    "kill_job",
    "n1 cput=00:00:00 mem=0kb",
    "Obit sent",
    "copy file request received",
    "Staged 2/2 items out over 0:00:00",
    "delete job request received",
    "kill_job",
  ]);
});

test("Exit_status is the exit value, 256 and the signal, or the code of what was done to the job", () => {
  const rows: readonly (readonly [
    what: string,
    status: { code: number } | { signal: number },
    before: readonly MomEvent[],
    expected: number,
  ])[] = [
    ["exit value", { code: 3 }, [], 3],
    ["signal 9", { signal: 9 }, [], 265],
    ["signal 15", { signal: 15 }, [], 271],
    ["deleted", { signal: 15 }, [{ kind: "terminate", data: { job: "1.n1", run_count: 1, why: "delete", kill_delay_s: 10 } }], 271],
    ["rerun", { signal: 9 }, [{ kind: "terminate", data: { job: "1.n1", run_count: 1, why: "rerun", kill_delay_s: 10 } }], -11],
  ];
  for (const [what, status, before, expected] of rows) {
    const w = world();
    const j = job();
    run(w, j);
    for (const event of before) w.on(event);
    w.on(exited(j, w.now_ms, status));
    assert.deepEqual(w.on(finished(j)), [`mom-obit 1.n1 ${expected}`], what);
  }
});

test("resources_used of a job that was never looked at: times of the kernel and the clock, no memory", () => {
  const w = world();
  const j = job();
  run(w, j);
  w.on(exited(j, w.now_ms + 61.7 * S, { code: 0 }, 12.9));
  w.on(finished(j));
  const [obit] = w.actions.flatMap((action) => (action.kind === "send" && action.type === "mom-obit" ? [action.data] : []));
  assert.deepEqual(obit?.used, { cpupercent: 0, cput: 12, mem: "0kb", ncpus: 1, vmem: "0kb", walltime: 61 });
  assert.equal(obit?.stageout_status, 1);
});

test("output that could not be delivered gives Stageout_status 0 and keeps the exit status", () => {
  const w = world();
  const j = job();
  run(w, j);
  w.on(exited(j, w.now_ms, { code: 0 }));
  w.on(finished(j, ["Unable to copy file a to b: no"]));
  const [obit] = w.actions.flatMap((action) => (action.kind === "send" && action.type === "mom-obit" ? [action.data] : []));
  assert.deepEqual([obit?.exit_status, obit?.stageout_status, obit?.message], [0, 0, "Unable to copy file a to b: no"]);
});

test("I1: a start that is not later than the last one seen is refused, the same run is told again", () => {
  const w = world();
  const first = job({ run_count: 2 });
  run(w, first);
  const start = (run_count: number): string[] => w.on({ kind: "start", job: job({ run_count }), owner: OWNER });
  assert.deepEqual(start(1), [], "stale while it runs");
  assert.deepEqual(start(2), ["mom-started 1.n1"], "the same while it runs");
  w.on(exited(first, w.now_ms, { code: 0 }));
  w.on(finished(first));
  assert.deepEqual(start(2), ["mom-obit 1.n1 0"], "the same after its end");
  w.on(acknowledged(first));
  assert.deepEqual(start(2), [], "the same after it was acknowledged");
  assert.deepEqual(start(1), [], "older after it was acknowledged");
  assert.deepEqual(start(3), ["prepare 1.n1"], "later");
});

test("a later run waits until nothing of the earlier one is left", () => {
  const w = world();
  const first = job();
  run(w, first);
  const second = job({ run_count: 2 });
  assert.deepEqual(w.on({ kind: "start", job: second, owner: OWNER }), ["signal 1.n1 9"]);
  assert.deepEqual(w.on(exited(first, w.now_ms, { signal: 9 })), ["finish 1.n1 drop"]);
  assert.deepEqual(w.on(finished(first)), ["drop 1.n1 1", "prepare 1.n1"]);
  assert.equal(w.state.runs.get("1.n1")?.job.run_count, 2);
});

test("I2: an obit is repeated at every welcome until it is acknowledged", () => {
  const w = world();
  const j = job();
  run(w, j);
  w.on({ kind: "disconnected" });
  w.on(exited(j, w.now_ms, { code: 0 }));
  assert.deepEqual(w.on(finished(j)), [], "nobody to tell");
  for (let time = 0; time < 2; time++) {
    assert.deepEqual(w.on({ kind: "connected" }), ["hello"]);
    assert.deepEqual(helloJobs(w.state), [{ job: "1.n1", run_count: 1, state: "ended" }]);
    assert.deepEqual(w.on({ kind: "welcome", data: { keep: ["1.n1"], kill: [], acknowledged: [] } }), ["mom-obit 1.n1 0"]);
  }
  assert.deepEqual(w.on({ kind: "welcome", data: { keep: [], kill: [], acknowledged: [{ job: "1.n1", run_count: 1 }] } }), ["drop 1.n1 1"]);
});

test("a job the server does not want is killed, its output dropped, and no obit sent", () => {
  const w = world();
  const j = job();
  run(w, j);
  w.on({ kind: "connected" });
  assert.deepEqual(
    w.on({ kind: "welcome", data: { keep: [], kill: ["1.n1"], acknowledged: [] } }).filter((word) => word !== "mom-started 1.n1"),
    ["signal 1.n1 9"],
  );
  assert.deepEqual(w.on(exited(j, w.now_ms, { signal: 9 })), ["finish 1.n1 drop"]);
  assert.deepEqual(w.on(finished(j)), ["drop 1.n1 1"]);
});

test("delete: SIGTERM, SIGKILL after the delay and once only; while suspended also SIGCONT", () => {
  const terminate: MomEvent = { kind: "terminate", data: { job: "1.n1", run_count: 1, why: "delete", kill_delay_s: 10 } };
  const w = world();
  run(w, job());
  assert.deepEqual(w.on(terminate), ["signal 1.n1 15"]);
  assert.deepEqual(w.on(terminate), [], "asked twice");
  w.now_ms += 9 * S;
  assert.deepEqual(w.on({ kind: "tick" }), []);
  w.now_ms += 1 * S;
  assert.deepEqual(w.on({ kind: "tick" }), ["signal 1.n1 9"]);
  assert.deepEqual(w.on({ kind: "tick" }), []);

  const stopped = world();
  run(stopped, job());
  stopped.on({ kind: "signal", data: { token: 1, job: "1.n1", signal: "suspend" } });
  assert.deepEqual(stopped.on(terminate), ["signal 1.n1 15", "signal 1.n1 18"]);
});

test("a job deleted before it started does not start", () => {
  const w = world();
  const j = job();
  w.on({ kind: "start", job: j, owner: OWNER });
  w.on({ kind: "terminate", data: { job: j.id, run_count: 1, why: "delete", kill_delay_s: 10 } });
  assert.deepEqual(w.on(prepared(j)), ["finish 1.n1 deliver"]);
  assert.deepEqual(w.on(finished(j)), ["mom-obit 1.n1 271"]);
});

test("a job deleted while the starter starts it is signalled as soon as it runs", () => {
  const w = world();
  const j = job();
  w.on({ kind: "start", job: j, owner: OWNER });
  w.on(prepared(j));
  assert.deepEqual(w.on({ kind: "terminate", data: { job: j.id, run_count: 1, why: "delete", kill_delay_s: 10 } }), []);
  assert.deepEqual(w.on(started(j, w.now_ms)), ["mom-started 1.n1", "signal 1.n1 15"]);
});

test("signals: names, numbers, suspend and resume, and what is refused", () => {
  const rows: readonly (readonly [signal: string, words: readonly string[]])[] = [
    ["SIGUSR1", ["signal 1.n1 10", "mom-result ok"]],
    ["usr2", ["signal 1.n1 12", "mom-result ok"]],
    ["0", ["signal 1.n1 0", "mom-result ok"]],
    ["23", ["signal 1.n1 23", "mom-result ok"]],
    ["SIGNONE", ["mom-result 15013"]],
    ["resume", ["mom-result ok"]],
    ["suspend", ["signal 1.n1 19", "mom-result ok"]],
    ["admin-suspend", ["mom-result ok"]],
    ["resume", ["signal 1.n1 18", "mom-result ok"]],
  ];
  const w = world();
  run(w, job());
  for (const [signal, words] of rows) assert.deepEqual(w.on({ kind: "signal", data: { token: 1, job: "1.n1", signal } }), words, signal);
  assert.deepEqual(w.on({ kind: "signal", data: { token: 1, job: "9.n1", signal: "TERM" } }), ["mom-result 15001"]);
});

test("walltime counts without the time suspended, and passing it ends the job with -29 and PBS's text", () => {
  const w = world();
  const j = job({ attrs: { Resource_List: { ncpus: 1, walltime: 10 } } });
  run(w, j);
  const signal = (name: string): void => void w.on({ kind: "signal", data: { token: 1, job: "1.n1", signal: name } });
  w.now_ms += 5 * S;
  signal("suspend");
  w.now_ms += 60 * S;
  assert.deepEqual(w.on({ kind: "tick" }), []);
  signal("resume");
  w.now_ms += 5 * S;
  assert.deepEqual(w.on({ kind: "tick" }), [], "10 s is within a limit of 10 s");
  w.now_ms += 2 * S;
  assert.deepEqual(w.on({ kind: "tick" }), [
    "append /pbs/spool/1.n1.ER =>> PBS: job killed: walltime 12 exceeded limit 10",
    "signal 1.n1 15",
  ]);
  w.on(exited(j, w.now_ms, { signal: 15 }));
  assert.deepEqual(w.on(finished(j)), ["mom-obit 1.n1 -29"]);
});

test("limits on what samples show: cput, vmem, and mem only where it is enforced", () => {
  const seen = { cput_s: 7, mem_kb: 5000, vmem_kb: 9000 };
  const rows: readonly (readonly [limits: { readonly [name: string]: string | number }, enforce_mem: boolean, text: string | null])[] = [
    [{ cput: 5 }, false, "cput 7 exceeded limit 5"],
    [{ cput: 7 }, false, null],
    [{ vmem: "8000kb" }, false, "vmem 9000kb exceeded limit 8000kb"],
    [{ vmem: "9mb" }, false, null],
    [{ mem: "4mb" }, false, null],
    [{ mem: "4mb" }, true, "mem 5000kb exceeded limit 4096kb"],
  ];
  for (const [limits, mem, text] of rows) {
    const w = world({ config: { enforce: { mem, cputmult: 1, wallmult: 1, cpu: NO_CPU_ENFORCEMENT } } });
    run(w, job({ attrs: { Resource_List: { ncpus: 1, ...limits } } }));
    w.now_ms += 10 * S;
    const words = w.on({ kind: "sampled", seen: new Map([[4711, seen]]) });
    const expected = text === null ? [] : [`append /pbs/spool/1.n1.ER =>> PBS: job killed: ${text}`, "signal 1.n1 15"];
    assert.deepEqual(words, [...expected, "mom-usage 1.n1"], JSON.stringify(limits));
  }
});

test("the peak that the kernel tells at the end counts when no sample was larger", () => {
  for (const [seen_kb, peak_kb, mem] of [
    [0, 204800, "204800kb"],
    [500, 204800, "204800kb"],
    [300000, 204800, "300000kb"],
  ] as const) {
    const w = world();
    const j = job();
    run(w, j);
    if (seen_kb > 0) w.on({ kind: "sampled", seen: new Map([[4711, { cput_s: 1, mem_kb: seen_kb, vmem_kb: seen_kb }]]) });
    w.on({ kind: "exited", run: { job: j.id, run_count: j.run_count, status: { code: 0 }, cput_s: 1, peak_kb, at_ms: w.now_ms } });
    w.on(finished(j));
    const obit = w.actions.findLast((action) => action.kind === "send" && action.type === "mom-obit");
    assert.equal(obit?.kind === "send" && obit.type === "mom-obit" ? obit.data.used["mem"] : null, mem);
  }
});

test("memory is a high-water mark and cpupercent a moving average", () => {
  const w = world();
  run(w, job());
  const used = (cput_s: number, kb: number): unknown => {
    w.now_ms += 10 * S;
    w.on({ kind: "sampled", seen: new Map([[4711, { cput_s, mem_kb: kb, vmem_kb: 2 * kb }]]) });
    const last = w.actions.at(-1);
    return last?.kind === "send" && last.type === "mom-usage" ? last.data.jobs[0]?.used : null;
  };
  assert.deepEqual(used(10, 500), { cpupercent: 40, cput: 10, mem: "500kb", ncpus: 1, vmem: "1000kb", walltime: 10 });
  assert.deepEqual(used(10, 300), { cpupercent: 36, cput: 10, mem: "500kb", ncpus: 1, vmem: "1000kb", walltime: 20 });
  assert.deepEqual(
    used(8, 600),
    { cpupercent: 32, cput: 10, mem: "600kb", ncpus: 1, vmem: "1200kb", walltime: 30 },
    "cput never goes back",
  );
});

test("qmsg appends to the files named; to both only once when they are joined", () => {
  const w = world();
  const j = job();
  run(w, j);
  const message = (files: string): string[] => w.on({ kind: "message", data: { token: 1, job: j.id, files, message: "hello" } });
  assert.deepEqual(message("E"), ["append /pbs/spool/1.n1.ER hello", "mom-result ok"]);
  assert.deepEqual(message("OE"), ["append /pbs/spool/1.n1.OU hello", "append /pbs/spool/1.n1.ER hello", "mom-result ok"]);
});

test("qalter of a running job: new limits count, output goes to its new place", () => {
  const w = world();
  const j = job({ attrs: { Resource_List: { ncpus: 1, walltime: 10 } } });
  run(w, j);
  w.on({ kind: "modify", data: { job: j.id, attrs: { Resource_List: { ncpus: 1, walltime: 100 }, Output_Path: "n1:/elsewhere/out" } } });
  w.now_ms += 50 * S;
  assert.deepEqual(w.on({ kind: "tick" }), []);
  w.on(exited(j, w.now_ms, { code: 0 }));
  const [finish] = w.actions.flatMap((action) => (action.kind === "finish" ? [action.request] : []));
  assert.deepEqual([finish?.plan.stdout.path, finish?.plan.stdout.target], ["/pbs/spool/1.n1.OU", { host: null, path: "/elsewhere/out" }]);
});

test("what keeps a job from starting: unknown user, files refused, program not executed", () => {
  const w = world();
  assert.deepEqual(w.on({ kind: "start", job: job({ id: "1.n1" }), owner: null }), ["mom-obit 1.n1 -10"]);
  const second = job({ id: "2.n1" });
  w.on({ kind: "start", job: second, owner: OWNER });
  const refused: MomEvent = {
    kind: "prepared",
    outcome: { job: "2.n1", run_count: 1, ok: false, exit_status: -21, text: "not the owner's directory" },
  };
  assert.deepEqual(w.on(refused), ["mom-obit 2.n1 -21"]);
  const third = job({ id: "3.n1" });
  w.on({ kind: "start", job: third, owner: OWNER });
  w.on(prepared(third));
  assert.deepEqual(
    w.on({ kind: "start-failed", run: { job: "3.n1", run_count: 1, exit_status: 254, text: "no such program", at_ms: w.now_ms } }),
    ["finish 3.n1 deliver"],
  );
  assert.deepEqual(w.on(finished(third)), ["mom-obit 3.n1 254"]);
});

test("output of a run that will be repeated waits in spool, of one that cannot be it is delivered", () => {
  for (const [rerunable, fate] of [
    [true, "keep"],
    [false, "deliver"],
  ] as const) {
    const w = world();
    const j = job({ attrs: { Rerunable: rerunable } });
    run(w, j);
    assert.deepEqual(w.on({ kind: "terminate", data: { job: j.id, run_count: 1, why: "rerun", kill_delay_s: 10 } }), ["signal 1.n1 9"]);
    assert.deepEqual(w.on(exited(j, w.now_ms, { signal: 9 })), [`finish 1.n1 ${fate}`]);
  }
});

test("output that is kept is told at the hello until it is delivered or nobody waits for it; the next run keeps it if it does not come about", () => {
  const kept = (w: World): readonly string[] | undefined => helloOutputs(w.state).outputs;
  const again = (): { w: World; second: MomJob } => {
    const w = world();
    const first = job();
    run(w, first);
    w.on({ kind: "terminate", data: { job: first.id, run_count: 1, why: "rerun", kill_delay_s: 0 } });
    w.on(exited(first, w.now_ms, { signal: 9 }));
    assert.equal(kept(w), undefined, "the run that is there looks after it");
    assert.deepEqual(w.on(finished(first)), ["mom-obit 1.n1 -11"]);
    assert.deepEqual(kept(w), ["1.n1"]);
    w.on(acknowledged(first));
    assert.deepEqual(kept(w), ["1.n1"]);
    return { w, second: job({ run_count: 2 }) };
  };
  const purge = "purge /pbs/spool/1.n1.OU,/pbs/spool/1.n1.ER";
  const gone = again();
  assert.deepEqual(gone.w.on({ kind: "discard", job: "1.n1" }), [purge]);
  assert.equal(kept(gone.w), undefined);
  const noted = gone.w.actions.flatMap((action) => (action.kind === "note-kept" ? [action.kept] : []));
  assert.deepEqual(noted, [true], "the note stays until the files are gone");
  assert.deepEqual(gone.w.on({ kind: "purged", job: "1.n1" }), []);
  const last = gone.w.actions.at(-1);
  assert.deepEqual(last, { kind: "note-kept", job: "1.n1", kept: false });

  const { w, second } = again();
  w.on({ kind: "start", job: second, owner: OWNER });
  const request = w.actions.findLast((action) => action.kind === "prepare")?.request;
  assert.equal(request?.kept, true);
  assert.equal(kept(w), undefined);
  w.on(prepared(second));
  assert.deepEqual(
    w.on({ kind: "start-failed", run: { job: "1.n1", run_count: 2, exit_status: -3, text: "no processes", at_ms: 0 } }),
    ["finish 1.n1 keep"],
    "it did not run, but the run before it did",
  );
  w.on(finished(second));
  w.on(acknowledged(second));
  const third = job({ run_count: 3 });
  run(w, third);
  w.on(exited(third, w.now_ms, { code: 0 }));
  assert.deepEqual(w.on(finished(third)), ["mom-obit 1.n1 0"]);
  assert.equal(kept(w), undefined);
});

test("a job that is gone when its mom tells of its last run leaves no output behind", () => {
  const w = world();
  const j = job();
  run(w, j);
  w.on({ kind: "terminate", data: { job: j.id, run_count: 1, why: "rerun", kill_delay_s: 0 } });
  w.on(exited(j, w.now_ms, { signal: 9 }));
  w.on(finished(j));
  w.state.checkpoints.add("1.n1");
  assert.deepEqual(w.on({ kind: "discard", job: "1.n1" }), [
    "drop 1.n1 1",
    "drop-checkpoint /pbs/checkpoint/1.n1.CK",
    "purge /pbs/spool/1.n1.OU,/pbs/spool/1.n1.ER",
  ]);
});

test("a run that is ended while an earlier one is still here never begins; the server has its obit", () => {
  const w = world();
  const first = job();
  run(w, first);
  const second = job({ run_count: 2 });
  assert.deepEqual(w.on({ kind: "start", job: second, owner: OWNER }), ["signal 1.n1 9"]);
  assert.deepEqual(w.on({ kind: "terminate", data: { job: "1.n1", run_count: 2, why: "delete", kill_delay_s: 0 } }), []);
  assert.deepEqual(w.on({ kind: "start", job: second, owner: OWNER }), ["signal 1.n1 9"], "the start comes again");
  w.on(exited(first, w.now_ms, { signal: 9 }));
  assert.deepEqual(w.on(finished(first)), ["drop 1.n1 1", "mom-obit 1.n1 271"]);
  assert.deepEqual(w.on(acknowledged(second)), ["drop 1.n1 2"]);
  assert.equal(w.state.runs.size, 0);
});

test("discard: of a job that is gone, the output kept for its next run is removed", () => {
  const w = world();
  assert.deepEqual(
    w.on({ kind: "discard", job: "7.n1" }),
    [],
    "what lies in spool without a note may be output that could not be delivered",
  );
  w.state.kept.add("7.n1");
  assert.deepEqual(w.on({ kind: "discard", job: "7.n1" }), ["purge /pbs/spool/7.n1.OU,/pbs/spool/7.n1.ER"]);
  assert.deepEqual(w.on({ kind: "discard", job: "../etc/passwd" }), []);
});

test("the mom told to end kills its jobs, and goes when each has its obit", () => {
  const w = world();
  const j = job();
  run(w, j);
  assert.deepEqual(w.on({ kind: "stop", manner: "kill" }), ["signal 1.n1 9"]);
  assert.deepEqual(w.on({ kind: "start", job: job({ id: "2.n1" }), owner: OWNER }), [], "nothing new is begun");
  w.on(exited(j, w.now_ms, { signal: 9 }));
  assert.deepEqual(w.on(finished(j)), ["mom-obit 1.n1 -11", "exit"]);
  const idle = world();
  assert.deepEqual(idle.on({ kind: "stop", manner: "kill" }), ["exit"]);
  const leaving = world();
  run(leaving, job());
  assert.deepEqual(leaving.on({ kind: "stop", manner: "leave" }), ["exit"]);
});

test("$enforce cpuburst and cpuaverage: texts and codes", () => {
  const rows: readonly (readonly [
    cpu: object,
    ncpus: number,
    walltime_s: number,
    cput_s: number,
    end: readonly [string, number] | null,
  ])[] = [
    [{ burst: true }, 1, 10, 100, ["ncpus 4.0 exceeded limit 1 (burst)", -24]],
    [{ burst: true }, 2, 10, 80, null],
    [{ burst: true, delta_percent_over: 0, delta_cpufactor: 1 }, 2, 10, 80, ["ncpus 3.2 exceeded limit 2 (burst)", -24]],
    [{ average: true }, 1, 200, 400, ["ncpus 2.00 exceeded limit 1 (sum)", -25]],
    [{ average: true }, 1, 119, 400, null],
    [{ average: true, trialperiod_s: 60 }, 1, 119, 400, ["ncpus 3.36 exceeded limit 1 (sum)", -25]],
    [{ average: true }, 1, 200, 300, null],
    [{}, 1, 200, 4000, null],
  ];
  for (const [cpu, ncpus, walltime_s, cput_s, end] of rows) {
    const w = world({ config: { enforce: { mem: false, cputmult: 1, wallmult: 1, cpu: { ...NO_CPU_ENFORCEMENT, ...cpu } } } });
    const j = job({ attrs: { Resource_List: { ncpus } } });
    run(w, j);
    w.now_ms += walltime_s * S;
    const words = w.on({ kind: "sampled", seen: new Map([[4711, { cput_s, mem_kb: 0, vmem_kb: 0 }]]) });
    const killed = end === null ? [] : [`append /pbs/spool/1.n1.ER =>> PBS: job killed: ${end[0]}`, "signal 1.n1 15"];
    assert.deepEqual(words, [...killed, "mom-usage 1.n1"], JSON.stringify([cpu, ncpus, walltime_s, cput_s]));
    if (end === null) continue;
    w.on(exited(j, w.now_ms, { signal: 15 }));
    assert.deepEqual(w.on(finished(j)), [`mom-obit 1.n1 ${end[1]}`]);
  }
});
