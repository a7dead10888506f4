// Takes over hooks from the server, runs the hooks of the host itself, and finds the run that an answer of hooks is about. Pure.

import type { SequenceEnd } from "#hooks/run/hook-sequence.ts";
import { JOB_EXEC } from "#model/exit-status.ts";
import { PBSE, pbseText } from "#model/pbse.ts";
import type { MomHooks } from "#protocol/mom-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { askHostHooks, honour, logHooks } from "./hook-steps.ts";

import { hooked } from "./life.ts";
import { type Context, keyOf, log } from "./record.ts";

import { answer, endUnlessOver, refusal } from "./requests.ts";
import type { MomState, Run, Step } from "./state.ts";
import { beginEnding, resume } from "./watch.ts";

export const NO_HOOKS: MomHooks = { digest: "", hooks: [], resources: {} };

/** Replaces the present hooks by the server's hooks and keeps them on the disk for the mom's next start. */
export function takeHooks(cx: Context, hooks: MomHooks, from: "server" | "disk"): void {
  const { state } = cx;
  const before = filesOf(state.hooks);
  if (state.config.reject_root_scripts && hooks.hooks.length > 0) {
    cx.actions.push({ kind: "log", event: LOG_EVENT.ERROR, object: "pbs_mom", text: "execution of root scripts rejected", class: "Svr" });
    state.hooks = { ...hooks, hooks: [] };
  } else state.hooks = hooks;
  for (const name of state.periodic.keys()) if (!hooks.hooks.some((hook) => hook.name === name)) state.periodic.delete(name);
  if (from === "server") cx.actions.push({ kind: "keep-hooks", hooks: state.hooks });
  if (from === "server") for (const file of filesOf(state.hooks)) if (!before.has(file)) logReceived(cx, file);
}

/** Returns the files that moms of PBS would have for these hooks (attributes, script and configuration of each), with their contents. */
function filesOf({ hooks }: MomHooks): ReadonlySet<string> {
  const files = new Set<string>();
  for (const { script, config, ...attrs } of hooks) {
    files.add(`${attrs.name}.HK ${JSON.stringify(attrs)}`);
    files.add(`${attrs.name}.${script.language === "python" ? "PY" : "JS"} ${script.content}`);
    if (config !== null) files.add(`${attrs.name}.CF ${config.content}`);
  }
  return files;
}

function logReceived(cx: Context, file: string): void {
  const text = "copy hook-related file request received";
  cx.actions.push({ kind: "log", event: LOG_EVENT.DEBUG2, object: file.slice(0, file.indexOf(" ")), text, class: "Hook" });
}

/** Starts each periodic hook freq seconds after its last start, unless it still runs. */
export function periodicHooks(cx: Context): void {
  const { state, now_ms } = cx;
  for (const hook of state.hooks.hooks) {
    if (!hook.event.includes("exechost_periodic") || state.stopping !== null) continue;
    const last_ms = state.periodic.get(hook.name);
    if (last_ms === undefined) state.periodic.set(hook.name, now_ms);
    if (last_ms === undefined || now_ms - last_ms < hook.freq * 1000 || isPeriodicRunning(state, hook.name)) continue;
    state.periodic.set(hook.name, now_ms);
    askHostHooks(cx, "exechost_periodic", hook.name);
  }
}

const isPeriodicRunning = (state: MomState, hook: string): boolean =>
  [...state.steps.values()].some(({ event, step }) => event === "exechost_periodic" && step.kind === "host" && step.hook === hook);

/** Whether exechost_startup hooks have not answered yet. */
export const isStartingUp = (state: MomState): boolean => [...state.steps.values()].some(({ event }) => event === "exechost_startup");

/** Finds the request with this number, removes it and passes it to `work`. run is undefined if the request is about the host, or if its run is gone. */
export function withStep(cx: Context, number: number, work: (event: string, step: Step, run: Run | undefined) => void): void {
  const asked = cx.state.steps.get(number);
  if (asked === undefined) return;
  cx.state.steps.delete(number);
  const { event, step } = asked;
  const run = "run" in step ? cx.state.runs.get(step.run.job) : undefined;
  work(event, step, run !== undefined && "run" in step && run.job.run_count === step.run.run_count ? run : undefined);
}

export function answered(cx: Context, number: number, end: SequenceEnd): void {
  withStep(cx, number, (event, step, run) => {
    if (step.kind === "host") return afterHostHooks(cx, event, end);
    if (run === undefined) {
      logHooks(cx, event, end, step.run.job);
      if (step.kind === "preresume") answer(cx, step.token, refusal(PBSE.UNKJOBID));
      return;
    }
    hooked(cx, run, step.kind, event, end);
    if (step.kind === "preterm") afterPreterm(cx, run, end, step.kill_delay_s);
    if (step.kind === "preresume") afterPreresume(cx, run, end, step.token);
  });
}

/** Handles the answer of hooks of the host. They may also end jobs. */
function afterHostHooks(cx: Context, event: string, end: SequenceEnd): void {
  logHooks(cx, event, end, null);
  honour(cx, event, end, null);
  for (const [id, wish] of Object.entries(end.requests.jobs)) {
    const run = cx.state.runs.get(id);
    if (run?.phase.name !== "running" || run.breach !== null) continue;
    const exit_status = wish === "delete" ? JOB_EXEC.HOOK_DELETE : JOB_EXEC.HOOK_RERUN;
    run.breach = { exit_status, text: `${event} hook '${end.hook}' requested for job to be ${wish === "delete" ? "deleted" : "rerun"}` };
    log(cx, LOG_EVENT.JOB, id, run.breach.text);
    beginEnding(cx, run, "limit", run.job.kill_delay_s);
  }
}

function afterPreterm(cx: Context, run: Run, end: SequenceEnd, kill_delay_s: number): void {
  honour(cx, "execjob_preterm", end, run);
  if (end.kind === "accept") return endUnlessOver(cx, run, "delete", kill_delay_s);
  const text = end.message ?? pbseText(PBSE.HOOK_REJECT) ?? "";
  cx.actions.push({ kind: "send", type: "mom-kept", data: { ...keyOf(run), text } });
}

function afterPreresume(cx: Context, run: Run, end: SequenceEnd, token: number): void {
  honour(cx, "execjob_preresume", end, run);
  if (end.kind !== "accept") return answer(cx, token, { code: PBSE.HOOK_REJECT, text: end.message ?? pbseText(PBSE.HOOK_REJECT) });
  if (run.phase.name !== "running") return answer(cx, token, refusal(PBSE.BADSTATE));
  if (run.phase.suspended_ms !== null) resume(cx, run);
  answer(cx, token, null);
}
