// Requests to hooks and scripts in the phases of a run, and the meaning of their answers (docs/reference/execution.md 6 and 9, docs/reference/files.md 7).
// Pure.
//
//   beginning: execjob_begin · admitting: execjob_prologue or the prologue, then execjob_launch · epilogue: execjob_epilogue or the epilogue · leaving: execjob_end
//   running: execjob_preterm before the run is ended, execjob_postsuspend after it is suspended, execjob_preresume before it is resumed
//   execjob_abort: the run could not be started
//
// E1. If there are no hooks and scripts for a phase, the run continues at once.
// E2. The prologue does not run if there are execjob_prologue hooks, and the epilogue does not run if there are execjob_epilogue hooks.

import type { HookInput } from "#hooks/run/hook-input.ts";
import type { SequenceEnd } from "#hooks/run/hook-sequence.ts";
import { JOB_EXEC } from "#model/exit-status.ts";
import { hostsOf } from "#model/request/host-entry.ts";
import type { MomHook, MomHookReport } from "#protocol/mom-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Attrs } from "../job/attrs.ts";
import { isSameHost } from "../job/attrs.ts";
import { failureText, type ScriptEnd, type ScriptName, scriptEnvironment } from "../job/pelog.ts";
import { changedAttrs, jobObject, MOM_WRITABLE, resourcesOfTypes, usedByHooks, vnodeObject, vnodesOf, withoutUsage } from "./hook-view.ts";

import { type Context, keyOf, modify } from "./record.ts";

import type { MomState, OutputFiles, Run, Step } from "./state.ts";

/** Returns the hooks of an event in their order. All are enabled: the server sends no others. */
export const hooksFor = (state: MomState, event: string): readonly MomHook[] =>
  state.hooks.hooks.filter((hook) => hook.event.includes(event));

/** Starts the hooks of an event. more: input of the event in addition to the job. Returns false if the event has no hooks. */
export function askHooks(
  cx: Context,
  event: HookInput["event"],
  run: Run,
  kind: Step,
  view: Attrs = {},
  more: Partial<HookInput> = {},
): boolean {
  const hooks = hooksFor(cx.state, event);
  if (hooks.length === 0) return false;
  const { config, hooks: known, vnodes } = cx.state;
  const resources = resourcesOfTypes(known.resources);
  const [first] = hostsOf(run.job.exec_host);
  const input: HookInput = {
    event,
    requestor: "pbs_mom",
    requestor_host: config.host,
    server: config.server,
    node: config.host,
    job: jobObject(run.job, view, resources),
    vnode_list: vnodesOf(run.job, vnodes).map((vnode) => vnodeObject(vnode, resources)),
    first_host: first === undefined || isSameHost(first, config.host),
    writable: MOM_WRITABLE,
    ...more,
  };
  push(cx, event, kind, hooks, input, run);
  return true;
}

/** Starts the hooks of an event of the host. only: the single hook to run. Returns false if there are none. */
export function askHostHooks(cx: Context, event: "exechost_startup" | "exechost_periodic", only?: string): boolean {
  const hooks = hooksFor(cx.state, event).filter((hook) => only === undefined || hook.name === only);
  if (hooks.length === 0) return false;
  const { config, hooks: known, vnodes } = cx.state;
  const resources = resourcesOfTypes(known.resources);
  const jobs = [...cx.state.runs.values()].filter((run) => run.phase.name === "running");
  const input: HookInput = {
    event,
    requestor: "pbs_mom",
    requestor_host: config.host,
    server: config.server,
    node: config.host,
    vnode_list: vnodes.map((vnode) => vnodeObject(vnode, resources)),
    ...(event === "exechost_periodic" ? { job_list: jobs.map((run) => jobObject(run.job, {}, resources)) } : {}),
    writable: MOM_WRITABLE,
  };
  push(cx, event, { kind: "host", hook: only ?? "" }, hooks, input, null);
  return true;
}

function push(cx: Context, event: string, step: Step, hooks: readonly MomHook[], input: HookInput, run: Run | null): void {
  const number = cx.state.next_step++;
  cx.state.steps.set(number, { event, step });
  cx.actions.push({ kind: "run-hooks", step: number, hooks, input, resources: cx.state.hooks.resources, owner: run?.plan.owner ?? null });
}

/** Requests a prologue or epilogue script. Whether the host has one is known only from the answer. */
export function askScript(cx: Context, script: ScriptName, run: Run, step: Step, args: readonly string[], files: OutputFiles): void {
  const number = cx.state.next_step++;
  cx.state.steps.set(number, { event: script, step });
  const { config } = cx.state;
  cx.actions.push({
    kind: "run-script",
    step: number,
    script,
    args,
    env: scriptEnvironment(run.job, run.plan.sandbox ?? run.owner.home, run.plan.tmpdir, config.facts.site),
    files,
    owner: run.plan.owner,
    alarm_s: config.prologalarm_s,
  });
}

/** Whether hooks or a script were started for this step of the run and have not answered yet. */
export function isAsking(state: MomState, run: Run, kind: Step["kind"]): boolean {
  for (const { step } of state.steps.values())
    if (step.kind === kind && "run" in step && step.run.job === run.job.id && step.run.run_count === run.job.run_count) return true;
  return false;
}

// ---- answers ----

