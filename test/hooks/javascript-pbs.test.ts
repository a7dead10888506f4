// The pbs module of JavaScript hooks, made from its text in an otherwise empty context, as in the host.

import assert from "node:assert/strict";
import { test } from "node:test";
import { constants, createContext, Script } from "node:vm";
import { PBS_TEXT, type PbsParts } from "#hooks/javascript/pbs.ts";

const TABLES = {
  job: {
    Priority: "long",
    Hold_Types: "string",
    Resource_List: "resource_list",
    depend: "string",
    Rerunable: "boolean",
    interactive: "interactive",
    estimated: "duration",
    Keep: "size",
  },
  vnode: { comment: "string", resources_available: "resource_list" },
  queue: { enabled: "boolean" },
  server: { scheduling: "boolean" },
};
const RESOURCES = { ncpus: "long", mem: "size", walltime: "duration", place: "string" };
const JOB = {
  id: "7.server",
  attrs: { Priority: "3", Rerunable: "True", Resource_List: { ncpus: "2", mem: "4gb" }, depend: ["a", "b"], estimated: "01:00:05" },
};
const INPUT = {
  event: "queuejob",
  requestor: "ann",
  requestor_host: "h",
  server: "server",
  node: "host",
  job: JOB,
  job_o: JOB,
  vnode_list: [{ id: "v1", attrs: { comment: "old" } }],
  src_queue: { id: "workq", attrs: { enabled: "True" } },
  progname: "a.out",
  argv: ["a.out", "-x"],
  env: { HOME: "/h" },
  pid: 12,
  writable: { job: ["Priority", "Resource_List", "Rerunable", "estimated", "Keep", "depend"], vnode: ["comment"] },
};
const HOOK = { name: "h", type: "site", alarm: 30, freq: 120, order: 1, user: "pbsadmin", debug: false, fail_action: ["none", "x"] };
const ITEMS = {
  job: [JOB, { id: "8.server", attrs: {} }],
  queue: [{ id: "workq", attrs: { enabled: "False" } }],
  server: [{ id: "server", attrs: { scheduling: "True" } }],
};

/** The answer to a script. */
function answerTo(text: string, input: object = {}): { readonly [name: string]: unknown } {
  const context = createContext(constants.DONT_CONTEXTIFY, { codeGeneration: { strings: false, wasm: false } });
  const parts: PbsParts = new Script(PBS_TEXT).runInContext(context);
  const run = { hook: HOOK, input: { ...INPUT, ...input }, resources: RESOURCES, config: "key=1" };
  const runText = JSON.stringify({ tables: TABLES, conf: { PBS_HOME: "/h" }, events: ["queuejob", "runjob"], run });
  const ask = (question: string): string => {
    const { what, name } = JSON.parse(question);
    const items = new Map(Object.entries(ITEMS)).get(what);
    if (items === undefined) return JSON.stringify({ error: `no ${what} here` });
    return JSON.stringify({ items: name === "" ? items : items.filter(({ id }) => id === name) });
  };
  const module = new parts.PbsModule(parts, { global: context, runText, ask });
  try {
    new Script(text).runInContext(context);
  } catch (thrown) {
    return JSON.parse(module.finish(true, thrown));
  }
  return JSON.parse(module.finish(false, undefined));
}

const printed = (expression: string): unknown => answerTo(`console.log(${expression})`)["output"];

