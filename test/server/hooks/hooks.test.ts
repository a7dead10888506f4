// Hooks as the server runs them and sends them to moms; the test plays the hosts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type HookOutcome, type HookRun, NO_REQUESTS } from "#hooks/run/hook-input.ts";
import { alterHook, freshHook } from "#model/tables/hook.ts";
import type { MomHookReport, MomHooks } from "#protocol/mom-link.ts";
import {
  ALICE,
  addHost,
  addJob,
  advance,
  apply,
  ask,
  type Harness,
  harness,
  jobAttrs,
  lettersOf,
  logsOf,
  mom,
  momHello,
  outcome,
  ROOT,
  runOn,
  sched,
  schedHello,
  settle,
  stateOf,
} from "../harness.ts";
import { qsub } from "../requests/qsub.ts";

function putHook(h: Harness, name: string, event: string, attrs: Readonly<Record<string, string>> = {}, content = "cGFzcw=="): void {
  const terms = Object.entries({ event, ...attrs }).map(([attribute, value]) => ({ name: attribute, op: "=" as const, value }));
  apply(h, {
    kind: "hook-put",
    name,
    attrs: alterHook(freshHook(), terms),
    script: { language: "python", content },
    config: null,
  });
}

type Running = { readonly run: number; readonly hook: HookRun };
/** Requested hooks without an answer, oldest first. */
const running = (h: Harness): Running[] => h.actions.filter((action) => action.kind === "run-hook");
function reply(h: Harness, end: Partial<HookOutcome> = {}): HookRun {
  const at = h.actions.findIndex((action) => action.kind === "run-hook");
  const [asked] = h.actions.splice(at, 1) as [Running & { kind: "run-hook" }];
  const whole = { kind: "accept", changes: {}, requests: NO_REQUESTS, logs: [], ...end } as HookOutcome;
  h.core.hookEnded(asked.run, whole, h.now_ms);
  settle(h);
  return asked.hook;
}
const names = (h: Harness): string =>
  running(h)
    .map(({ hook }) => `${hook.input.event}:${hook.name}`)
    .join(" ");

const SUBMIT = { kind: "queue-job", destination: "", attrs: [], script: "true\n" } as const;
const submit = (h: Harness): number => {
  const token = h.next_token;
  assert.equal(ask(h, ALICE, { ...SUBMIT } as never), undefined);
  return token;
};

test("hooks of one event run in their order, each with what those before have changed, until one refuses", () => {
  const h = harness();
  putHook(h, "second", "queuejob", { order: "2" });
  putHook(h, "first", "queuejob");
  putHook(h, "off", "queuejob", { enabled: "False" });
  const token = submit(h);
  assert.equal(names(h), "queuejob:first");
  reply(h, { changes: { job: { Priority: "5", Account_Name: "one" } } } as never);
  assert.equal(names(h), "queuejob:second");
  assert.deepEqual([running(h)[0]?.hook.input.job?.attrs["Priority"], running(h)[0]?.hook.input.job?.attrs["Account_Name"]], ["5", "one"]);
  reply(h, { changes: { job: { Account_Name: "two" } } } as never);
  assert.equal(h.answers.get(token)?.ok, true);
  const [job] = [...h.core.state.jobs.values()];
  assert.deepEqual([job?.attrs["Priority"], job?.attrs["Account_Name"]], [5, "two"]);

  const refused = submit(h);
  reply(h, { kind: "reject", message: "no" } as never);
  assert.equal(names(h), "", "the second is not asked");
  assert.deepEqual(h.answers.get(refused), { ok: false, code: 15136, text: "no" });
});

test("while a hook runs the server serves others; what it changed that cannot be refuses the request", () => {
  const h = harness();
  putHook(h, "h", "queuejob");
  const token = submit(h);
  assert.equal(outcome(h, ALICE, { kind: "status", object: "server", ids: [] } as never), "ok");
  reply(h, { changes: { job: { Priority: "very" } } } as never);
  const answer = h.answers.get(token);
  assert.equal(answer?.ok, false);
  assert.equal(h.core.state.jobs.size, 0);
});

test("a hook that is deleted while it runs still answers; a restart forgets what waited", () => {
  const h = harness();
  putHook(h, "h", "queuejob");
  const token = submit(h);
  apply(h, { kind: "hook-deleted", name: "h" });
  reply(h);
  assert.equal(h.answers.get(token)?.ok, true);
});

test("a scheduler's decision about a job waits for its postqueuejob hooks", () => {
  const h = harness();
  addHost(h, "n1");
  putHook(h, "h", "postqueuejob");
  schedHello(h, 1);
  const id = addJob(h);
  advance(h, 1);
  assert.equal(names(h), "postqueuejob:h");
  const told = h.to_scheds.findLast(({ type }) => type === "sched-cycle");
  const cycle = (told?.data as { readonly cycle: number } | undefined)?.cycle ?? 0;
  const decision = { kind: "run", job: id, exec_vnode: "(n1:ncpus=1)" } as const;
  sched(h, 1, "sched-decisions", { cycle, decisions: [decision] });
  const verdicts = (): unknown[] => h.to_scheds.filter(({ type }) => type === "sched-verdicts");
  assert.deepEqual([jobAttrs(h, id).job_state, verdicts().length], ["Q", 0]);
  reply(h, { changes: { job: { Account_Name: "posted" } } } as never);
  assert.deepEqual([jobAttrs(h, id).job_state, jobAttrs(h, id)["Account_Name"], verdicts().length], ["R", "posted", 1]);
});

