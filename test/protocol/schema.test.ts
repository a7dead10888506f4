import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRequest } from "#protocol/schema.ts";
import { parseQuestion } from "#protocol/schema-join.ts";
import { frameTypes, parseFrame } from "#protocol/schema-link.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import { prng } from "#support/prng.ts";

const submit = { kind: "queue-job", destination: "", script: "true\n", attrs: [{ name: "Resource_List", resource: "ncpus", value: "1" }] };

test("schema: requests of every kind pass as they are", () => {
  const requests: { kind: string; [field: string]: unknown }[] = [
    { kind: "manager", verb: "set", object: "queue", name: "workq", attrs: [{ name: "enabled", op: "=", value: "True" }] },
    { kind: "status", object: "job", ids: ["1.svr"], attrs: ["job_state"], queue: "workq", history: "with", subjobs: true },
    { kind: "select-jobs", criteria: [{ name: "Priority", op: "ge", value: "1" }], states: "QR", arraysOnly: false },
    submit,
    { kind: "queue-jobs", jobs: [{ destination: "q", script: null, attrs: [] }] },
    { kind: "delete-job", job: "1", force: true },
    { kind: "modify-job", job: "1", attrs: [{ name: "Resource_List", resource: "mem", op: "unset", value: "" }] },
    { kind: "hold-job", job: "1", holds: "u" },
    { kind: "release-job", job: "1", holds: "u" },
    { kind: "move-job", job: "1", destination: "q2" },
    { kind: "order-job", job: "1", other: "2" },
    { kind: "message-job", job: "1", files: "oe", message: "hello" },
    { kind: "signal-job", job: "1", signal: "SIGTERM" },
    { kind: "rerun-job", job: "1" },
    { kind: "run-job", job: "1", exec_vnode: "(a:ncpus=1)", async: true },
    { kind: "locate-job", job: "1" },
    { kind: "wait-job", job: "1" },
    { kind: "shutdown", manner: "quick", scheds: true, moms: false },
    { kind: "backup", file: "/tmp/x" },
    { kind: "identity", ask: { verb: "make-token", host: null, user: null, life_s: 60 } },
    { kind: "identity", ask: { verb: "revoke-host", host: "node7" } },
    { kind: "submit-resv", attrs: [] },
    { kind: "delete-resv", resv: "R1" },
    { kind: "modify-resv", resv: "R1", attrs: [] },
  ];
  for (const request of requests) assert.deepEqual(parseRequest({ id: 3, ...request }), { ok: true, id: 3, request }, request.kind);
});

test("schema: what is not a request is refused with the PBS error that fits", () => {
  const rows: [data: unknown, id: number | null, code: number][] = [
    [null, null, 15031],
    [[], null, 15031],
    ["x", null, 15031],
    [{ kind: "locate-job", job: "1" }, null, 15031],
    [{ id: "1", kind: "locate-job", job: "1" }, null, 15031],
    [{ id: -1, kind: "locate-job", job: "1" }, null, 15031],
    [{ id: 1.5, kind: "locate-job", job: "1" }, null, 15031],
    [{ id: 1 }, 1, 15005],
    [{ id: 1, kind: "format-disk" }, 1, 15005],
    [{ id: 1, kind: "toString" }, 1, 15005],
    [{ id: 1, kind: "__proto__" }, 1, 15005],
    [{ id: 1, kind: ["queue-job"] }, 1, 15005],
    [{ id: 1, kind: "locate-job" }, 1, 15031],
    [{ id: 1, kind: "locate-job", job: "" }, 1, 15031],
    [{ id: 1, kind: "locate-job", job: "1", user: "root" }, 1, 15031],
    [{ id: 1, kind: "locate-job", job: "x".repeat(LIMITS.name_chars_max + 1) }, 1, 15031],
    [{ id: 1, ...submit, script: "x".repeat(LIMITS.script_chars_max + 1) }, 1, 15031],
    [{ id: 1, ...submit, attrs: [{ name: "a", value: 1 }] }, 1, 15031],
    [{ id: 1, ...submit, attrs: [{ name: "a", value: "1", resource: undefined }] }, 1, 15031],
    [
      { id: 1, kind: "queue-jobs", jobs: Array(LIMITS.jobs_per_frame_max + 1).fill({ destination: "", script: null, attrs: [] }) },
      1,
      15031,
    ],
    [{ id: 1, kind: "manager", verb: "destroy", object: "server", name: "", attrs: [] }, 1, 15031],
    [JSON.parse('{"id":1,"kind":"locate-job","job":"1","__proto__":{"admin":true}}'), 1, 15031],
  ];
  for (const [data, id, code] of rows) {
    const parsed = parseRequest(data);
    const seen = parsed.ok ? parsed : { ok: parsed.ok, id: parsed.id, code: parsed.code };
    assert.deepEqual(seen, { ok: false, id, code }, JSON.stringify(data)?.slice(0, 80));
  }
});

