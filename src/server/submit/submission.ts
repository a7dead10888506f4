// Reads a submission: looks up its attributes, checks and converts their values, and adds the attributes that the server
// sets (docs/reference/commands.md 1).
//
// I1. Attributes are checked in their order: unknown 15002, no right 15003, bad value 15014 and the like. Then the resources
//     are checked together.
// I2. Texts that thousands of submissions have in common are read once (memo.ts).

import { parseArrayIndices } from "#model/array-indices.ts";
import {
  type AttributeDef,
  type AttributeValue,
  attributeOf,
  checkSettable,
  defaultAttributes,
  type ResourceValues,
} from "#model/attribute.ts";
import { PBSE, pbseText, Reject, reject } from "#model/pbse.ts";
import { type ResolvedRequest, resolveRequest } from "#model/request/job-request.ts";
import { isMarkedScript, scriptCharacters } from "#model/script-text.ts";
import { JOB_ATTRIBUTES } from "#model/tables/job-attributes.ts";
import { parseValue } from "#model/values/index.ts";
import { listedResource, parseListedValue } from "#model/values/resource-list.ts";
import { parseSize, sizeBytes } from "#model/values/size.ts";
import { parseStageItem } from "#model/values/stage-item.ts";
import type { AttrValueText } from "#protocol/messages.ts";
import { checkAskable, checkHoldRight } from "../attributes/permission.ts";
import type { Transaction } from "../engine/transaction.ts";
import { checkChunkCount, checkGivenText } from "../state/job-text.ts";
import type { Attrs, JobAttrs, Queue, ServerState } from "../state/state.ts";
import { checkBounds, requestDefaults } from "./admission.ts";
import { type KeptRequest, memoOf, type SubmitMemo } from "./memo.ts";
import { completePath, defaultPath, environment, executionUser } from "./new-job.ts";

/** A submission that has been read. bounds: the refusal by resources_min or resources_max of the queue; null: there is none. */
export type Submission = { readonly attrs: JobAttrs; readonly bounds: Reject | null };

/** Computes the attributes of the new job except state, times and rank. seq: the number of the job. */
export function readSubmission(tx: Transaction, queue: Queue, given: readonly AttrValueText[], seq: number): Submission {
  const memo = memoOf(tx.state, queue);
  const { attrs, resources, variables } = readAttributes(tx, memo, given);
  checkHoldRight(tx.who, "n", String(attrs["Hold_Types"]));
  checkRunCount(0, attrs["run_count"]);
  const resolved = resolvedRequest(tx, memo, queue, resources);
  const { host, user } = tx.who;
  const env = environment(memo, variables, queue.name, host);
  const path = { host, workdir: env.workdir };
  const suffix = arraySuffix(attrs, resolved);
  const name = String(attrs["Job_Name"] ?? "STDIN");
  attrs["Job_Name"] = name;
  attrs["Job_Owner"] = `${user}@${host}`;
  attrs["Submit_Host"] = host;
  attrs["queue"] = queue.name;
  const resv = tx.state.resv_queues.get(queue.name);
  if (resv !== undefined) attrs["reserve_ID"] = resv;
  attrs["Variable_List"] = env.list;
  attrs["Resource_List"] = resolved.Resource_List;
  attrs["schedselect"] = resolved.schedselect;
  attrs["Output_Path"] =
    typeof attrs["Output_Path"] === "string" ? completePath(attrs["Output_Path"], path) : defaultPath(path, name, `o${seq}${suffix}`);
  attrs["Error_Path"] =
    typeof attrs["Error_Path"] === "string" ? completePath(attrs["Error_Path"], path) : defaultPath(path, name, `e${seq}${suffix}`);
  Object.assign(attrs, executionUser(tx, attrs as { User_List?: readonly string[]; group_list?: readonly string[] }));
  return { attrs: attrs as JobAttrs, bounds: resolved.bounds };
}

type Read = { readonly attrs: Attrs; readonly resources: readonly AttrValueText[]; readonly variables: string };

export const DEFAULTS: Attrs = defaultAttributes(JOB_ATTRIBUTES);

/** Refuses attributes and resources that are unknown, that the caller may not set, or whose value is illegal. */
export function checkAttributes(tx: Transaction, queue: Queue, given: readonly AttrValueText[]): void {
  const { resources, attrs } = readAttributes(tx, memoOf(tx.state, queue), given);
  checkHoldRight(tx.who, "n", String(attrs["Hold_Types"]));
  askedResources(tx, resources);
}

/** Attributes that only qsub may send: for `-J` and `-I`. */
const OF_QSUB: ReadonlySet<string> = new Set(["array_indices_submitted", "interactive"]);

function readAttributes(tx: Transaction, memo: SubmitMemo, given: readonly AttrValueText[]): Read {
  checkGivenText(tx.state, given);
  const attrs: Attrs = { ...DEFAULTS };
  const resources: AttrValueText[] = [];
  let variables = "";
  for (const attr of given) {
    const def = attributeOf(JOB_ATTRIBUTES, attr.name);
    refuseLater(def, attr.value);
    if (def.name === "Resource_List") {
      resources.push(attr);
      continue;
    }
    if (!OF_QSUB.has(def.name)) checkSettable(def, tx.who);
    if (attr.value === "") continue;
    if (def.name === "eligible_time" && !tx.state.accrual.enabled) throw reject(PBSE.ETEERROR);
    if (def.name === "Variable_List") variables = attr.value;
    else attrs[def.name] = checkedItems(def, readValue(tx, memo, def, attr));
  }
  return { attrs, resources, variables };
}

