import assert from "node:assert/strict";
import { test } from "node:test";
import type { TaskPlace } from "#mom/job/sister.ts";
import type { TaskAsker, TaskWanted } from "#mom/run/task-question.ts";
import { exited, job, run, type World, world } from "../world.ts";

const TWO = { exec_host: "n1/0+n2/0", exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)", tasks: { n1: "/n1.sock", n2: "/n2.sock" } };
const ME: TaskAsker = { uid: 1001, daemon: false };
const MOM: TaskAsker = { uid: 0, daemon: true };
const of = { job: "1.n1", run_count: null, cookie: "secret" } as const;
const spawn = (host: string, more: Partial<TaskWanted> = {}): TaskWanted =>
  ({ kind: "spawn", ...of, host, argv: ["true"], env: [], shell: false, ...more }) as TaskWanted;

const output = (from: string, more: Partial<TaskWanted> = {}, content = "text", offset = 0): TaskWanted =>
  ({ kind: "output", ...of, letter: "o", from, offset, content: Buffer.from(content).toString("base64"), ...more }) as TaskWanted;
const placed = (place: TaskPlace): string => (place.kind === "socket" ? place.path : `${place.address ?? "server"}:${place.port}`);
/** The mom of another host, by its certificate. */
const hostOf = (host: string, role: "host" | "server" = "host"): TaskAsker => ({
  uid: 0xffffffff,
  daemon: false,
  host: { host, role, serial: "4a".repeat(16) },
});

/** The result of a question: kinds of actions, and the answer with its type and text. */
function ask(w: World, by: TaskAsker, wanted: TaskWanted, asked = 1): string[] {
  const from = w.actions.length;
  w.on({ kind: "task-asked", asked, by, wanted });
  return w.actions.slice(from).flatMap((action) => {
    if (action.kind === "task-say") return `${action.answer.type} ${"text" in action.answer ? action.answer.text : ""}`.trim();
    if (action.kind === "task-forward") return `forward ${placed(action.place)} ${action.wanted.cookie}/${action.wanted.run_count}`;
    return action.kind === "log" || action.kind === "save" ? [] : action.kind;
  });
}

test("who may ask for what", () => {
  const w = world();
  run(w, job(TWO));
  const no = "task-refused job 1.n1 does not run on n1";
  const rows: readonly (readonly [TaskAsker, TaskWanted, string])[] = [
    [ME, spawn("n1"), "start"],
    [ME, spawn("n2"), "forward /n2.sock null/1"],
    [ME, spawn("n3"), 'task-refused host "n3" is not a node in job <1.n1>'],
    [ME, spawn("n1", { cookie: "guess" }), no],
    [ME, spawn("n1", { cookie: null, run_count: 1 }), no],
    [{ uid: 1002, daemon: false }, spawn("n1"), no],
    [MOM, spawn("n1", { cookie: null, run_count: 1 }), "start"],
    [MOM, spawn("n1", { cookie: null, run_count: 2 }), no],
    [ME, spawn("n1", { job: "2.n1" }), "task-refused job 2.n1 does not run on n1"],
    [ME, { kind: "nodes", ...of }, "task-hosts"],
    [ME, { kind: "attach", ...of, pid: 9, owner_uid: 1001 }, "adopt,task-done"],
    [ME, { kind: "attach", ...of, cookie: null, pid: 9, owner_uid: 1001 }, "adopt,task-done"],
    [ME, { kind: "attach", ...of, cookie: "guess", pid: 9, owner_uid: 1001 }, no],
    [{ uid: 1002, daemon: false }, { kind: "attach", ...of, cookie: null, pid: 9, owner_uid: 1002 }, no],
    [ME, { kind: "attach", ...of, pid: 9, owner_uid: 1002 }, "task-refused process 9 is not alice's"],
    [ME, { kind: "attach", ...of, pid: 9, owner_uid: null }, "task-refused there is no process 9"],
    [ME, output("n2"), "task-refused no place for output"],
    [MOM, output("n2"), "append"],
    [hostOf("n2"), spawn("n1", { cookie: null, run_count: 1 }), no],
  ];
  for (const [by, wanted, expected] of rows) assert.equal(ask(w, by, wanted).join(), expected, JSON.stringify({ by, wanted }));
  w.on({ kind: "terminate", data: { job: "1.n1", run_count: 1, why: "delete", kill_delay_s: 10 } });
  assert.deepEqual(ask(w, ME, spawn("n1")), ["task-refused job 1.n1 is being ended"]);
});