test("runjob refuses a qrun; a hook may hold the job", () => {
  const h = harness();
  addHost(h, "n1");
  putHook(h, "h", "runjob");
  const id = addJob(h);
  const token = h.next_token;
  ask(h, ROOT, { kind: "run-job", job: id, exec_vnode: "(n1:ncpus=1)", async: true } as never);
  assert.equal(names(h), "runjob:h");
  reply(h, { kind: "reject", message: "not today", changes: { job: { Hold_Types: "s" } } } as never);
  assert.deepEqual(h.answers.get(token), { ok: false, code: 15136, text: "not today" });
  assert.equal(jobAttrs(h, id).job_state, "H");
});

test("runjob may set resources that do not decide the place, of a job and of a subjob; the others are left out, and the job runs", async () => {
  const h = harness();
  addHost(h, "n1");
  putHook(h, "h", "runjob");
  const set = { Resource_List: { site: "here there", walltime: "1:00:00", ncpus: "4", nosuch: "1" } };
  const qrun = (id: string): void => {
    ask(h, ROOT, { kind: "run-job", job: id, exec_vnode: "(n1:ncpus=1)", async: true } as never);
    assert.ok(running(h)[0]?.hook.input.writable.job?.includes("Resource_List"));
    reply(h, { changes: { job: set } } as never);
  };
  const job = addJob(h);
  qrun(job);
  const array = await qsub(h, "-J 1-2 -- /bin/true");
  const subjob = array.replace("[]", "[1]");
  qrun(subjob);
  for (const id of [job, subjob]) {
    const { job_state, Resource_List } = jobAttrs(h, id);
    assert.deepEqual(
      [job_state, Resource_List["site"], Resource_List["walltime"], Resource_List["ncpus"]],
      ["R", "here there", 3600, 1],
      id,
    );
    assert.deepEqual(
      h.accounting.filter((record) => record.type === "a" && record.id === id).map(({ text }) => text),
      ['Resource_List.site="here there"', "Resource_List.walltime=01:00:00"],
    );
    assert.deepEqual(
      logsOf(h, "h").filter((text) => text.startsWith(`${id}: `)),
      [
        `${id}: what the hook has set is left out: Cannot set attribute, read only or insufficient permission  Resource_List.ncpus (15003)`,
        `${id}: what the hook has set is left out: Unknown resource Resource_List.nosuch (15035)`,
      ],
    );
  }
  assert.equal(jobAttrs(h, array).Resource_List["site"], undefined, "the array and its other subjobs stay as they are");
});

test("a modifyjob hook that sets what only arrays have is refused in those words, not as a hook that failed", () => {
  const h = harness();
  putHook(h, "h", "modifyjob");
  const token = h.next_token;
  ask(h, ALICE, { kind: "modify-job", job: addJob(h), attrs: [{ name: "Priority", op: "=", value: "5" }] });
  reply(h, { changes: { job: { max_run_subjobs: "2" } } } as never);
  assert.deepEqual(h.answers.get(token), { ok: false, code: 15231, text: "Attribute has to be set on an array job" });
});

test("a periodic hook runs every freq seconds, once at a time", () => {
  const h = harness();
  putHook(h, "p", "periodic", { freq: "60" });
  advance(h, 59);
  assert.equal(names(h), "");
  advance(h, 1);
  assert.equal(names(h), "periodic:p");
  advance(h, 60);
  assert.equal(running(h).length, 1);
  reply(h);
  advance(h, 60);
  assert.equal(names(h), "periodic:p");
});

test("jobobit, management and modifyvnode are told what has happened, and cannot undo it", () => {
  const h = harness();
  const link = addHost(h, "n1");
  putHook(h, "h", "jobobit,management,modifyvnode");
  const id = addJob(h);
  runOn(h, id, "n1", link);
  mom(h, link, "mom-obit", { job: id, run_count: 1, exit_status: 3, used: {} });
  assert.equal(names(h), "jobobit:h");
  assert.deepEqual(running(h)[0]?.hook.input.job?.attrs["Exit_status"], "3");
  reply(h, { kind: "reject", message: "no" } as never);
  assert.equal(lettersOf(h, id).endsWith("E"), true);
  assert.equal(
    outcome(h, ROOT, {
      kind: "manager",
      verb: "set",
      object: "server",
      name: "",
      attrs: [{ name: "comment", op: "=", value: "x" }],
    } as never),
    "ok",
  );
  const told = reply(h);
  assert.equal(told.input.event, "management");
  h.core.momLost(link, h.now_ms);
  settle(h);
  assert.equal(names(h), "modifyvnode:h");
  assert.deepEqual([running(h)[0]?.hook.input.vnode_o?.attrs["state"], running(h)[0]?.hook.input.vnode?.attrs["state"]], ["free", "down"]);
});