test("schema: 20,000 damaged requests are refused or are requests, and never throw", () => {
  const random = prng("requests");
  const seeds = [
    submit,
    { kind: "status", object: "job", ids: ["1"] },
    { kind: "manager", verb: "set", object: "node", name: "n", attrs: [] },
  ];
  const odd = (): unknown =>
    random.pick([null, 0, -1, Number.POSITIVE_INFINITY, "", "\0", [], {}, true, "x".repeat(2000), { name: {} }, [[]], { length: 3 }]);
  let refusals = 0;
  for (let at = 0; at < 20_000; at++) {
    const data: { [field: string]: unknown } = { id: at, ...random.pick(seeds) };
    const keys = Object.keys(data);
    for (let times = random.int(1, 2); times > 0; times--) {
      if (random.chance(0.3)) delete data[random.pick(keys)];
      else data[random.chance(0.2) ? "extra" : random.pick(keys)] = odd();
    }
    const parsed = parseRequest(data);
    if (!parsed.ok) refusals++;
    else assert.ok(typeof parsed.request.kind === "string");
  }
  assert.ok(refusals > 15_000, String(refusals));
});

test("schema: link frames: right ones pass as they are, wrong ones are named", () => {
  const rows: [direction: Parameters<typeof parseFrame>[0], type: string, data: unknown, wrong?: RegExp][] = [
    ["sched-to-server", "sched-hello", { name: "default", pid: 1, version: "x" }],
    ["sched-to-server", "sched-hello", { name: "default", pid: 0, version: "x" }, /^sched-hello: pid: /],
    ["sched-to-server", "sched-decisions", { cycle: 1, decisions: [{ kind: "run", job: "1.svr", exec_vnode: "(a:ncpus=1)" }] }],
    [
      "sched-to-server",
      "sched-decisions",
      { cycle: 1, decisions: [{ kind: "run", job: "1.svr" }] },
      /^sched-decisions: decisions\[0\]\.exec_vnode: /,
    ],
    ["sched-to-server", "sched-decisions", { cycle: 1, decisions: [{ kind: "obey" }] }, /^sched-decisions: decisions\[0\]\.kind: /],
    ["sched-to-server", "mom-hello", {}, /^unknown frame type mom-hello$/],
    ["sched-to-server", "toString", {}, /^unknown frame type toString$/],
    ["server-to-sched", "sched-cycle", { cycle: 1, command: 6 }],
    ["server-to-sched", "sched-cycle", { cycle: 1, command: 4 }, /command: must be a scheduler command/],
    [
      "server-to-sched",
      "sched-delta",
      {
        revision: 2,
        changes: [
          { put: "job", value: { id: "1" } },
          { drop: "job", id: "2" },
        ],
      },
    ],
    ["server-to-sched", "sched-delta", { revision: 2, changes: [{ drop: "job" }] }, /changes\[0\]: must be a put or a drop/],
    ["server-to-sched", "sched-quit", {}],
    ["mom-to-server", "mom-obit", { job: "1", run_count: 1, exit_status: -11, used: { cput: 1, mem: "2kb" }, stageout_status: 0 }],
    [
      "mom-to-server",
      "mom-obit",
      { job: "1", run_count: 1, exit_status: 0, used: { cput: {} } },
      /used: must be an object of plain values/,
    ],
    ["mom-to-server", "mom-usage", { jobs: [{ job: "1", run_count: 1, used: {} }] }],
    ["server-to-mom", "mom-terminate", { job: "1", run_count: 1, why: "delete", kill_delay_s: 10 }],
    ["server-to-mom", "mom-terminate", { job: "1", run_count: 1, why: "whim", kill_delay_s: 10 }, /why: /],
  ];
  for (const [direction, type, data, wrong] of rows) {
    const parsed = parseFrame(direction, type, data);
    if (wrong === undefined) assert.deepEqual(parsed, { ok: true, frame: { type, data } });
    else assert.match(parsed.ok ? "accepted" : parsed.text, wrong);
  }
  assert.deepEqual(frameTypes("sched-to-server").slice(0, 4), ["sched-hello", "sched-decisions", "sched-cycle-end", "sched-fault"]);
});