// n1 is this host; n0 is on the server's host; n2 and n3 are elsewhere; n4 belongs to the complex but not to the job.
const FAR = {
  exec_host: "n1/0+n2/0+n3/0+n0/0",
  exec_vnode: "(n1:ncpus=1)+(n2:ncpus=1)+(n3:ncpus=1)+(n0:ncpus=1)",
  tasks: {},
  sisters: {
    secret: "shared",
    hosts: { n2: { address: "10.0.0.2", port: 15002 }, n3: { address: "10.0.0.3", port: 15002 }, n0: { address: null, port: 15002 } },
  },
};
const shared = { cookie: "shared", run_count: 1 } as const;

test("between hosts, a mom speaks for its own host, for runs that this host belongs to, with the secret of the run", () => {
  const w = world();
  run(w, job(FAR));
  const no = "task-refused job 1.n1 does not run on n1";
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, by: TaskAsker, wanted: TaskWanted, expected: string])[] = [
    ["its owner, for another host",    ME,                      spawn("n2"),                                   "forward 10.0.0.2:15002 shared/1"],
    ["its owner, the server's host",   ME,                      spawn("n0"),                                   "forward server:15002 shared/1"],
    ["a sister",                       hostOf("n2"),            spawn("n1", shared),                           "start"],
    ["the mom on the server's host",   hostOf("svr", "server"), spawn("n1", shared),                           "start"],
    ["wrong secret",                   hostOf("n2"),            spawn("n1", { ...shared, cookie: "guess" }),   no],
    ["the owner's secret",             hostOf("n2"),            spawn("n1", { ...shared, cookie: "secret" }),  no],
    ["no secret",                      hostOf("n2"),            spawn("n1", { ...shared, cookie: null }),      no],
    ["an earlier run",                 hostOf("n2"),            spawn("n1", { ...shared, run_count: 0 }),      no],
    ["no run",                         hostOf("n2"),            spawn("n1", { ...shared, run_count: null }),   no],
    ["a job that is not here",         hostOf("n2"),            spawn("n1", { ...shared, job: "9.n1" }),       no.replace("1.n1", "9.n1")],
    ["a host of another job",          hostOf("n4"),            spawn("n1", shared),                           no],
    ["a host with the server's name",  hostOf("n0"),            spawn("n1", shared),                           no],
    ["a server with a host's name",    hostOf("n2", "server"),  spawn("n1", shared),                           "start"],
    ["for a third host",               hostOf("n2"),            spawn("n3", shared),                           no],
    ["its own output",                 hostOf("n2"),            output("n2", shared),                          "append"],
    ["output of another host",         hostOf("n2"),            output("n3", shared),                          no],
    ["output of this host",            hostOf("n2"),            output("n1", shared),                          no],
    ["output, wrong secret",           hostOf("n2"),            output("n2", { ...shared, cookie: "secret" }), no],
    ["nodes",                          hostOf("n2"),            { kind: "nodes", ...of, ...shared },           no],
    ["attach",                         hostOf("n2"),            { kind: "attach", ...of, ...shared, pid: 9, owner_uid: 1001 }, no],
    ["attach, without secret",         hostOf("n2"),            { kind: "attach", ...of, cookie: null, pid: 9, owner_uid: 1001 }, no],
  ];
  for (const [what, by, wanted, expected] of rows) assert.equal(ask(w, by, wanted).join(), expected, what);
  // The job gives up n2: its mom has no part in it any more.
  w.on({ kind: "modify", data: { job: "1.n1", attrs: { exec_host: "n1/0+n3/0", exec_vnode: "(n1:ncpus=1)+(n3:ncpus=1)" } } });
  assert.deepEqual(ask(w, hostOf("n2"), spawn("n1", shared)), [no]);
  assert.deepEqual(ask(w, hostOf("n3"), spawn("n1", shared)), ["start"]);
});

