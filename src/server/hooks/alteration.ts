// The events modifyjob, movejob and runjob: hooks see the job as it would be after the request, and their changes become
// part of the request. This file also applies changes to jobs that hooks make at other events, as qalter would.

import type { AttrChanges, HookInput } from "#hooks/run/hook-input.ts";
import { Reject } from "#model/pbse.ts";
import type { HookEvent } from "#model/tables/hook.ts";
import type { AttrOp } from "#protocol/messages.ts";
import type { HookAsk, Transaction } from "../engine/transaction.ts";
import type { Attrs, Job } from "../state/state.ts";
import { accountAlteration, alterationOf, alterJob } from "../submit/alteration.ts";
import { JOB_WRITABLE, jobObject, MOVEJOB_WRITABLE, RUNJOB_WRITABLE } from "./objects.ts";
import { byHook } from "./submission.ts";

type Base = Pick<HookInput, "event" | "requestor" | "requestor_host" | "server" | "node">;

export function eventBase(tx: Transaction, event: HookEvent): Base {
  const { who, config, state } = tx;
  return { event, requestor: who.user, requestor_host: who.host, server: state.name, node: config.host };
}

/** The question to the modifyjob hooks. after: the job's attributes with the user's changes. */
export function modifyjobAsk(tx: Transaction, job: Job, after: Attrs): HookAsk {
  return {
    key: "modifyjob",
    event: "modifyjob",
    input: () => ({
      ...eventBase(tx, "modifyjob"),
      job: jobObject(tx, job.id, after),
      job_o: jobObject(tx, job.id, job.attrs),
      writable: { job: JOB_WRITABLE },
    }),
  };
}

/** The question to the movejob hooks. destination: the destination that the qmove names. */
export function movejobAsk(tx: Transaction, job: Job, destination: string): HookAsk {
  return {
    key: "movejob",
    event: "movejob",
    input: () => ({
      ...eventBase(tx, "movejob"),
      job: jobObject(tx, job.id, { ...job.attrs, queue: destination }),
      src_queue: { id: job.attrs.queue, attrs: {} },
      writable: { job: MOVEJOB_WRITABLE },
    }),
  };
}

export function runjobInput(tx: Transaction, job: Job, exec_vnode: string): HookInput {
  return {
    ...eventBase(tx, "runjob"),
    job: jobObject(tx, job.id, { ...job.attrs, exec_vnode }),
    writable: { job: RUNJOB_WRITABLE },
    keep_rejected: true,
  };
}

/** Changes of a hook as operations of qalter. */
export function opsOf(changes: AttrChanges): AttrOp[] {
  return Object.entries(changes).flatMap(([name, value]) => {
    if (typeof value !== "object" || value === null) return [op(name, value)];
    return Object.entries(value).map(([resource, text]) => op(name, text, resource));
  });
}

const op = (name: string, value: string | null, resource?: string): AttrOp => ({
  name,
  ...(resource === undefined ? {} : { resource }),
  ...(value === null ? { op: "unset", value: "" } : { op: "=", value }),
});

/** The transaction with the rights of a manager, for a hook's changes. The user's own changes were checked with the user's rights before. */
export const raised = (tx: Transaction): Transaction => ({ ...tx, who: { ...tx.who, level: "manager" } });

/** Makes a hook's changes to a job. If they are refused, the hook has failed: the log gives the reason. Returns whether the changes were made. */
export function alterByHook(tx: Transaction, job: Job, wanted: AttrChanges, hook: string): boolean {
  const ops = opsOf(wanted);
  if (ops.length === 0) return true;
  try {
    const made = byHook(tx, hook, () => alterationOf(raised(tx), job, ops));
    alterJob(tx, job, made);
    // One record for each attribute, because a hook sets attributes one by one.
    for (const op of ops) accountAlteration(tx, job.id, [op]);
    return true;
  } catch (error) {
    if (error instanceof Reject) return false;
    throw error;
  }
}