test("what a hook reads", () => {
  const rows: readonly (readonly [expression: string, printed: string])[] = [
    ["pbs.event().type === pbs.QUEUEJOB", "true"],
    ["pbs.event().fail_action", "none,x"],
    ["pbs.event().job.Priority + 1", "4"],
    ["pbs.event().job.Rerunable", "true"],
    ["pbs.event().job.interactive", "null"],
    ["pbs.event().job.depend", "a,b"],
    ["pbs.event().job", "7.server"],
    ["pbs.event().job.estimated > 3600, pbs.event().job.estimated.seconds", "true 3605"],
    ["pbs.event().job.Resource_List", "ncpus=2,mem=4gb"],
    ["pbs.event().job.Resource_List.mem.bytes", "4294967296"],
    ["pbs.event().job.Resource_List.walltime", "null"],
    ["Object.keys(pbs.event().job.Resource_List), 'mem' in pbs.event().job.Resource_List", "ncpus,mem true"],
    ["JSON.stringify(pbs.event().vnode_list.v1)", '{"id":"v1","comment":"old"}'],
    ["pbs.event().vnode_list.v1.name, pbs.event().src_queue.name, pbs.event().pid", "v1 workq 12"],
    ["pbs.duration(90), pbs.duration('1:2:3'), pbs.duration()", "00:01:30 01:02:03 00:00:00"],
    ["pbs.size('2MW'), pbs.size('2mw').bytes, pbs.size(512)", "16mb 16777216 512b"],
    ["pbs.server().name, pbs.server().scheduling, pbs.server().job('8.server').id, pbs.server().job('9')", "server true 8.server null"],
    ["pbs.server().jobs().length, pbs.server().queue('workq').enabled", "2 false"],
    ["pbs.get_local_nodename(), pbs.get_pbs_conf().PBS_HOME, pbs.config, pbs.LOG_DEBUG", "host /h key=1 4"],
    ["pbs.event().job.in_ms_mom(), 'job' in pbs.event(), 'resv' in pbs.event(), 'argv' in pbs.event()", "true true false true"],
  ];
  for (const [expression, expected] of rows) assert.equal(printed(expression), `${expected}\n`, expression);
});

test("what a hook changes", () => {
  const rows: readonly (readonly [script: string, changes: object])[] = [
    ["", {}],
    ["j.Priority = '12'; j.Keep = '1KB'; j.Rerunable = 'n'", { job: { Priority: "12", Keep: "1kb", Rerunable: "False" } }],
    ["j.Priority = null; delete j.depend", { job: { Priority: null, depend: null } }],
    ["j.Priority = 5; delete j.Priority; j.depend = ['x', 'y']", { job: { Priority: null, depend: "x,y" } }],
    ["j.Resource_List.walltime = 60; delete j.Resource_List.mem", { job: { Resource_List: { walltime: "00:01:00", mem: null } } }],
    ["j.Resource_List = { ncpus: 4, place: 'pack' }", { job: { Resource_List: { mem: null, ncpus: "4", place: "pack" } } }],
    ["j.Resource_List = j.Resource_List", {}],
    ["j.Resource_List = null", { job: { Resource_List: { ncpus: null, mem: null } } }],
    ["pbs.event().vnode_list.v1.comment = 'new'", { vnode_list: { v1: { comment: "new" } } }],
    ["pbs.event().argv.push(1); pbs.event().env.A = 2", { argv: ["a.out", "-x", "1"], env: { HOME: "/h", A: "2" } }],
    ["pbs.event().progname = 'b'; pbs.event().env = { B: 1 }", { progname: "b", env: { B: "1" } }],
  ];
  for (const [script, changes] of rows) assert.deepEqual(answerTo(`const j = pbs.event().job; ${script}`)["changes"], changes, script);
});

