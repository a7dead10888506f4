// The event runjob: a job is about to be sent to its mom. The hooks may reject the start; a hook that rejects may also set a
// hold or a later Execution_Time (docs/reference/commands.md 1.2).

import type { AttrChanges, HookChanges } from "#hooks/run/hook-input.ts";
import { attributeOf, type ResourceValues } from "#model/attribute.ts";
import { PBSE, type Reject, refusalOf, reject } from "#model/pbse.ts";
import { hasFlag, isConsumable, type ResourceDef } from "#model/resource-table.ts";
import { JOB_ATTRIBUTES } from "#model/tables/job-attributes.ts";
import { alterValue } from "#model/values/index.ts";
import { listedResource, renderResourceList } from "#model/values/resource-list.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Kernel } from "../engine/kernel.ts";
import { ownTransaction } from "../engine/kernel.ts";
import type { HookVerdict, Transaction } from "../engine/transaction.ts";
import { commentDate, logJob } from "../jobs/life.ts";
import { queuedSubjob } from "../jobs/subjob-start.ts";
import { isIn, isSuspended } from "../state/job-phase.ts";
import type { Job } from "../state/state.ts";
import { alterByHook, runjobInput } from "./alteration.ts";
import { hasHooks, runHooks } from "./chain.ts";
import { ON_REJECTION } from "./objects.ts";

/** Whether the start of the job must wait for hooks: its postqueuejob hooks still run, or there are runjob hooks. */
export const mustAsk = (kernel: Kernel, job: string): boolean =>
  !isStopped(kernel.state.jobs.get(job)) && (kernel.hooks.posting.has(job) || hasHooks(kernel, "runjob"));

const isStopped = (job: Job | undefined): boolean => job !== undefined && isSuspended(job);

/**
 * Waits for the job's postqueuejob hooks, then asks the runjob hooks. then: called with null if the job may run, otherwise
 * with the refusal. By then, the job may be gone.
 */
export function askBeforeRun(
  kernel: Kernel,
  tx: Transaction,
  id: string,
  exec_vnode: string,
  then: (refusal: Reject | null) => void,
): void {
  const ask = (): void => {
    const job = jobOf(kernel, id);
    if (job === undefined || !hasHooks(kernel, "runjob")) return then(null);
    runHooks(kernel, "runjob", runjobInput(tx, job, exec_vnode), (verdict) => {
      const live = jobOf(kernel, id);
      const subjob = !kernel.state.jobs.has(id);
      then(live === undefined ? null : settleRun(ownTransaction(kernel), live, verdict));
      if (subjob) settleStarted(ownTransaction(kernel), id, verdict);
    });
  };
  const posted = kernel.hooks.posting.get(id);
  if (posted === undefined) ask();
  else posted.waiting.push(ask);
}

/** Asks the runjob hooks about all jobs of a qrun -H, before the first of these jobs is started. */
export function askRunjobHooks(tx: Transaction, jobs: readonly Job[], vnodesFor: (job: Job) => string): (HookVerdict | null)[] {
  return tx.hooks(
    jobs.flatMap((job) =>
      isSuspended(job) ? [] : [{ key: `runjob ${job.id}`, event: "runjob" as const, input: () => runjobInput(tx, job, vnodesFor(job)) }],
    ),
  );
}

/** Asks the runjob hooks about one job and applies their answer. Returns null if the job may run. */
export function afterRunjobHooks(tx: Transaction, job: Job, exec_vnode: string): Reject | null {
  const [verdict] = askRunjobHooks(tx, [job], () => exec_vnode);
  return verdict === null || verdict === undefined ? null : settleRun(tx, job, verdict);
}

/** Applies the hooks' changes to a subjob after its start, because only a subjob that has started is a job of its own. */
export function afterSubjobStart(tx: Transaction, subjob: Job, exec_vnode: string): void {
  const [verdict] = askRunjobHooks(tx, [subjob], () => exec_vnode);
  if (verdict !== null && verdict !== undefined) settleStarted(tx, subjob.id, verdict);
}

