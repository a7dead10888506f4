// The event queuejob: hooks see a submission as the user made it, before the server adds its defaults, and may change the
// submission (docs/reference/commands.md 1.2).
//
// I1. The user's input is checked under the user's rights before a hook sees it; the hooks' changes are read under a manager's rights.
// I2. A hook that sets an illegal value has failed: the user gets a message, and the log has the reason.

import type { AttrChanges, HookInput, HookObject } from "#hooks/run/hook-input.ts";
import { PBSE, Reject } from "#model/pbse.ts";
import { JOB_ATTRIBUTES } from "#model/tables/job-attributes.ts";
import type { AttrValueText, QueueJobRequest, WireAttrs } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { HookAsk, Transaction } from "../engine/transaction.ts";
import { localQueue } from "../submit/admission.ts";
import { checkAttributes, DEFAULTS } from "../submit/submission.ts";
import { encountered } from "./chain.ts";
import { jobObject, QUEUEJOB_WRITABLE } from "./objects.ts";

export type Draft = Omit<QueueJobRequest, "kind">;

/** The question to the queuejob hooks about a submission. Refuses input that is illegal or that the user may not give. */
export function queuejobAsk(tx: Transaction, key: string, { destination, attrs }: Draft): HookAsk {
  const queue = localQueue(tx, destination);
  checkAttributes(tx, queue, attrs);
  return { key, event: "queuejob", input: () => queuejobInput(tx, queue.name, attrs) };
}

function queuejobInput(tx: Transaction, queue: string, given: readonly AttrValueText[]): HookInput {
  const { who, config, state } = tx;
  return {
    event: "queuejob",
    requestor: who.user,
    requestor_host: who.host,
    server: state.name,
    node: config.host,
    job: draftObject(tx, queue, given),
    writable: { job: QUEUEJOB_WRITABLE },
  };
}

function draftObject(tx: Transaction, queue: string, given: readonly AttrValueText[]): HookObject {
  const attrs: { [name: string]: WireAttrs[string] } = { ...jobObject(tx, null, { ...DEFAULTS, Job_Name: "STDIN" }).attrs, queue };
  const resources: { [name: string]: string } = {};
  for (const { name, resource, value } of given) {
    const attribute = JOB_ATTRIBUTES.byName(name)?.name ?? name;
    if (value === "") continue;
    if (resource === undefined) attrs[attribute] = value;
    else resources[resource] = value;
  }
  if (Object.keys(resources).length > 0) attrs["Resource_List"] = resources;
  return { id: null, attrs };
}

/** Runs the queuejob hooks. Returns the submission with their changes, and the transaction in which to read it. Throws the refusal of a hook. */
export function afterQueuejobHooks(tx: Transaction, key: string, draft: Draft): { readonly tx: Transaction; readonly draft: Draft } {
  const [verdict] = tx.hooks([queuejobAsk(tx, key, draft)]);
  if (verdict === null || verdict === undefined) return { tx, draft };
  if (verdict.kind === "reject") throw verdict.reject;
  if (verdict.changes.job === undefined) return { tx, draft };
  const raised = { ...tx, who: { ...tx.who, level: "manager" as const } };
  const changed = changedDraft(draft, verdict.changes.job);
  byHook(tx, verdict.by, () => checkAttributes(raised, localQueue(raised, changed.destination), changed.attrs));
  return { tx: raised, draft: changed };
}

function changedDraft({ destination, attrs, script }: Draft, changes: AttrChanges): Draft {
  let next = [...attrs];
  const isOf = (entry: AttrValueText, name: string): boolean => (JOB_ATTRIBUTES.byName(entry.name)?.name ?? entry.name) === name;
  let queue = destination;
  for (const [name, value] of Object.entries(changes)) {
    if (name === "queue") {
      queue = typeof value === "string" ? value : "";
      continue;
    }
    if (typeof value === "object" && value !== null) {
      next = next.filter((entry) => !(isOf(entry, name) && Object.hasOwn(value, entry.resource ?? "")));
      for (const [resource, text] of Object.entries(value)) if (text !== null) next.push({ name, resource, value: text });
      continue;
    }
    next = next.filter((entry) => !isOf(entry, name));
    if (value !== null) next.push({ name, value });
  }
  return { destination: queue, attrs: next, script };
}

/**
 * Does work that applies a hook's changes. If it is refused, the hook has failed (I2). Attributes that only arrays have are
 * refused with a text of their own.
 */
export function byHook<T>(tx: Transaction, hook: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Reject) || error.code === PBSE.NOTARRAY_ATTR) throw error;
    tx.log({
      event: LOG_EVENT.ERROR,
      class: "Hook",
      object: hook,
      text: `what the hook has set cannot be: ${(error.text ?? "").trim()} (${error.code})`,
    });
    throw encountered(hook);
  }
}