/** Logs the messages of hooks. A message about a job is logged under the id of that job. */
export function logHooks(cx: Context, event: string, end: SequenceEnd, job: string | null): void {
  for (const { hook, level, job: about, text } of end.logs)
    cx.actions.push({ kind: "log", event: level, object: about ?? hook, text, class: about === null ? "Hook" : "Job" });
  const tell = (level: number, text: string): void =>
    void cx.actions.push({ kind: "log", event: level, object: job ?? end.hook, text, class: job === null ? "Hook" : "Job" });
  switch (end.kind) {
    case "accept":
      return;
    case "reject":
      if (end.message !== null) tell(LOG_EVENT.JOB, end.message);
      return tell(LOG_EVENT.JOB, `${event} hook rejected request: ${end.message ?? `${event} request rejected by '${end.hook}'`}`);
    case "failed":
      return tell(LOG_EVENT.ERROR, `${event} hook '${end.hook}' encountered an exception, request rejected`);
    case "alarm":
      return tell(LOG_EVENT.ERROR, `alarm call while running ${event} hook '${end.hook}', request rejected`);
    default: {
      const unreachable: never = end.kind;
      return unreachable;
    }
  }
}

/** Returns the Exit_status of a run that hooks stopped with this answer before it started, or null if the run continues. */
export function exitStatusOf(end: SequenceEnd, job: string): number | null {
  const wish = end.requests.jobs[job];
  switch (end.kind) {
    case "accept":
      return wish === undefined ? null : wish === "delete" ? JOB_EXEC.HOOK_DELETE : JOB_EXEC.HOOK_RERUN;
    case "reject":
      return wish === "delete" ? JOB_EXEC.FAILHOOK_DELETE : JOB_EXEC.FAILHOOK_RERUN;
    case "failed":
    case "alarm":
      return JOB_EXEC.HOOKERROR;
    default: {
      const unreachable: never = end.kind;
      return unreachable;
    }
  }
}

/** The events before the job starts. What their hooks change in the job applies to this run at once. */
const BEFORE_START: ReadonlySet<string> = new Set(["execjob_begin", "execjob_prologue", "execjob_launch"]);

/** Applies what hooks changed: in the run here, and in the server by a report to it. run null: an event of the host. */
export function honour(cx: Context, event: string, end: SequenceEnd, run: Run | null): void {
  const { state } = cx;
  if (end.requests.reboot !== null) cx.actions.push({ kind: "reboot", hook: end.hook, command: end.requests.reboot });
  const changes = end.kind === "accept" ? end.changes : {};
  if (run !== null) run.used_by_hooks = { ...run.used_by_hooks, ...usedByHooks(changes.job, resourcesOfTypes(state.hooks.resources)) };
  if (run !== null && changes.job !== undefined && BEFORE_START.has(event)) {
    const attrs = changedAttrs(run.job.attrs, changes.job, resourcesOfTypes(state.hooks.resources));
    if (Object.keys(attrs).length > 0) modify(cx, run, attrs);
  }
  for (const hook of recovered(event, end, state))
    report(cx, { hook, event, actions: ["clear_vnodes_upon_recovery"], restart_cycle: false, vnodes: {} });
  const actions = actionsOf(event, end);
  const job = run === null ? {} : withoutUsage(changes.job);
  const { restart_cycle } = end.requests;
  if (actions.length === 0 && !restart_cycle && Object.keys(job).length === 0 && changes.vnode_list === undefined) return;
  const told: MomHookReport = {
    hook: end.hook === "" ? (end.accepted.at(-1) ?? "") : end.hook,
    event,
    actions,
    restart_cycle,
    vnodes: changes.vnode_list ?? {},
    ...(run === null || Object.keys(job).length === 0 ? {} : { job: { ...keyOf(run), changes: job } }),
  };
  report(cx, told);
}

/** Returns the actions named in the failed hook's fail_action that apply to this event. */
function actionsOf(event: string, end: SequenceEnd): readonly string[] {
  if (end.kind !== "failed" && end.kind !== "alarm") return [];
  return end.fail_action.filter((action) => FAILURE_ACTIONS[action]?.includes(event));
}

/**
 * Returns the exechost_startup hooks that have succeeded and have clear_vnodes_upon_recovery in fail_action. Vnodes that were put offline when such a hook had
 * failed come back.
 */
function recovered(event: string, end: SequenceEnd, state: MomState): readonly string[] {
  if (event !== "exechost_startup") return [];
  const clearing = hooksFor(state, event).filter((hook) => hook.fail_action.includes("clear_vnodes_upon_recovery"));
  return clearing.map(({ name }) => name).filter((name) => end.accepted.includes(name));
}

const FAILURE_ACTIONS: { readonly [action: string]: readonly string[] } = {
  offline_vnodes: ["execjob_begin", "execjob_prologue", "exechost_startup"],
  scheduler_restart_cycle: ["execjob_begin", "execjob_prologue"],
};

/** Sends the report about hooks to the server. If the server is not connected, the report is kept until it is. */
function report(cx: Context, told: MomHookReport): void {
  if (cx.state.welcomed) cx.actions.push({ kind: "send", type: "mom-hook", data: told });
  else cx.state.reports.push(told);
}

/** Logs how a script has ended. */
export function logScript(cx: Context, script: ScriptName, job: string, end: ScriptEnd): void {
  if (end.kind === "none") return;
  const { home } = cx.state.config.facts;
  const tell = (event: number, text: string): void => void cx.actions.push({ kind: "log", event, object: job, text });
  tell(LOG_EVENT.DEBUG, `completed ${script}, exit=${end.code}`);
  if (end.code !== 0) tell(LOG_EVENT.ERROR, failureText(`${home}/mom_priv/${script}`, end));
}
