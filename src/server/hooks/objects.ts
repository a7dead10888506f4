// Objects of the server as hooks see them: attributes as texts, as far as a manager may read them. This file also decides
// which attributes the hooks of an event may set.
//
// I1. A hook may set the attributes that a manager may set, but none that only PBS sets (docs/reference/attributes.md 1).

import type { HookObject } from "#hooks/run/hook-input.ts";
import type { AttributeTable } from "#model/attribute.ts";
import { JOB_ATTRIBUTES } from "#model/tables/job-attributes.ts";
import { NODE_ATTRIBUTES } from "#model/tables/node-attributes.ts";
import { RESV_ATTRIBUTES } from "#model/tables/resv-attributes.ts";
import type { StatusItem } from "#protocol/messages.ts";
import { columnsOf, encode } from "../attributes/encode.ts";
import { serverIdentity } from "../engine/identity.ts";
import type { Kernel } from "../engine/kernel.ts";
import { ownTransaction } from "../engine/kernel.ts";
import type { Transaction } from "../engine/transaction.ts";
import { shownEligible } from "../jobs/eligible-time.ts";
import type { Attrs, ServerState } from "../state/state.ts";
import { nodeStatus } from "../status/node.ts";
import { queueStatus, serverStatus } from "../status/object.ts";

type Seen = Pick<Transaction, "state" | "config">;

export function jobObject({ state, config, now_s }: Seen & Pick<Transaction, "now_s">, id: string | null, attrs: Attrs): HookObject {
  const columns = columnsOf(state, serverIdentity(config.host), JOB_ATTRIBUTES, undefined);
  return { id, attrs: encode(columns, attrs, shownEligible(state, attrs, now_s) ?? undefined) };
}

export function resvObject({ state, config }: Seen, id: string | null, attrs: Attrs): HookObject {
  return { id, attrs: encode(columnsOf(state, serverIdentity(config.host), RESV_ATTRIBUTES, undefined), attrs) };
}

/** The vnodes with these names, or all vnodes if there are no names, in the form for hooks. */
export function vnodeObjects(kernel: Kernel, names: readonly string[]): HookObject[] {
  if (kernel.state.vnodes.size === 0) return [];
  return objects(nodeStatus(ownTransaction(kernel), { kind: "status", object: "node", ids: names }));
}

const objects = (items: readonly StatusItem[]): HookObject[] => items.flatMap((item) => ("attrs" in item ? [item] : []));

/** Answers what a hook asks of pbs.server(): one object of a kind, or all objects of the kind (name ""). */
export function answerQuery(
  kernel: Kernel,
  query: { readonly what: string; readonly name: string },
): { readonly items: readonly HookObject[] } | { readonly error: string } {
  const tx = ownTransaction(kernel);
  const { state } = kernel;
  const ids = query.name === "" ? [] : [query.name];
  switch (query.what) {
    case "server":
      return { items: objects(serverStatus(tx, { kind: "status", object: "server", ids: [] })) };
    case "queue":
      return { items: objects(queueStatus(tx, { kind: "status", object: "queue", ids })) };
    case "vnode":
      return { items: ids.length === 1 && !state.vnodes.has(query.name) ? [] : vnodeObjects(kernel, ids) };
    case "job": {
      const jobs =
        ids.length === 0 ? [...state.jobs.values()] : [state.jobs.get(query.name) ?? state.jobs.get(`${query.name}.${state.name}`)];
      return { items: jobs.flatMap((job) => (job === undefined ? [] : [jobObject(tx, job.id, job.attrs)])) };
    }
    case "resv": {
      const resvs =
        ids.length === 0 ? [...state.resvs.values()] : [state.resvs.get(query.name) ?? state.resvs.get(`${query.name}.${state.name}`)];
      return { items: resvs.flatMap((resv) => (resv === undefined ? [] : [resvObject(tx, resv.id, resv.attrs)])) };
    }
    default:
      return { error: `hooks cannot ask for ${query.what}` };
  }
}

/** The types of all resources by name. Hooks need them to read values of resource lists. */
export function resourceTypes(state: ServerState): { readonly [name: string]: string } {
  return Object.fromEntries([...state.resources.values()].map(({ name, type }) => [name, type]));
}

const settable = (table: AttributeTable): readonly string[] =>
  table.rows.filter((row) => row.set === "user" || row.set === "op" || row.set === "mgr").map((row) => row.name);

/** Attributes of a job that hooks may set: in general, and at queuejob, where `queue` is the destination of the submission. */
export const JOB_WRITABLE = settable(JOB_ATTRIBUTES);
export const QUEUEJOB_WRITABLE = [...JOB_WRITABLE, "queue"];
export const MOVEJOB_WRITABLE = ["queue"];
/**
 * Attributes that a runjob hook may set: those that do not decide where and when the job runs. A hook that rejects the start
 * may also set those in ON_REJECTION.
 */
export const RUNJOB_WRITABLE = [
  "Account_Name",
  "Error_Path",
  "Output_Path",
  "Resource_List",
  "Variable_List",
  "project",
  "depend",
  "Hold_Types",
  "Execution_Time",
  "comment",
];
/** Attributes that a runjob hook may set only if it rejects the start. */
export const ON_REJECTION: ReadonlySet<string> = new Set(["Hold_Types", "Execution_Time", "depend", "project", "comment"]);
export const RESV_WRITABLE = settable(RESV_ATTRIBUTES);
export const VNODE_WRITABLE = settable(NODE_ATTRIBUTES);