test("a mom that lost its connection asks again: the task is started once, and its answers come again", () => {
  const w = world();
  run(w, job(FAR));
  const named = (name: string, again = true): TaskWanted => spawn("n1", { ...shared, name, ...(again ? { again: true } : {}) } as never);
  const said = (): unknown[] => w.actions.flatMap((action) => (action.kind === "task-say" ? [[action.asked, action.answer]] : []));
  const n2 = hostOf("n2");
  assert.deepEqual(ask(w, n2, named("a", false), 1), ["start"]);
  assert.deepEqual(ask(w, n2, named("a"), 2), [], "it is being started");
  const key = { job: "1.n1#2", run_count: 1 };
  w.on({ kind: "started", run: { ...key, pid: 99, at_ms: w.now_ms } });
  assert.deepEqual(said(), [[2, { type: "task-started", task: 2 }]]);
  // The mom notices the loss of the first connection late.
  w.on({ kind: "task-deserted", asked: 1 });
  assert.deepEqual(ask(w, n2, named("a"), 3), ["task-started"]);
  w.on({ kind: "task-deserted", asked: 3 });
  w.on({ kind: "exited", run: { ...key, status: { code: 7 }, cput_s: 0, at_ms: w.now_ms } });
  assert.deepEqual(ask(w, n2, named("a"), 4), ["task-started", "task-exited"]);
  assert.deepEqual(said().at(-1), [4, { type: "task-exited", status: 7 }]);
  assert.deepEqual(ask(w, hostOf("n3"), named("a", false), 5), ["start"], "another host's name is another name");
  assert.deepEqual(ask(w, n2, named("b"), 6), ["start"], "the request had not arrived before");
  assert.deepEqual(ask(w, ME, spawn("n1", { name: "c" } as never), 7), ["start"]);
  assert.deepEqual(ask(w, ME, spawn("n1", { name: "c" } as never), 8), ["start"], "names are for moms");
});

test("a mom that was restarted starts no task that it may have started before", () => {
  const w = world();
  const j = job(FAR);
  run(w, j);
  ask(w, hostOf("n2"), spawn("n1", { ...shared, name: "a" } as never));
  const back = world();
  back.on({ kind: "recovered", saved: [...w.records.values()] });
  const top = { job: "1.n1", run_count: 1, pid: 4711, at_ms: 0, state: "running" } as const;
  back.on({ kind: "starter-state", data: { pid: 1, last: [], runs: [top] } });
  const again = spawn("n1", { ...shared, name: "a", again: true } as never);
  assert.deepEqual(ask(back, hostOf("n2"), again), ["task-refused the mom of n1 does not know the task (any more)"]);
  assert.deepEqual(ask(back, hostOf("n2"), spawn("n1", { ...shared, name: "b" } as never)), ["start"]);
});

test("names of ended tasks are forgotten when there are too many, and then no task is started twice", () => {
  const w = world({ config: { tasks_max: 2 } });
  run(w, job(FAR));
  for (let task = 2; task <= 6; task++) {
    assert.deepEqual(ask(w, hostOf("n2"), spawn("n1", { ...shared, name: `${task}` } as never)), ["start"]);
    w.on({ kind: "exited", run: { job: `1.n1#${task}`, run_count: 1, status: { code: 0 }, cput_s: 0, at_ms: w.now_ms } });
  }
  const again = (name: string) => ask(w, hostOf("n2"), spawn("n1", { ...shared, name, again: true } as never));
  assert.deepEqual(again("6"), ["task-started", "task-exited"]);
  assert.deepEqual(again("2"), ["task-refused the mom of n1 does not know the task (any more)"]);
});

test("a piece of output that comes twice is added once", () => {
  const w = world();
  run(w, job(FAR));
  const text = (): string =>
    w.actions.flatMap((action) => (action.kind === "append" ? [Buffer.from(action.text, "base64").toString()] : [])).join("|");
  const send = (from: string, content: string, offset: number): string =>
    ask(w, hostOf(from), output(from, shared, content, offset)).join();
  assert.equal(send("n2", "abc", 0), "append");
  assert.equal(send("n2", "abc", 0), "task-done");
  assert.equal(send("n3", "xyz", 0), "append");
  assert.equal(send("n2", "abcdef", 0), "append");
  assert.equal(send("n2", "g", 6), "append");
  assert.equal(text(), "abc|xyz|def|g");
  // A mother superior that was restarted takes what comes.
  w.state.runs.get("1.n1")?.taken_output.clear();
  assert.equal(send("n2", "h", 7), "append");
});