function settleStarted(tx: Transaction, id: string, verdict: HookVerdict): void {
  const job = tx.state.jobs.get(id);
  if (job !== undefined && verdict.kind === "accept") setResources(tx, job, verdict);
}

/** Applies the hooks' answer to the job. Returns null if the job may run. */
function settleRun(tx: Transaction, job: Job, verdict: HookVerdict): Reject | null {
  // For a subjob that has not started, the job's changes are not applied here: it is not a job of its own yet, and its
  // resources are set after its start (afterSubjobStart).
  const wanted = tx.state.jobs.has(job.id) ? (verdict.changes.job ?? {}) : {};
  if (verdict.kind === "accept") {
    alterByHook(
      tx,
      job,
      only(wanted, (name) => !ON_REJECTION.has(name) && name !== "Resource_List"),
      verdict.by,
    );
    if (tx.state.jobs.has(job.id)) setResources(tx, job, verdict);
    return null;
  }
  const hold = wanted["Hold_Types"];
  alterByHook(
    tx,
    job,
    only(wanted, (name) => ON_REJECTION.has(name)),
    verdict.by,
  );
  if (typeof hold === "string" && hold !== "n" && isIn(job, "held")) {
    const comment = `Job held by '${verdict.by}' hook on ${commentDate(tx)}`;
    tx.apply({ kind: "job-changed", id: job.id, set: { comment }, unset: [] });
    logJob(tx, LOG_EVENT.JOB, job.id, comment);
  }
  return verdict.reject;
}

/**
 * Sets the resources that the hooks have changed for a job that will run. Its vnodes are already chosen: changes that would
 * affect that choice (select, place, resources that are counted or requested of vnodes) are left out, and the log says so.
 * The job runs all the same.
 */
function setResources(tx: Transaction, job: Job, { changes, by }: HookVerdict): void {
  const wanted = changes.job?.["Resource_List"];
  if (typeof wanted !== "object" || wanted === null) return;
  const def = attributeOf(JOB_ATTRIBUTES, "Resource_List");
  let list: ResourceValues = job.attrs.Resource_List;
  const set: string[] = [];
  for (const [resource, value] of Object.entries(wanted)) {
    const refusal = refusalOf(() => {
      const known = listedResource(def, resource, tx.state.resources);
      if (decidesPlace(known)) throw reject(PBSE.ATTRRO, `Resource_List.${resource}`);
      const op = value === null ? ({ op: "unset", value: "" } as const) : ({ op: "=", value } as const);
      list = (alterValue(def, list, { resource, ...op }, tx.state.resources) ?? {}) as ResourceValues;
      set.push(resource);
    });
    if (refusal !== null) {
      const text = `what the hook has set is left out: ${(refusal.text ?? "").trim()} (${refusal.code})`;
      tx.log({ event: LOG_EVENT.ERROR, class: "Hook", object: by, text: `${job.id}: ${text}` });
    }
  }
  if (set.length === 0) return;
  tx.apply({ kind: "job-changed", id: job.id, set: { Resource_List: list }, unset: [] });
  const texts = renderResourceList(list, tx.state.resources);
  for (const resource of set) {
    const text = texts[resource] ?? "UNSET";
    tx.account({ type: "a", id: job.id, text: `Resource_List.${resource}=${/\s/.test(text) ? `"${text}"` : text}` });
  }
}

const PLACING: ReadonlySet<string> = new Set(["select", "place", "nodes", "nodect"]);
const decidesPlace = (def: ResourceDef): boolean => PLACING.has(def.name) || hasFlag(def, "h") || isConsumable(def);

const jobOf = (kernel: Kernel, id: string): Job | undefined => kernel.state.jobs.get(id) ?? queuedSubjob(kernel.state, id);

function only(changes: NonNullable<HookChanges["job"]>, wanted: (name: string) => boolean): AttrChanges {
  return Object.fromEntries(Object.entries(changes).filter(([name]) => wanted(name)));
}
