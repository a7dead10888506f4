// Events whose hooks run after the change: postqueuejob, jobobit, management, modifyvnode, resv_confirm, resv_begin,
// resv_end, and periodic. Nothing waits for these hooks, with one exception (A1). If such a hook rejects its event, this is
// only logged.
//
// A1. No scheduler starts a job while the job's postqueuejob hooks run, because the changes of these hooks must be applied
//     first. (An operator can start it with qrun -H.)
// A2. A periodic hook is started every freq seconds, but never while it still runs.

import type { HookInput } from "#hooks/run/hook-input.ts";
import { listOf } from "#model/attribute-reader.ts";
import { RESV_STATE } from "#model/resv-state.ts";
import { isPeriodic } from "#model/tables/hook.ts";
import type { ImportHookRequest, ManagerRequest } from "#protocol/messages.ts";
import { serverIdentity } from "../engine/identity.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import type { Identity, Transaction } from "../engine/transaction.ts";
import { isWaiting } from "../state/job-phase.ts";
import type { Attrs, Job, Resv } from "../state/state.ts";
import { alterByHook, eventBase } from "./alteration.ts";
import { hasHooks, runHooks } from "./chain.ts";
import { JOB_WRITABLE, jobObject, resvObject, VNODE_WRITABLE, vnodeObjects } from "./objects.ts";
import { changeVnodes } from "./vnode-change.ts";

const ignore = (): void => undefined;

// --- jobs

/** Called when a job has entered a queue, also by a move. Subjobs that start are left out. */
export function jobPosted(kernel: Kernel, tx: Transaction, job: Job): void {
  if (job.attrs["array_id"] !== undefined || !hasHooks(kernel, "postqueuejob")) return;
  const posting = kernel.hooks.posting.get(job.id) ?? { chains: 0, waiting: [] };
  posting.chains++;
  kernel.hooks.posting.set(job.id, posting);
  const input: HookInput = { ...eventBase(tx, "postqueuejob"), job: jobObject(tx, job.id, job.attrs), writable: { job: JOB_WRITABLE } };
  runHooks(kernel, "postqueuejob", input, (verdict) => {
    const live = kernel.state.jobs.get(job.id);
    if (live !== undefined && isWaiting(live) && verdict.kind === "accept")
      alterByHook(ownTransaction(kernel), live, verdict.changes.job ?? {}, verdict.by);
    posting.chains--;
    if (posting.chains > 0) return;
    kernel.hooks.posting.delete(job.id);
    for (const go of posting.waiting) go();
  });
}

/** Called when a run of a job has ended, whether or not the job will run again. attrs: the job's attributes at that time. */
export function jobOver(kernel: Kernel, id: string, attrs: Attrs): void {
  if (!hasHooks(kernel, "jobobit")) return;
  const tx = ownTransaction(kernel);
  runHooks(kernel, "jobobit", { ...eventBase(tx, "jobobit"), job: jobObject(tx, id, attrs), writable: {} }, ignore);
}

// --- managers

const COMMANDS = ["create", "delete", "set", "unset", "list", "print", "active", "import", "export"] as const;
const OBJECTS: { readonly [object: string]: number } = { server: 0, queue: 1, node: 3, resource: 5, sched: 6, hook: 8, pbshook: 9 };
const TEXT_CHOICE = 7;
const NULL_CHOICE = 1;

/** Called when a request of qmgr was answered: runs the management hooks. */
export function managed(
  kernel: Kernel,
  who: Identity,
  request: ManagerRequest | ImportHookRequest,
  code: number,
  text: string | null,
): void {
  if (!hasHooks(kernel, "management")) return;
  const tx = { ...ownTransaction(kernel), who };
  const verb = request.kind === "manager" ? request.verb : "import";
  const management = {
    cmd: COMMANDS.indexOf(verb),
    objtype: OBJECTS[request.object] ?? -1,
    objname: request.kind === "manager" ? request.name : request.hook,
    request_time: tx.now_s,
    reply_code: code,
    reply_auxcode: 0,
    reply_choice: text === null ? NULL_CHOICE : TEXT_CHOICE,
    reply_text: text,
    attribs: request.kind === "manager" ? request.attrs : [],
  };
  runHooks(kernel, "management", { ...eventBase(tx, "management"), management, writable: {} }, ignore);
}

// --- vnodes