test("schema: members that a newer release may send are left out of frames between daemons, at every depth, and refused in requests", () => {
  const extra = { later: { a: [1] } };
  const run = { job: "1", run_count: 1 };
  const hello = { host: "h", port: 1, pid: 2, version: "x" };
  const place = { address: null, port: 15002 };
  const job = {
    id: "1",
    run_count: 1,
    user: "u",
    group: "g",
    queue: "q",
    exec_host: "h/0",
    exec_vnode: "(h:ncpus=1)",
    attrs: {},
    script: null,
    kill_delay_s: 10,
    cookie: "C",
  };
  const task = { ...job, sisters: { secret: "s", hosts: { h2: place } } };
  // biome-ignore format: a table
  const rows: readonly (readonly [direction: Parameters<typeof parseFrame>[0], type: string, known: unknown, sent: unknown])[] = [
    ["sched-to-server", "sched-hello", { name: "s", pid: 1, version: "x" }, { name: "s", pid: 1, version: "x", ...extra }],
    ["sched-to-server", "sched-decisions",
      { cycle: 1, decisions: [{ kind: "comment", job: "1", comment: "no", why: { code: "x" } }] },
      { cycle: 1, ...extra, decisions: [{ kind: "comment", job: "1", comment: "no", ...extra, why: { code: "x", ...extra } }] }],
    ["server-to-sched", "sched-verdicts", { cycle: 1, verdicts: [{ ok: true }, { ok: false, code: 1, text: "" }] },
      { cycle: 1, ...extra, verdicts: [{ ok: true, ...extra }, { ok: false, code: 1, text: "", ...extra }] }],
    ["server-to-sched", "sched-quit", {}, extra],
    ["mom-to-server", "mom-hello",
      { ...hello, vnodes: [{ name: "h", attrs: {} }], jobs: [{ ...run, state: "running" }], reports: { every_s: 15 } },
      { ...hello, ...extra, vnodes: [{ name: "h", attrs: {}, ...extra }], jobs: [{ ...run, state: "running", ...extra }], reports: { every_s: 15, ...extra } }],
    ["server-to-mom", "mom-welcome", { keep: [], kill: [], acknowledged: [run] }, { keep: [], kill: [], ...extra, acknowledged: [{ ...run, ...extra }] }],
    ["server-to-mom", "mom-start", { jobs: [task] },
      { ...extra, jobs: [{ ...task, ...extra, sisters: { secret: "s", ...extra, hosts: { h2: { ...place, ...extra } } } }] }],
    ["task-to-mom", "task-signal", { token: 1, signal: 2 }, { token: 1, signal: 2, ...extra }],
    ["mom-to-task", "task-done", { token: 1 }, { token: 1, ...extra }],
  ];
  for (const [direction, type, known, sent] of rows)
    assert.deepEqual(parseFrame(direction, type, sent), { ok: true, frame: { type, data: known } }, type);
  const question = { version: "9", ...extra };
  assert.deepEqual(parseQuestion("check", question), { ok: true, value: { type: "check", data: { version: "9" } } });
  const request = parseRequest({ id: 1, kind: "delete-job", job: "1", ...extra });
  assert.match(request.ok ? "" : request.text, /^Batch protocol error: .*later/);
});