test("a task's life: its numbers, its answers, its cpu time in the job's", () => {
  const w = world();
  const j = job(TWO);
  run(w, j);
  ask(w, ME, spawn("n1", { argv: ["echo a"], shell: true, env: ["A=1", "PBS_TASKNUM=7"] } as never), 5);
  const start = w.actions.findLast((action) => action.kind === "start");
  assert.equal(start?.spec.job, "1.n1#2");
  assert.deepEqual(start?.spec.argv, ["/bin/bash", "-c", "echo a"]);
  assert.ok(start?.spec.env.includes("PBS_NODENUM=0") && start.spec.env.includes("A=1") && start.spec.env.includes("PBS_TASKNUM=7"));
  const key = { job: "1.n1#2", run_count: 1 };
  w.on({ kind: "started", run: { ...key, pid: 99, at_ms: w.now_ms } });
  w.on({
    kind: "sampled",
    seen: new Map([
      [4711, { cput_s: 1, mem_kb: 10, vmem_kb: 20 }],
      [99, { cput_s: 2, mem_kb: 1, vmem_kb: 2 }],
    ]),
  });
  assert.equal(w.state.runs.get("1.n1")?.sample.cput_s, 3);
  w.on({ kind: "task-signal", asked: 5, signal: 15 });
  w.on({ kind: "exited", run: { ...key, status: { signal: 15 }, cput_s: 4, at_ms: w.now_ms } });
  const said = w.actions.flatMap((action) => (action.kind === "task-say" ? [action.answer] : []));
  assert.deepEqual(said, [
    { type: "task-started", task: 2 },
    { type: "task-exited", status: 271 },
  ]);
  w.on(exited(j, w.now_ms + 1000, { code: 0 }, 1));
  assert.equal(w.state.runs.get("1.n1")?.sample.cput_s, 5);
});

test("a mom that comes back knows the tasks that run, and forgets those that ended meanwhile; a task of no run is killed", () => {
  const w = world();
  run(w, job(TWO));
  const record = [...w.records.values()];
  const back = world();
  back.on({ kind: "recovered", saved: record });
  const entry = (name: string, pid: number) => ({ job: name, run_count: 1, pid, at_ms: 0 });
  const over = { ...entry("1.n1#3", 12), status: { code: 0 }, cput_s: 1 };
  const words = back.on({
    kind: "starter-state",
    data: {
      pid: 1,
      last: [],
      runs: [
        { ...entry("1.n1", 4711), state: "running" },
        { ...entry("1.n1#2", 11), state: "running" },
        { ...entry("1.n1#3", 12), state: "ended", exit: over },
        { ...entry("9.n1#2", 13), state: "running" },
      ],
    },
  });
  assert.deepEqual([...(back.state.runs.get("1.n1")?.tasks ?? [])], [[2, { asked: null, pid: 11 }]]);
  assert.equal(back.state.runs.get("1.n1")?.next_task, 4);
  assert.ok(words.includes("forget-task") && words.includes("signal 9.n1#2 9"), words.join());
});

const seen = (cput_s: number, mem_kb = 10) => ({ cput_s, mem_kb, vmem_kb: 20 });
const cputOf = (w: World): number | undefined => w.state.runs.get("1.n1")?.sample.cput_s;

test("a session that was adopted counts as long as anything is in it, and what it has used afterwards, too", () => {
  const w = world();
  const j = job(TWO);
  run(w, j);
  const key = { job: "1.n1", run_count: 1 };
  w.on({ kind: "adopted", run: { ...key, session: 50, owner: 1001 } });
  w.on({ kind: "adopted", run: { ...key, run_count: 9, session: 51, owner: 1001 } });
  assert.deepEqual([...(w.state.runs.get("1.n1")?.adopted.keys() ?? [])], [50]);
  w.on({
    kind: "sampled",
    seen: new Map([
      [4711, seen(1)],
      [50, seen(7, 90)],
    ]),
  });
  assert.deepEqual([cputOf(w), w.state.runs.get("1.n1")?.sample.mem_now_kb], [8, 100]);
  // A child that had not been reaped has gone.
  w.on({
    kind: "sampled",
    seen: new Map([
      [4711, seen(2)],
      [50, seen(3)],
    ]),
  });
  assert.equal(cputOf(w), 9);
  w.on({ kind: "sampled", seen: new Map([[4711, seen(3)]]) });
  assert.equal(cputOf(w), 10);
  assert.deepEqual(w.records.get("1.n1")?.tasks, { next_task: 2, cput_s: 7 });
  // Another process has its pid by now.
  w.on({
    kind: "sampled",
    seen: new Map([
      [4711, seen(3)],
      [50, seen(500)],
    ]),
  });
  assert.equal(cputOf(w), 10);
  w.on({ kind: "adopted", run: { ...key, session: 60, owner: 1001 } });
  w.on({
    kind: "sampled",
    seen: new Map([
      [4711, seen(3)],
      [60, seen(4)],
    ]),
  });
  w.on(exited(j, w.now_ms + 1000, { code: 0 }, 6));
  assert.equal(cputOf(w), 17, "6 of its own, 7 and 4 of what it adopted");
});

