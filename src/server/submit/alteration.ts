// Alterations of a job by qalter or by a hook (docs/reference/commands.md 3).
//
// Order of checks: 1. attributes one by one: does it exist, may the user set it, may it change while the job runs, is its
//                     value legal
//                  2. dependencies  3. resources together  4. bounds and limits of the queue.
// I1. For a running job, or an array that has begun, only run-alterable attributes and resources can be changed. Users may
//     lower a limit of a running job; only operators may raise one.
// I2. Either all attributes are changed or none.

import {
  type AttributeDef,
  type AttributeValue,
  attributeOf,
  checkSettable,
  type ResourceValue,
  type ResourceValues,
  valueName,
} from "#model/attribute.ts";
import { listOf } from "#model/attribute-reader.ts";
import { PBSE, reject } from "#model/pbse.ts";
import { alterRequest } from "#model/request/job-request.ts";
import { JOB_ATTRIBUTES } from "#model/tables/job-attributes.ts";
import { removeHolds } from "#model/values/hold.ts";
import { alterValue } from "#model/values/index.ts";
import { listedResource } from "#model/values/resource-list.ts";
import { compareResourceValues } from "#model/values/resource-value.ts";
import type { AttrOp, WireAttrs } from "#protocol/messages.ts";
import { mustGet } from "#support/assert.ts";
import { columnsOf, encode } from "../attributes/encode.ts";
import { checkAskable, checkHoldRight } from "../attributes/permission.ts";
import { serverIdentity } from "../engine/identity.ts";
import type { Transaction } from "../engine/transaction.ts";
import {
  type Asked,
  askDependencies,
  enterDependencies,
  recordsOfDependencies,
  replaceDependencies,
  withAsked,
} from "../jobs/dependencies.ts";
import { keptEligible } from "../jobs/eligible-time.ts";
import { settleJob, waitingState } from "../jobs/life.ts";
import { weightOf } from "../state/entity-usage.ts";
import { isHeldForDependency, isWithMom } from "../state/job-phase.ts";
import { checkChunkCount, checkGivenText, checkJobText } from "../state/job-text.ts";
import type { Attrs, Job, JobAttrs, ResourceRecord } from "../state/state.ts";
import { checkBackendOptions, checkBounds, checkQueueLimits, requestDefaults } from "./admission.ts";
import { completePath, executionUser, workdirOf } from "./new-job.ts";
import { checkedItems, checkRunCount, refuseLater } from "./submission.ts";

/** Applies an alteration: to the job, to the jobs that it depends on, and to its mom. */
export function alterJob(tx: Transaction, job: Job, { set, unset, asked }: Alteration): void {
  if (asked === undefined) settleJob(tx, job, set, unset);
  else {
    const { depend } = replaceDependencies(tx, job, asked);
    const before = job.attrs["depend"] === undefined ? [] : ["depend"];
    settleJob(tx, job, depend === undefined ? set : { ...set, depend }, depend === undefined ? [...unset, ...before] : unset);
    enterDependencies(tx, job.id, asked);
  }
  // The user has asked for other amounts than before.
  if (set["Resource_List"] !== undefined && job.own.asked !== undefined)
    tx.apply({ kind: "job-changed", id: job.id, set: {}, unset: [], own: { asked: null } });
  if (isWithMom(job)) tx.act({ kind: "modify-job-on-mom", job: job.id, attrs: set });
}

/** Whether the job is an array with subjobs that have started. Such an array is altered like a running job. */
const hasBegun = (job: Job): boolean => job.subjobs !== undefined && job.attrs.stime !== undefined;

/** The attributes that an alteration sets and unsets. asked: the requested dependencies, which also change the lists of other jobs. */
export type Alteration = { readonly set: Attrs; readonly unset: string[]; readonly asked?: Asked };

/** Computes what qalter's operations would change, with the rights of the caller. Changes nothing. Refuses operations with the error numbers of PBS. */
export function alterationOf(tx: Transaction, job: Job, ops: readonly AttrOp[]): Alteration {
  const { who } = tx;
  checkGivenText(tx.state, ops);
  const running = isWithMom(job) || hasBegun(job);
  const after: Attrs = { ...job.attrs };
  const touched = new Set<string>();
  const resources: { [resource: string]: ResourceValue | undefined } = {};
  for (const op of ops) {
    const def = attributeOf(JOB_ATTRIBUTES, op.name);
    refuseLater(def, op.value);
    if (def.name === "max_run_subjobs" && job.subjobs === undefined) throw reject(PBSE.NOTARRAY_ATTR);
    if (def.name === "Resource_List") {
      alterResource(tx, job, def, op, resources, running);
      continue;
    }
    checkSettable(def, who);
    if (running && (def.runAlterable !== true || def.name === "run_count")) throw reject(PBSE.MODATRRUN, valueName(def));
    const value = newValue(tx, def, after[def.name] as AttributeValue | undefined, op);
    if (value === undefined) delete after[def.name];
    else after[def.name] = checkedItems(def, value);
    touched.add(def.name);
  }
  finishPlain(tx, job, after, touched);
  checkJobText(tx.state, after as JobAttrs);
  const asked = touched.delete("depend") ? newDependencies(tx, job, after, touched) : undefined;
  const others = Object.keys(resources).length > 0;
  if (others) alterResources(tx, job, after, touched, resources, running);
  if (others || COUNTED_FOR.some((name) => after[name] !== job.attrs[name])) checkCounted(tx, job, after, running);
  return { ...delta(job.attrs, after, touched), ...(asked === undefined ? {} : { asked }) };
}