/** Refuses a malformed stagein or stageout list at the submission, because a mom could not report the fault to the submitter. */
export function checkedItems(def: AttributeDef, value: AttributeValue): AttributeValue {
  if (def.name !== "stagein" && def.name !== "stageout") return value;
  if ((value as readonly string[]).every((item) => parseStageItem(item) !== null)) return value;
  throw reject(PBSE.BADATVAL, def.name);
}

/** Parses the value of an attribute. Lists are kept in the memo, because many jobs have the same lists. */
function readValue(tx: Transaction, memo: SubmitMemo, def: AttributeDef, { value, resource }: AttrValueText): AttributeValue {
  if (def.type !== "string_array" || resource !== undefined) return parseValue(def, value, tx.state.resources, resource);
  return memo.value(`${def.name}\0${value}`, () => parseValue(def, value, tx.state.resources));
}

/** Features of PBS that come with a later release. Until then they are refused and not ignored. */
const LATER: { readonly [name: string]: string } = {
  forward_x11_cookie: "forwarding of X11",
  cred: "credentials of jobs",
};

/** Refuses with 15029 an attribute that needs one of the features in LATER, and names the feature. */
export function refuseLater(def: AttributeDef, value: string): void {
  const what = LATER[def.name];
  if (what !== undefined && value !== "") throw new Reject(PBSE.NOSUP, `${pbseText(PBSE.NOSUP)}: ${what}`);
}

/** Turns a job with indices into an array. Returns the last part of the default output paths, which stands after the job's number. */
function arraySuffix(attrs: Attrs, { Resource_List }: ResolvedRequest): string {
  const indices = attrs["array_indices_submitted"];
  if (indices === undefined) {
    if (attrs["max_run_subjobs"] !== undefined) throw reject(PBSE.NOTARRAY_ATTR);
    return "";
  }
  if (parseArrayIndices(String(indices)) === null) throw reject(PBSE.BADATVAL, "array_indices_submitted");
  if (Resource_List["min_walltime"] !== undefined || Resource_List["max_walltime"] !== undefined) throw reject(PBSE.NOSTF_JOBARRAY);
  attrs["array"] = true;
  return ".^array_index^";
}

/** Resource_List with defaults and sums, schedselect, and the refusal by the queue's bounds, if there is one. */
function resolvedRequest(tx: Transaction, memo: SubmitMemo, queue: Queue, given: readonly AttrValueText[]): KeptRequest {
  let key: string = tx.who.level;
  for (const { resource, value } of given) key += `\0${resource ?? ""}\0${value}`;
  return memo.request(key, () => {
    const { state } = tx;
    const resolved = resolveRequest(askedResources(tx, given), requestDefaults(state, queue), state.resources);
    checkChunkCount(state, resolved.Resource_List);
    return { ...resolved, bounds: boundsRefusal(resolved, queue, state.server, tx) };
  });
}

/** The refusal by the queue's bounds; null: none. The caller keeps it for later, because refusals by the access lists of the queue come first. */
function boundsRefusal({ Resource_List }: ResolvedRequest, queue: Queue, server: Attrs, tx: Transaction): Reject | null {
  try {
    checkBounds(Resource_List, queue.attrs, server, tx.state.resources);
    return null;
  } catch (error) {
    if (error instanceof Reject) return error;
    throw error;
  }
}

/** The requested resources as typed values. A resource with an empty value is left out. */
function askedResources(tx: Transaction, given: readonly AttrValueText[]): ResourceValues {
  const def = attributeOf(JOB_ATTRIBUTES, "Resource_List");
  const asked: { [resource: string]: string | number | boolean } = {};
  for (const { resource, value } of given) {
    const resc = listedResource(def, resource, tx.state.resources);
    checkAskable(def, resc, value, tx.who, tx.state.resources);
    if (value !== "") asked[resc.name] = parseListedValue(def, resc, value);
  }
  return asked;
}

// --- run_count and script

const RUN_COUNT_MAX = 1_000_000;

/**
 * Checks a run_count that a user sets (qsub and qalter -W run_count). The server uses run_count to distinguish the runs of a
 * job, and moms refuse a run that they have seen (docs/reference/execution.md 6). Therefore users can only increase the
 * number, and not during a run. Refuses with 15014 a number that is smaller than the present one or absurdly large.
 */
export function checkRunCount(before: unknown, after: unknown): void {
  if (Number(after ?? 0) < Number(before ?? 0) || Number(after ?? 0) > RUN_COUNT_MAX) throw reject(PBSE.BADATVAL, "run_count");
}

const SCRIPT_SIZE_DEFAULT = "100mb";

/** Refuses with 15175 a script that is larger than jobscript_max_size. */
export function checkScriptSize(state: ServerState, script: string | null): void {
  if (script === null) return;
  const size = parseSize(String(state.server["jobscript_max_size"] ?? SCRIPT_SIZE_DEFAULT));
  const max = size === null ? Number.POSITIVE_INFINITY : sizeBytes(size);
  // A character has at most three bytes. The exact number of bytes is counted only for scripts that may be too large.
  if (script.length * 3 <= max) return;
  if (bytesOf(script) > max) throw reject(PBSE.JOBSCRIPTMAXSIZE);
}

const bytesOf = (script: string): number => (isMarkedScript(script) ? scriptCharacters(script).length : utf8Length(script));

function utf8Length(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes;
}
