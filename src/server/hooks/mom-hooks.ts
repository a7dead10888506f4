// Hooks of execution hosts: the hooks that moms get, and what those hooks request of the server.
//
// M1. A mom has the present set of hooks before it gets a job: the frame with the hooks is sent before any later start of a job.
// M2. A hook of a host may change only vnodes of that host, and jobs that are there.
// M3. In system mode, runners get no hooks: a runner is a process of a user, who may not read what hooks and their configurations contain, and would not have to run them.

import { type AttrChanges, isAttrChanges, isObjectChanges } from "#hooks/run/hook-input.ts";
import { listOf } from "#model/attribute-reader.ts";
import { type Hook, type HookScript, isMomEvent } from "#model/tables/hook.ts";
import type { MomHook, MomHookReport, MomHooks, MomToServer } from "#protocol/mom-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { digestOf } from "#support/digest.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import type { MomRuntime } from "../engine/mom-runtime.ts";
import { logJob } from "../jobs/life.ts";
import type { Job, Vnode } from "../state/state.ts";
import { alterByHook } from "./alteration.ts";
import { resourceTypes } from "./objects.ts";
import { changeVnodes } from "./vnode-change.ts";

/** Digests of scripts and configurations of hooks. They are kept because the contents are long and seldom change. */
const digests = new WeakMap<object, string>();
function contentDigest(part: { readonly content: string }): string {
  let digest = digests.get(part);
  if (digest === undefined) {
    digest = digestOf(part.content);
    digests.set(part, digest);
  }
  return digest;
}

/** The enabled hooks that moms run, in their order. If there are none, the digest is "". */
function momHooks(kernel: Kernel): MomHooks {
  const hooks = [...kernel.state.hooks.values()]
    .filter(({ attrs, script }) => attrs.enabled && script !== null && attrs.event.some(isMomEvent))
    .sort((a, b) => a.attrs.order - b.attrs.order || (a.name < b.name ? -1 : 1));
  if (hooks.length === 0) return { digest: "", hooks: [], resources: {} };
  const resources = resourceTypes(kernel.state);
  const parts = hooks.map(({ name, attrs, script, config }) => [
    name,
    attrs,
    script?.language,
    contentDigest(script as HookScript),
    config?.suffix,
    config === null ? null : contentDigest(config),
  ]);
  return { digest: digestOf(JSON.stringify([parts, resources])), hooks: hooks.map(momHook), resources };
}

function momHook({ name, attrs, script, config }: Hook): MomHook {
  const { type, event, user, alarm, freq, order, debug, fail_action } = attrs;
  return { name, type, event, user, alarm, freq, order, debug, fail_action, script: script as HookScript, config };
}

/** Sends the present hooks to a mom, unless it has them already. */
export function tellHooks(kernel: Kernel, mom: MomRuntime, hooks: MomHooks = momHooks(kernel)): void {
  if (mom.hooks === hooks.digest || isOfUser(kernel, mom)) return;
  mom.hooks = hooks.digest;
  kernel.out.moms.push({ link: mom.link, type: "mom-hooks", data: hooks });
  const files = hookFiles(hooks);
  for (const [file, digest] of files) if (mom.hook_files.get(file) !== digest) logSent(kernel, file, mom.host);
  mom.hook_files = files;
}

/** Whether the mom is a runner that is a process of a user (M3). */
const isOfUser = ({ config, state }: Kernel, { host }: MomRuntime): boolean => config.own_user === null && state.runners.has(host);

/** The names of the hooks' files in server_priv/hooks, with digests of their contents. */
function hookFiles({ hooks }: MomHooks): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const { script, config, ...attrs } of hooks) {
    files.set(`${attrs.name}.HK`, digestOf(JSON.stringify(attrs)));
    files.set(`${attrs.name}.${script.language === "python" ? "PY" : "JS"}`, contentDigest(script));
    if (config !== null) files.set(`${attrs.name}.CF`, contentDigest(config));
  }
  return files;
}

/** Writes a log line for which site tools wait: one line for each file that is new to the mom, although one frame carries all hooks. */
function logSent({ config, out }: Kernel, file: string, host: string): void {
  const text = `successfully sent hook file ${config.home}/server_priv/hooks/${file} to ${host}`;
  out.logs.push({ event: LOG_EVENT.DEBUG2, class: "Hook", object: `Server@${config.host}`, text });
}

/** Called when a hook or a resource has changed: sends the hooks to all connected moms. */
export function momHooksChanged(kernel: Kernel): void {
  if (kernel.moms.by_host.size === 0) return;
  const hooks = momHooks(kernel);
  for (const mom of kernel.moms.by_host.values()) tellHooks(kernel, mom, hooks);
}

// --- reports of moms about hooks

const offlinedBy = (hook: string): string => `offlined by hook '${hook}' due to hook error`;

/** Applies what a mom reports about a hook. vnodes: the vnodes of the mom's host. job: the job of the report, if the report is about its present run. */
export function hookReported(kernel: Kernel, told: MomHookReport, vnodes: readonly Vnode[], job: Job | undefined): void {
  const tx = ownTransaction(kernel);
  const { hook } = told;
  const names = vnodes.map(({ name }) => name);
  if (isObjectChanges(told.vnodes)) changeVnodes(tx, told.vnodes, hook, new Set(names));
  for (const action of told.actions) {
    switch (action) {
      case "offline_vnodes":
        for (const name of names) addState(kernel, name, hook);
        break;
      case "clear_vnodes_upon_recovery":
        for (const vnode of vnodes) if (vnode.attrs["comment"] === offlinedBy(hook)) takeState(kernel, vnode, hook);
        break;
      case "scheduler_restart_cycle":
        restartCycles(kernel);
        break;
    }
  }
  if (told.restart_cycle) restartCycles(kernel);
  if (job !== undefined && told.job !== undefined && isAttrChanges(told.job.changes)) alterByHook(tx, job, told.job.changes, hook);
}

function addState(kernel: Kernel, name: string, hook: string): void {
  const states = kernel.state.vnodes.get(name)?.attrs["state"] as readonly string[] | undefined;
  const state = [...new Set([...(states ?? []), "offline"])].join(",");
  change(kernel, name, { state, comment: offlinedBy(hook) }, hook);
}

function takeState(kernel: Kernel, vnode: Vnode, hook: string): void {
  const states = listOf(vnode.attrs, "state");
  change(kernel, vnode.name, { state: states.filter((word) => word !== "offline").join(",") || "free", comment: null }, hook);
}

const change = (kernel: Kernel, name: string, changes: AttrChanges, hook: string): void =>
  changeVnodes(ownTransaction(kernel), { [name]: changes }, hook);

function restartCycles(kernel: Kernel): void {
  for (const name of kernel.scheds.by_name.keys())
    kernel.follow.carryOut(kernel, { kind: "trigger-sched", sched: name, command: SCHED_COMMAND.CMD });
}

/** Called when an execjob_preterm hook lets the job continue: undoes the deletion of the job. */
export function jobKept(kernel: Kernel, job: Job, { text }: MomToServer["mom-kept"]): void {
  const tx = ownTransaction(kernel);
  tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { termination: null } });
  logJob(tx, LOG_EVENT.JOB, job.id, `execjob_preterm hook rejected request: ${text}`);
}