test("numbers and cpu time of tasks that are over, and adopted sessions, are known to a mom that comes back", () => {
  const w = world();
  run(w, job(TWO));
  ask(w, ME, spawn("n1"));
  const key = { job: "1.n1#2", run_count: 1 };
  w.on({ kind: "started", run: { ...key, pid: 99, at_ms: w.now_ms } });
  w.on({ kind: "exited", run: { ...key, status: { code: 0 }, cput_s: 4, at_ms: w.now_ms } });
  const back = world();
  back.on({ kind: "recovered", saved: [...w.records.values()] });
  const top = { job: "1.n1", run_count: 1, pid: 4711, at_ms: 0, state: "running", adopted: [{ session: 50, owner: 1001 }] } as const;
  back.on({ kind: "starter-state", data: { pid: 1, last: [], runs: [top] } });
  back.on({
    kind: "sampled",
    seen: new Map([
      [4711, seen(1)],
      [50, seen(2)],
    ]),
  });
  assert.equal(cputOf(back), 7);
  ask(back, ME, spawn("n1"));
  assert.equal(back.actions.findLast((action) => action.kind === "start")?.spec.job, "1.n1#3");
  // A rewritten record contains the tasks as well.
  back.on({ kind: "modify", data: { job: "1.n1", attrs: { Job_Name: "x" } } });
  assert.deepEqual(back.records.get("1.n1")?.tasks, { next_task: 4, cput_s: 4 });
});

test("a job has no more tasks on a host at a time than $tasks_max", () => {
  const w = world({ config: { tasks_max: 2 } });
  run(w, job(TWO));
  const no = "task-refused job 1.n1 has 2 tasks on n1 already ($tasks_max)";
  assert.deepEqual([ask(w, ME, spawn("n1"), 1), ask(w, ME, spawn("n1"), 2), ask(w, ME, spawn("n1"), 3)], [["start"], ["start"], [no]]);
  w.on({ kind: "exited", run: { job: "1.n1#2", run_count: 1, status: { code: 0 }, cput_s: 0, at_ms: w.now_ms } });
  assert.deepEqual(ask(w, ME, spawn("n1"), 4), ["start"]);
});

test("the text of tasks that are being started is bounded: for each task, for the job and for its owner", () => {
  const text_max = 100;
  const w = world({ config: { task_text_max: text_max } });
  const more = job({ ...TWO, id: "2.n1" });
  run(w, job(TWO));
  run(w, more, 4712);
  const long = (chars: number, of = "1.n1"): TaskWanted => spawn("n1", { job: of, argv: ["a".repeat(chars - 1)] });
  const start = (of: string, times: number): void => {
    for (let at = 0; at < times; at++) assert.deepEqual(ask(w, ME, long(text_max, of)), ["start"]);
  };
  const refused = (of: string, chars: number): string => ask(w, ME, long(chars, of))[0] ?? "";
  assert.equal(
    refused("1.n1", 101),
    "task-refused arguments and environment of a task of job 1.n1 are longer than 100 characters ($task_text_max)",
  );
  const full = (whose: string, chars: number): string =>
    `task-refused tasks of ${whose} that are not started yet have ${chars} characters of arguments and environment already`;
  start("1.n1", 16);
  assert.equal(refused("1.n1", 2), full("job 1.n1", 1600));
  start("2.n1", 16);
  // Both jobs are alice's.
  w.on({ kind: "started", run: { job: "1.n1#2", run_count: 1, pid: 90, at_ms: w.now_ms } });
  start("1.n1", 1);
  w.on({ kind: "start-failed", run: { job: "2.n1#2", run_count: 1, exit_status: 254, text: "no", at_ms: w.now_ms } });
  w.on({ kind: "exited", run: { job: "2.n1#3", run_count: 1, status: { code: 0 }, cput_s: 0, at_ms: w.now_ms } });
  assert.deepEqual([w.state.runs.get("1.n1")?.starting_chars, w.state.runs.get("2.n1")?.starting_chars], [1600, 1400]);
  start("2.n1", 2);
  const third = job({ ...TWO, id: "3.n1" });
  run(w, third, 4713);
  assert.equal(refused("3.n1", 2), full("the owner of job 3.n1", 3200));
  w.on(exited(job(TWO), w.now_ms, { code: 0 }));
  assert.deepEqual(ask(w, ME, long(100, "3.n1")), ["start"], "the tasks of a job end with it");
});