test("what a hook may not do is an error that names it", () => {
  const rows: readonly (readonly [script: string, text: RegExp])[] = [
    ["pbs.event().job.Hold_Types = 'u'", /\nTypeError: job attribute 'Hold_Types' is readonly/],
    ["pbs.event().job.id = '1'", /\nTypeError: job attribute 'id' is readonly/],
    ["pbs.event().job_o.Priority = 1", /\nTypeError: job attribute 'Priority' is readonly/],
    ["pbs.event().job.nonsense", /\nTypeError: job has no attribute 'nonsense'/],
    ["pbs.event().job.Resource_List.gpus = 1", /\nTypeError: there is no resource 'gpus'/],
    ["pbs.event().vnode_list.v1.resources_available.ncpus = 1", /\nTypeError: vnode attribute 'resources_available' is readonly/],
    ["pbs.event().job.Resource_List.ncpus = 'two'", /\nTypeError: Resource_List.ncpus: not a value for it: two/],
    ["pbs.event().job.Priority = 1.5", /\nTypeError: Priority: not a value for it: 1\.5/],
    ["pbs.event().job.Rerunable = 'perhaps'", /\nTypeError: Rerunable: not a value for it: perhaps/],
    ["pbs.duration('soon')", /\nTypeError: invalid duration value: soon/],
    ["pbs.duration(NaN)", /\nTypeError: invalid duration value: NaN/],
    ["pbs.size('big')", /\nTypeError: invalid size value: big/],
    ["pbs.event().resv", /\nTypeError: event queuejob has no attribute 'resv'/],
    ["pbs.event().pid = 1", /\nTypeError: event attribute 'pid' is readonly/],
    ["pbs.server().vnodes()", /\nError: no vnode here/],
    ["throw 'a text'", /^a text$/],
  ];
  for (const [script, text] of rows) {
    const { verdict, error } = answerTo(script);
    assert.equal(verdict, "error", script);
    assert.match(String(error), text, script);
    assert.doesNotMatch(String(error), /runInContext/, script);
  }
});

test("how a hook answers", () => {
  const short = (text: string, input: object = {}): unknown => {
    const { verdict, message, code, changes, requests } = answerTo(`const e = pbs.event(); e.job.Priority = 9; ${text}`, input);
    return { verdict, message, code, changes, requests };
  };
  const changes = { job: { Priority: "9" } };
  const accepted = { verdict: "accept", message: null, code: null, changes, requests: { jobs: {} } };
  assert.deepEqual(short("e.accept(); throw 1"), accepted);
  assert.deepEqual(short("try { e.reject('no') } catch {}  e.accept()"), accepted);
  assert.deepEqual(short("e.reject('no', 7)"), { ...accepted, verdict: "reject", message: "no", code: 7, changes: {} });
  assert.deepEqual(short("e.reject()", { keep_rejected: true }), { ...accepted, verdict: "reject" });
  assert.deepEqual(short("e.job.rerun(); pbs.server().scheduler_restart_cycle()"), {
    ...accepted,
    requests: { jobs: { "7.server": "rerun" }, restart_cycle: true },
  });
  assert.deepEqual(short("e.job.delete(); pbs.reboot('halt'); throw 1"), {
    ...accepted,
    requests: { jobs: { "7.server": "delete" }, reboot: "halt" },
  });
});

test("what a hook writes is told, and no more than a console may hold", () => {
  const { logs, output } = answerTo("pbs.logmsg(8, 'a'); pbs.logmsg('x', 'b'); pbs.logjobmsg('7', 'c'); console.error('d', 1)");
  assert.deepEqual(logs, [
    { level: 8, job: null, text: "a" },
    { level: 4, job: null, text: "b" },
    { level: 4, job: "7", text: "c" },
  ]);
  assert.equal(output, "d 1\n");
  assert.equal(String(answerTo("for (let i = 0; i < 1000; i++) console.log('x'.repeat(99))")["output"]).length, 65600);
});

test("nothing of the host can be reached from the module's objects", () => {
  const reach = "process|require|module";
  for (const from of ["pbs.event", "pbs.duration(1)", "pbs.server", "console.log", "pbs.event().accept", "pbs.event().job.rerun"]) {
    const { error } = answerTo(`${from}.constructor.constructor('return this')()`);
    assert.match(String(error), /\nEvalError: Code generation/, from);
    assert.equal(answerTo(`for (const name of "${reach}".split("|")) if (name in globalThis) throw name`)["verdict"], "accept", from);
  }
});