/** Computes new dependencies. Refuses one that can never be met: with 15229 if a finished job is the reason, otherwise with 15054. */
function newDependencies(tx: Transaction, job: Job, after: Attrs, touched: Set<string>): Asked {
  const items = listOf(after, "depend");
  tx.historyOf(recordsOfDependencies(tx, items));
  const asked = askDependencies(tx, { id: job.id, owner: job.attrs.Job_Owner }, items);
  if (asked.refusal !== null) throw reject(tx.history(asked.refusal) === undefined ? PBSE.BADDEPEND : PBSE.HISTDEPEND);
  const holds = String(after["Hold_Types"]);
  after["Hold_Types"] = withAsked(asked, isHeldForDependency(job) ? removeHolds(holds, "s") : holds).Hold_Types;
  touched.add("Hold_Types");
  return asked;
}

/** The new value of an attribute. If an attribute that every job has is unset, it gets its default. */
function newValue(tx: Transaction, def: AttributeDef, old: AttributeValue | undefined, op: AttrOp): AttributeValue | undefined {
  const value = alterValue(def, old, op, tx.state.resources);
  return value ?? def.default;
}

/** Applies the rules for single attributes whose new value depends on more than the requested value, and checks them. */
function finishPlain(tx: Transaction, job: Job, after: Attrs, touched: Set<string>): void {
  if (touched.has("Hold_Types")) checkHoldRight(tx.who, job.attrs.Hold_Types, String(after["Hold_Types"]));
  const owner_host = job.attrs.Job_Owner.slice(job.attrs.Job_Owner.lastIndexOf("@") + 1);
  for (const name of ["Output_Path", "Error_Path"]) {
    if (!touched.has(name)) continue;
    const text = after[name];
    after[name] =
      typeof text === "string" ? completePath(text, { host: owner_host, workdir: workdirOf(job.attrs["Variable_List"]) }) : job.attrs[name];
  }
  if (touched.has("run_count")) checkRunCount(job.attrs.run_count, after["run_count"]);
  if (touched.has("eligible_time")) {
    if (!tx.state.accrual.enabled) throw reject(PBSE.ETEERROR);
    after["eligible_time"] = keptEligible(tx.state, job.attrs, Number(after["eligible_time"] ?? 0), tx.now_s);
  }
  // An interactive job cannot run again, because the user at its terminal would be gone by then.
  if (touched.has("Rerunable") && after["Rerunable"] === true && after["interactive"] !== undefined)
    throw reject(PBSE.BADATVAL, "Rerunable");
  if (touched.has("backend_opts")) checkBackendOptions(tx.state, after, mustGet(tx.state.queues, job.attrs.queue));
  if (touched.has("Job_Name")) after["Job_Name"] ??= job.attrs.Job_Name;
  if (touched.has("User_List") || touched.has("group_list")) {
    Object.assign(after, newUser(tx, job, after));
    touched.add("euser").add("egroup");
  }
}

/**
 * The user and group of the job after a change of User_List or group_list. The groups of the owner are known only in the
 * owner's own requests; in a request of someone else, the job's present group counts as the owner's only group.
 */
function newUser(tx: Transaction, job: Job, after: Attrs): Pick<JobAttrs, "euser" | "egroup"> {
  const lists = after as { readonly User_List?: readonly string[]; readonly group_list?: readonly string[] };
  const owner = job.attrs.Job_Owner.slice(0, job.attrs.Job_Owner.lastIndexOf("@"));
  if (owner === tx.who.user) return executionUser(tx, lists);
  const known = { ...tx, who: { ...tx.who, user: owner, uid: owner === "root" ? 0 : 1, groups: [job.attrs.egroup] } };
  return executionUser(known, lists);
}