/** Runs the modifyvnode hooks for vnodes whose state has changed since the last batch. */
export function watchVnodes(kernel: Kernel): void {
  const { state, changes } = kernel;
  const { vnode_states } = kernel.hooks;
  if (!hasHooks(kernel, "modifyvnode")) return vnode_states.clear();
  if (vnode_states.size === 0) {
    for (const vnode of state.vnodes.values()) vnode_states.set(vnode.name, seen(vnode.attrs));
    return;
  }
  for (const name of new Set([...changes.vnodes, ...changes.told.vnodes])) {
    const vnode = state.vnodes.get(name);
    const before = vnode_states.get(name);
    if (vnode === undefined) {
      vnode_states.delete(name);
      continue;
    }
    const now = seen(vnode.attrs);
    vnode_states.set(name, now);
    if (before !== undefined && before.state !== now.state) vnodeChanged(kernel, name, before);
  }
}

type SeenVnode = { readonly state: string; readonly since: string };
const seen = (attrs: Attrs): SeenVnode => ({
  state: listOf(attrs, "state").join(",") || "free",
  since: String(attrs["last_state_change_time"] ?? 0),
});

function vnodeChanged(kernel: Kernel, name: string, before: SeenVnode): void {
  const [vnode] = vnodeObjects(kernel, [name]);
  if (vnode === undefined) return;
  const vnode_o = { id: vnode.id, attrs: { ...vnode.attrs, state: before.state, last_state_change_time: before.since } };
  runHooks(kernel, "modifyvnode", { ...eventBase(ownTransaction(kernel), "modifyvnode"), vnode, vnode_o, writable: {} }, ignore);
}

// --- reservations

/**
 * Called when a reservation has changed: runs the hooks of the event. before: its former state; undefined: the reservation
 * is new. resv undefined: the reservation is gone. last: the reservation as it was last.
 */
export function resvHappened(kernel: Kernel, before: number | undefined, resv: Resv | undefined, last: Pick<Resv, "id" | "attrs">): void {
  const event = resvEvent(before, resv?.attrs.reserve_state);
  if (event === null || !hasHooks(kernel, event)) return;
  const tx = ownTransaction(kernel);
  const { id, attrs } = resv ?? last;
  runHooks(kernel, event, { ...eventBase(tx, event), resv: resvObject(tx, id, attrs), writable: {} }, ignore);
}

const ENDING: ReadonlySet<number> = new Set([RESV_STATE.BEING_DELETED, RESV_STATE.DELETED, RESV_STATE.FINISHED]);

function resvEvent(before: number | undefined, after: number | undefined): "resv_confirm" | "resv_begin" | "resv_end" | null {
  if (before === undefined || before === after) return null;
  if (after === undefined || ENDING.has(after)) return ENDING.has(before) || before === RESV_STATE.UNCONFIRMED ? null : "resv_end";
  if (after === RESV_STATE.RUNNING) return before === RESV_STATE.BEING_ALTERED ? null : "resv_begin";
  // An occurrence of a standing reservation has ended, and the reservation waits for the next one.
  if (before === RESV_STATE.RUNNING && after === RESV_STATE.CONFIRMED) return "resv_end";
  return after === RESV_STATE.CONFIRMED ? "resv_confirm" : null;
}

// --- time

/** Called when a hook was created, changed or deleted, or the server has started: sets the timer of a periodic hook. */
export function armPeriodic(kernel: Kernel, name: string): void {
  const hook = kernel.state.hooks.get(name);
  const wanted = hook?.attrs.enabled === true && hook.script !== null && hook.attrs.event.includes("periodic");
  if (wanted) kernel.timers.set(`hook:${name}`, kernel.now_ms + hook.attrs.freq * 1000);
  else kernel.timers.clear(`hook:${name}`);
}

/** Called by the timer of a periodic hook: runs the hook unless its previous run has not ended. */
export function periodicDue(kernel: Kernel, name: string): void {
  armPeriodic(kernel, name);
  if (kernel.timers.at(`hook:${name}`) === undefined) return;
  for (const chain of kernel.hooks.runs.values()) if (isPeriodic(chain.event) && chain.hooks[chain.at]?.name === name) return;
  const tx = { ...ownTransaction(kernel), who: serverIdentity(kernel.config.host) };
  const input: HookInput = {
    ...eventBase(tx, "periodic"),
    vnode_list: vnodeObjects(kernel, []),
    resv_list: [...kernel.state.resvs.values()].map((resv) => resvObject(tx, resv.id, resv.attrs)),
    writable: { vnode: VNODE_WRITABLE },
  };
  runHooks(
    kernel,
    "periodic",
    input,
    (verdict) => {
      if (verdict.kind === "accept") changeVnodes(ownTransaction(kernel), verdict.changes.vnode_list ?? {}, verdict.by);
    },
    name,
  );
}
