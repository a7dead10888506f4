// Runs the hooks of one event, one after the other; each sees the changes of the hooks before it (docs/reference/qmgr.md 9,
// docs/reference/attributes.md 9).
//
// I1. The first hook that rejects, fails or takes too long ends the chain; the event is then rejected.
// I2. A chain exists only in the server's memory. A restart of the server ends it, together with its request or event.

import type { HookInput, HookOutcome, HookRequests, HookRun } from "#hooks/run/hook-input.ts";
import { withChanges } from "#hooks/run/merge.ts";
import { PBSE, Reject } from "#model/pbse.ts";
import { type Hook, type HookEvent, type HookScript, hooksOf } from "#model/tables/hook.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { nth } from "#support/assert.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Chain } from "../engine/hook-runtime.ts";
import type { Kernel } from "../engine/kernel.ts";
import type { HookVerdict } from "../engine/transaction.ts";
import { resourceTypes } from "./objects.ts";

/** The verdict if no hook has changed anything. In other verdicts, `by` is the last hook that changed something, or the hook that rejected the event. */
const NOTHING_CHANGED: HookVerdict = { kind: "accept", changes: {}, by: "" };

/** Whether the event has a hook that would run. */
export const hasHooks = (kernel: Pick<Kernel, "state">, event: HookEvent): boolean =>
  kernel.state.hooks.size > 0 && hooksOf(kernel.state.hooks.values(), event).length > 0;

/** Runs the event's hooks. then: called exactly once; without hooks, before this call returns. only: if given, just this hook runs. */
export function runHooks(kernel: Kernel, event: HookEvent, input: HookInput, then: (verdict: HookVerdict) => void, only?: string): void {
  const hooks = hooksOf(kernel.state.hooks.values(), event).filter((hook) => only === undefined || hook.name === only);
  if (hooks.length === 0) return then(NOTHING_CHANGED);
  runNext(kernel, { event, hooks, at: 0, input, changes: {}, by: "", then });
}

function runNext(kernel: Kernel, chain: Chain): void {
  const hook = chain.hooks[chain.at];
  if (hook === undefined) return chain.then({ kind: "accept", changes: chain.changes, by: chain.by });
  const run = kernel.hooks.next_run++;
  kernel.hooks.runs.set(run, chain);
  log(kernel, hook.name, LOG_EVENT.DEBUG3, "started");
  kernel.out.actions.push({ kind: "run-hook", run, hook: hookRun(kernel, hook, chain.input) });
}

function hookRun(kernel: Kernel, { name, attrs, script, config }: Hook, input: HookInput): HookRun {
  const { type, alarm, freq, order, user, debug, fail_action } = attrs;
  const resources = resourceTypes(kernel.state);
  return { name, type, alarm, freq, order, user, debug, fail_action, script: script as HookScript, config, input, resources };
}

/** Called when a run of a hook has ended: starts the next hook of the chain, or ends the chain. */
export function hookEnded(kernel: Kernel, run: number, outcome: HookOutcome): void {
  const chain = kernel.hooks.runs.get(run);
  if (chain === undefined) return;
  kernel.hooks.runs.delete(run);
  const hook = nth(chain.hooks, chain.at);
  for (const { level, job, text } of outcome.logs) {
    if (job === null) log(kernel, hook.name, level, text);
    else kernel.out.logs.push({ event: level, class: "Job", object: job, text });
  }
  log(kernel, hook.name, LOG_EVENT.DEBUG3, "finished");
  const failure = failureOf(kernel, chain.event, hook.name, outcome);
  if (outcome.kind === "accept" || outcome.kind === "reject") honour(kernel, outcome.requests);
  if (failure !== null) {
    const changes = outcome.kind === "reject" ? outcome.changes : {};
    return chain.then({ kind: "reject", reject: failure, changes, by: hook.name });
  }
  if (outcome.kind === "accept" && Object.keys(outcome.changes).length > 0) {
    ({ input: chain.input, changes: chain.changes } = withChanges(chain.input, chain.changes, outcome.changes));
    chain.by = hook.name;
  }
  chain.at++;
  runNext(kernel, chain);
}

/** The refusal that a hook's outcome leads to; null: the hook accepts. The client gets the text; the log gets the reason of a failure. */
function failureOf(kernel: Kernel, event: HookEvent, hook: string, outcome: HookOutcome): Reject | null {
  switch (outcome.kind) {
    case "accept":
      return null;
    case "reject": {
      const text = outcome.message ?? `${event} request rejected by '${hook}'`;
      log(kernel, hook, LOG_EVENT.DEBUG2, `${event} hook rejected request: ${text}`);
      return new Reject(PBSE.HOOKERROR, text);
    }
    case "error":
      log(kernel, hook, LOG_EVENT.ERROR, `${event} hook '${hook}' encountered an exception, request rejected`);
      for (const line of outcome.text.split("\n").filter((text) => text.trim() !== "")) log(kernel, hook, LOG_EVENT.ERROR, line);
      return encountered(hook);
    case "alarm":
      log(kernel, hook, LOG_EVENT.ERROR, `alarm call while running ${event} hook '${hook}', request rejected`);
      return encountered(hook);
    default: {
      const unreachable: never = outcome;
      return unreachable;
    }
  }
}

/** The refusal that users get when a hook has failed (docs/reference/commands.md 1.2). */
export const encountered = (hook: string): Reject =>
  new Reject(PBSE.HOOKERROR, `request rejected as filter hook '${hook}' encountered an exception. Please inform Admin`);

function honour(kernel: Kernel, requests: HookRequests): void {
  if (!requests.restart_cycle) return;
  for (const name of kernel.scheds.by_name.keys())
    kernel.follow.carryOut(kernel, { kind: "trigger-sched", sched: name, command: SCHED_COMMAND.CMD });
}

function log(kernel: Kernel, hook: string, event: number, text: string): void {
  kernel.out.logs.push({ event, class: "Hook", object: hook, text });
}