// --- hooks of moms

const givenTo = (h: Harness, link: number): MomHooks[] =>
  h.to_moms.filter((frame) => frame.type === "mom-hooks" && frame.link === link).map(({ data }) => data as MomHooks);

test("a mom is given the hooks of its events: after its hello if it has others, and when they change", () => {
  const h = harness();
  const link = addHost(h, "n1");
  assert.equal(givenTo(h, link).length, 0, "there are none");
  putHook(h, "s", "queuejob");
  assert.equal(givenTo(h, link).length, 0, "none of its events");
  putHook(h, "b", "execjob_begin,queuejob", { order: "2" });
  putHook(h, "a", "exechost_periodic", { freq: "9" });
  const last = givenTo(h, link).at(-1);
  assert.deepEqual(
    last?.hooks.map(({ name, order, freq }) => [name, order, freq]),
    [
      ["a", 1, 9],
      ["b", 2, 120],
    ],
  );
  const sent = (): string[] => h.logs.splice(0).flatMap(({ text }) => /^successfully sent hook file (.*)$/.exec(text)?.[1] ?? []);
  const file = (name: string): string => `${h.core.kernel.config.home}/server_priv/hooks/${name} to n1`;
  assert.deepEqual(sent(), ["b.HK", "b.PY", "a.HK", "a.PY"].map(file));
  const count = givenTo(h, link).length;
  momHello(h, link, "n1");
  assert.deepEqual(sent(), ["a.HK", "a.PY", "b.HK", "b.PY"].map(file), "all of them, for this mom is new");
  assert.equal(givenTo(h, link).length, count + 1, "its hello knew of none");
  putHook(h, "a", "exechost_periodic", { freq: "9" }, "cGFzczI=");
  assert.notEqual(givenTo(h, link).at(-1)?.digest, last?.digest, "other contents");
  assert.deepEqual(sent(), [file("a.PY")], "what changed");
  apply(h, { kind: "hook-deleted", name: "a" });
  apply(h, {
    kind: "hook-put",
    name: "b",
    attrs: alterHook(freshHook(), [{ name: "event", op: "=", value: "queuejob" }]),
    script: null,
    config: null,
  });
  assert.deepEqual(givenTo(h, link).at(-1), { digest: "", hooks: [], resources: {} });
});

test("fail_action of a mom's hook: vnodes go offline and come back, the scheduler looks again", () => {
  const h = harness();
  const link = addHost(h, "n1");
  addHost(h, "n2");
  const report = (more: Partial<MomHookReport>): void =>
    mom(h, link, "mom-hook", { hook: "hk", event: "execjob_begin", actions: [], restart_cycle: false, vnodes: {}, ...more });
  const node = (name: string): unknown[] => {
    const attrs = h.core.state.vnodes.get(name)?.attrs;
    return [attrs?.["state"], attrs?.["comment"]];
  };
  report({ actions: ["offline_vnodes"] });
  assert.deepEqual(node("n1"), [["offline"], "offlined by hook 'hk' due to hook error"]);
  report({ hook: "other", event: "exechost_startup", actions: ["clear_vnodes_upon_recovery"] });
  assert.deepEqual(node("n1")[0], ["offline"], "another hook's");
  report({ event: "exechost_startup", actions: ["clear_vnodes_upon_recovery"] });
  assert.deepEqual(node("n1"), [[], undefined]);
  report({ vnodes: { n1: { comment: "mine" }, n2: { comment: "not mine" } } });
  assert.deepEqual([node("n1")[1], node("n2")[1]], ["mine", undefined]);
  assert.ok(logsOf(h, "hk").some((text) => text.startsWith("vnode n2 is not changed")));
  report({ vnodes: { n1: 5 } });
});

test("a job that an execjob_preterm hook keeps was never deleted; changes of hooks are made as by a manager", () => {
  const h = harness();
  const link = addHost(h, "n1");
  const id = addJob(h);
  runOn(h, id, "n1", link);
  outcome(h, ALICE, { kind: "delete-job", job: id } as never);
  assert.notEqual(h.core.state.jobs.get(id)?.own.termination, undefined);
  mom(h, link, "mom-kept", { job: id, run_count: 9, text: "another run" });
  assert.notEqual(h.core.state.jobs.get(id)?.own.termination, undefined);
  mom(h, link, "mom-kept", { job: id, run_count: 1, text: "stay" });
  assert.equal(h.core.state.jobs.get(id)?.own.termination, undefined);
  assert.equal(stateOf(h, id), "R 42");
  assert.ok(logsOf(h, id).includes("execjob_preterm hook rejected request: stay"));
  const report = { hook: "hk", event: "execjob_begin", actions: [], restart_cycle: false, vnodes: {} };
  mom(h, link, "mom-hook", { ...report, job: { job: id, run_count: 1, changes: { Account_Name: "by hook", substate: "50" } } });
  assert.equal(jobAttrs(h, id)["Account_Name"], undefined, "one of them cannot be: none is made");
  mom(h, link, "mom-hook", { ...report, job: { job: id, run_count: 1, changes: { Account_Name: "by hook" } } });
  void link;
});