/** Applies one operation `Resource_List.resource = value` to `resources`; undefined there means that the resource is removed. */
function alterResource(
  tx: Transaction,
  job: Job,
  def: AttributeDef,
  op: AttrOp,
  resources: { [resource: string]: ResourceValue | undefined },
  running: boolean,
): void {
  const resc = listedResource(def, op.resource, tx.state.resources);
  checkAskable(def, resc, op.op === "unset" ? null : op.value, tx.who, tx.state.resources);
  if (running && resc.runAlterable !== true) throw reject(PBSE.MODATRRUN, valueName(def, resc.name));
  const list = Object.hasOwn(resources, resc.name)
    ? { ...job.attrs.Resource_List, [resc.name]: resources[resc.name] }
    : job.attrs.Resource_List;
  const altered = alterValue(def, list as ResourceValues, op, tx.state.resources) as ResourceValues | undefined;
  const value = altered?.[resc.name];
  if (running && tx.who.level === "user") checkLowers(tx, resc.name, job.attrs.Resource_List[resc.name], value);
  resources[resc.name] = value;
}

/** Refuses with 15007 a user who raises, adds or removes a limit of a running job. */
function checkLowers(tx: Transaction, resource: string, before: ResourceValue | undefined, after: ResourceValue | undefined): void {
  const def = tx.state.resources.get(resource);
  const order = def === undefined || before === undefined || after === undefined ? null : compareResourceValues(def, after, before);
  if (order === null || order > 0) throw reject(PBSE.PERM);
}

function alterResources(
  tx: Transaction,
  job: Job,
  after: Attrs,
  touched: Set<string>,
  resources: { readonly [resource: string]: ResourceValue | undefined },
  running: boolean,
): void {
  const { state } = tx;
  const queue = mustGet(state.queues, job.attrs.queue);
  if (running) {
    // For a running job only the limits of its run change. Chunks and sums do not.
    const list: { [resource: string]: ResourceValue } = { ...job.attrs.Resource_List };
    for (const [name, value] of Object.entries(resources)) {
      if (value === undefined) delete list[name];
      else list[name] = value;
    }
    after["Resource_List"] = list;
  } else {
    const resolved = alterRequest(job.attrs.Resource_List, resources, requestDefaults(state, queue), state.resources);
    checkChunkCount(state, resolved.Resource_List);
    after["Resource_List"] = resolved.Resource_List;
    after["schedselect"] = resolved.schedselect;
    touched.add("schedselect");
  }
  touched.add("Resource_List");
  if (tx.who.level === "user") checkBounds(after["Resource_List"] as ResourceRecord, queue.attrs, state.server, state.resources);
}

/** The attributes that decide for which user, group and project a job counts in limits of queue and server. */
const COUNTED_FOR = ["project", "euser", "egroup"] as const;

/** Refuses an alteration with which the job would exceed limits of the queue or the server for numbers of jobs or amounts. */
function checkCounted(tx: Transaction, job: Job, after: Attrs, running: boolean): void {
  const next = { ...(after as JobAttrs) };
  if (!running) next.job_state = waitingState(next, tx.now_s).job_state;
  checkQueueLimits(tx.state, next, mustGet(tx.state.queues, job.attrs.queue), { attrs: job.attrs }, weightOf(job));
}

function delta(before: Attrs, after: Attrs, touched: ReadonlySet<string>): Alteration {
  const set: Attrs = {};
  const unset: string[] = [];
  for (const name of touched) {
    if (after[name] !== undefined) set[name] = after[name];
    else if (before[name] !== undefined) unset.push(name);
  }
  return { set, unset };
}

/** Writes record a (docs/reference/files.md 4): the requested attributes with their new values. An attribute that the job no longer has is UNSET. */
export function accountAlteration(tx: Transaction, id: string, ops: readonly AttrOp[]): void {
  const job = tx.state.jobs.get(id);
  if (job === undefined) return;
  const names = [...new Set(ops.map(({ name }) => attributeOf(JOB_ATTRIBUTES, name).name))];
  const texts = encode(columnsOf(tx.state, serverIdentity(tx.config.host), JOB_ATTRIBUTES, names), job.attrs);
  const items = ops.map((op) => {
    const { name } = attributeOf(JOB_ATTRIBUTES, op.name);
    return `${valueName({ name }, op.resource)}=${quoted(textOf(texts[name], op.resource) ?? "UNSET")}`;
  });
  tx.account({ type: "a", id, text: [...new Set(items)].join(" ") });
}

function textOf(value: WireAttrs[string] | undefined, resource: string | undefined): string | undefined {
  if (value === undefined || typeof value === "string") return value;
  if (isList(value)) return value.join(",");
  const text = resource === undefined ? undefined : value[resource];
  return text === undefined || typeof text === "string" ? text : text.join(",");
}

const isList = (value: WireAttrs[string]): value is readonly string[] => Array.isArray(value);
const quoted = (text: string): string => (/\s/.test(text) ? `"${text}"` : text);
