// modifyjob, movejob and runjob: hooks see the job as it would be, and their changes become part of the request.

import type { AttrChanges, HookInput } from "#hooks/hook-input.ts";
import type { HookEvent } from "#model/hook.ts";
import type { AttrOp } from "#protocol/messages.ts";
import type { HookAsk, Transaction } from "../engine/transaction.ts";
import type { Attrs, Job } from "../state/state.ts";
import { JOB_WRITABLE, jobObject, MOVEJOB_WRITABLE, RUNJOB_WRITABLE } from "./objects.ts";

type Base = Pick<HookInput, "event" | "requestor" | "requestor_host" | "server" | "node">;

export function eventBase(tx: Transaction, event: HookEvent): Base {
  const { who, config, state } = tx;
  return { event, requestor: who.user, requestor_host: who.host, server: state.name, node: config.host };
}

/** after: attributes of the job with the user's changes. */
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

/** destination: of the qmove. */
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
