// Converts reasons why a job does not run to texts: the comment of the job and the text in the scheduler's log (docs/reference/scheduler.md 6). No other
// file of the scheduler knows the sentences.
//
// Placeholders: {resource}, {detail} the (R: A: T:) or (a != b) form, {where} queue, state or other object, {entity} user, group or project.

import type { Why } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";

type Row = readonly [comment: string, log?: string];

// biome-ignore format: one row per reason
export const REASONS = {
  SCHD_ERROR:                  ["Internal Scheduling Error", "A scheduling error has occurred"],
  NOT_QUEUED:                  ["Job not in queued state", "Job is not in queued state"],
  QUEUE_NOT_STARTED:           ["Queue not started.", "Queue not started"],
  QUEUE_NOT_EXEC:              ["Queue not an execution queue.", "Queue not an execution queue"],
  QUEUE_OVERALL_JOB_LIMIT:     ["Queue {where} job limit has been reached.", "Queue {where} job limit reached"],
  SERVER_OVERALL_JOB_LIMIT:    ["Server job limit has been reached.", "Server job limit reached"],
  SERVER_USER_JOB_LIMIT:       ["User has reached server running job limit.", "Server per-user job limit reached"],
  QUEUE_USER_JOB_LIMIT:        ["User has reached queue {where} running job limit.", "Queue {where} per-user job limit reached"],
  SERVER_GROUP_JOB_LIMIT:      ["Group has reached server running limit.", "Server per-group limit reached"],
  QUEUE_GROUP_JOB_LIMIT:       ["Group has reached queue {where} running limit.", "Queue {where} per-group job limit reached"],
  SERVER_PROJECT_JOB_LIMIT:    ["Project has reached server running limit.", "Server per-project limit reached"],
  QUEUE_PROJECT_JOB_LIMIT:     ["Project has reached queue {where}'s running limit.", "Queue {where} per-project job limit reached"],
  SERVER_USER_NAMED_JOB_LIMIT: ["Server job limit reached for user {entity}"],
  QUEUE_USER_NAMED_JOB_LIMIT:  ["Queue {where} job limit reached for user {entity}"],
  SERVER_GROUP_NAMED_JOB_LIMIT: ["Server job limit reached for group {entity}"],
  QUEUE_GROUP_NAMED_JOB_LIMIT: ["Queue {where} job limit reached for group {entity}"],
  SERVER_PROJECT_NAMED_JOB_LIMIT: ["Server job limit reached for project {entity}"],
  QUEUE_PROJECT_NAMED_JOB_LIMIT: ["Queue {where} job limit reached for project {entity}"],
  SERVER_USER_RES_LIMIT:       ["Server per-user limit reached on resource {resource}"],
  QUEUE_USER_RES_LIMIT:        ["Queue {where} per-user limit reached on resource {resource}"],
  SERVER_GROUP_RES_LIMIT:      ["Server per-group limit reached on resource {resource}"],
  QUEUE_GROUP_RES_LIMIT:       ["Queue {where} per-group limit reached on resource {resource}"],
  SERVER_PROJECT_RES_LIMIT:    ["Server per-project limit reached on resource {resource}"],
  QUEUE_PROJECT_RES_LIMIT:     ["Queue {where} per-project limit reached on resource {resource}"],
  SERVER_OVERALL_RES_LIMIT:    ["would exceed overall limit on resource {resource} in complex"],
  QUEUE_OVERALL_RES_LIMIT:     ["would exceed overall limit on resource {resource} in queue {where}"],
  SERVER_USER_NAMED_RES_LIMIT: ["would exceed user {entity}'s limit on resource {resource} in complex"],
  QUEUE_USER_NAMED_RES_LIMIT:  ["would exceed user {entity}'s limit on resource {resource} in queue {where}"],
  SERVER_GROUP_NAMED_RES_LIMIT: ["would exceed group {entity}'s limit on resource {resource} in complex"],
  QUEUE_GROUP_NAMED_RES_LIMIT: ["would exceed group {entity}'s limit on resource {resource} in queue {where}"],
  SERVER_PROJECT_NAMED_RES_LIMIT: ["would exceed project {entity}'s limit on resource {resource} in complex"],
  QUEUE_PROJECT_NAMED_RES_LIMIT: ["would exceed project {entity}'s limit on resource {resource} in queue {where}"],
  MAX_RUN_SUBJOBS:             ["Number of concurrent running subjobs limit reached"],
  DED_TIME:                    ["Dedicated time conflict", "Dedicated Time"],
  CROSS_DED_TIME_BOUNDARY:     ["Job would cross dedicated time boundary", "Job would not finish before dedicated time"],
  PRIME_ONLY:                  ["Job will run in primetime only", "Job only runs in primetime"],
  NONPRIME_ONLY:               ["Job will run in nonprimetime only", "Job only runs in nonprimetime"],
  CROSS_PRIME_BOUNDARY:        ["Job will cross into {where}", "Job would cross into {where}"],
  NO_SMALL_CPUSETS:            ["Max number of small cpusets has been reached"],
  INSUFFICIENT_QUEUE_RESOURCE: ["Insufficient amount of queue resource: {resource} {detail}"],
  INSUFFICIENT_SERVER_RESOURCE: ["Insufficient amount of server resource: {resource} {detail}"],
  INSUFFICIENT_RESOURCE:       ["Insufficient amount of resource: {resource} {detail}"],
  NO_NODE_RESOURCES:           ["No available resources on nodes"],
  NO_FREE_NODES:               ["Not enough free nodes available"],
  NO_TOTAL_NODES:              ["Not enough total nodes available"],
  NODE_TYPE:                   ["Not enough of the right type of nodes are available", "Not enough of the right type of nodes available"],
  INVALID_NODE_STATE:          ["Node is in an ineligible state: {where}"],
  INVALID_NODE_TYPE:           ["Node is of an ineligible type: {where}"],
  NODE_NOT_EXCL:               ["{where} is requesting an exclusive node and node is in use"],
  NODE_JOB_LIMIT:              ["Node has reached job run limit"],
  NODE_USER_LIMIT:             ["Node has reached user run limit"],
  NODE_GROUP_LIMIT:            ["Node has reached group run limit"],
  NODE_NO_MULT_JOBS:           ["Node can't satisfy a multi-node job"],
  NODE_UNLICENSED:             ["Node has no PBS license"],
  NODE_PLACE_PACK:             ["Node ineligible because job requested pack placement and won't fit on node"],
  NODE_RESV_ENABLE:            ["Node not eligible for advance reservation"],
  /** not from PBS: the vnode is a runner (docs/runners.md) */
  RUNNER_OF_OTHERS:            ["No runner for jobs like this one is free"],
  SET_TOO_SMALL:               ["{resource} set {where} has too few free resources", "{resource} set {where} has too few free resources or is too small"],
  CANT_SPAN_PSET:              ["can't fit in the largest placement set, and can't span psets", "Can't fit in the largest placement set, and can't span placement sets"],
  STRICT_ORDERING:             ["Job would break strict sorted order"],
  BACKFILL_CONFLICT:           ["Job would interfere with a top job"],
  RESERVATION_INTERFERENCE:    ["Job would interfere with a confirmed reservation", "Job would interfere with a reservation"],
  RESERVATION_CONFLICT:        ["Job would conflict with reservation or top job"],
  CANT_PREEMPT_ENOUGH_WORK:    ["Can't preempt enough work to run job"],
  NO_FAIRSHARES:               ["Job has zero shares for fairshare"],
  JOB_UNDER_THRESHOLD:         ["Job is under job_sort_formula threshold value"],
  SPECIFIED_MISSING:           ["Specified {resource} does not exist: {where}"],
  INVALID_RESRESV:             ["Invalid Job/Resv {where}"],
  PROV_DISABLE_ON_SERVER:      ["Cannot provision, provisioning disabled on server"],
  PROV_DISABLE_ON_NODE:        ["Cannot provision, provisioning disabled on vnode"],
  AOE_NOT_AVALBL:              ["Cannot provision, requested AOE {where} not available on vnode"],
  EOE_NOT_AVALBL:              ["Cannot provision, requested EOE {where} not available on vnode"],
  PROV_BACKFILL_CONFLICT:      ["Provisioning for job would interfere with backfill job"],
  IS_MULTI_VNODE:              ["Cannot provision, host has multiple vnodes"],
  PROV_RESRESV_CONFLICT:       ["Provision conflict with existing job/reservation"],
  PBS_ERROR:                   ["PBS Error: {want}", "Failed to run: {want}"],
  /** not from PBS: used only in explanations, never in comments */
  SCHED_WITHOUT_PARTITION:     ["Scheduler {where} has no partition"],
  SCHED_WITHOUT_NODES:         ["Scheduler {where} has no vnodes"],
  SCHED_WITHOUT_QUEUES:        ["Scheduler {where} has no queues"],
  /** not from PBS: this release does not understand some part of the request */
  NOT_SUPPORTED:               ["No support for {where}"],
} as const satisfies Record<string, Row>;

export type ReasonCode = keyof typeof REASONS;

/** Returns the job's comment: `Not Running: ...` or `Can Never Run: ...`. */
export function commentText(why: Why): string {
  return `${why.never === true ? "Can Never Run" : "Not Running"}: ${fill(rowOf(why)[0], why)}`;
}

/** Returns the text for the scheduler's log. A refused qrun shows the same text. */
export function logText(why: Why): string {
  const row = rowOf(why);
  return fill(row[1] ?? row[0], why);
}

/** Returns what distinguishes kinds of reasons: a reason without its amounts. */
export function kindOf({ code, resource, where, entity, never }: Why): string {
  return [code, resource, where, entity, never].join("|");
}

/** The text that is logged after the reason of a job that can never run. */
export const NEVER_TEXT = "Job will never run with the resources currently configured in the complex";

/** Returns the comment of a job whose start was refused by the server. */
export function refusedComment(text: string): string {
  return `Not Running: PBS Error: ${text}`;
}
export function refusedLogText(text: string, code: number): string {
  return `Failed to run: ${text} (${code})`;
}

function isReasonCode(code: string): code is ReasonCode {
  return Object.hasOwn(REASONS, code);
}

/**
 * The sentences, cut at their placeholders: a literal, then the name of a placeholder, and so on in turn. They are cut once,
 * because a cycle fills them in for every class of jobs.
 */
const CUT: ReadonlyMap<string, readonly string[]> = new Map(
  Object.values(REASONS).flatMap((row: readonly string[]) => row.map((template) => [template, cut(template)] as const)),
);

function cut(template: string): string[] {
  return template.split(/\{(resource|detail|where|entity|want)\}/);
}

/** Returns the sentences for a reason. An unknown code (of a site's module) is shown as it is. */
function rowOf(why: Why): Row {
  return isReasonCode(why.code) ? REASONS[why.code] : [why.code];
}

function fill(template: string, why: Why): string {
  const parts = CUT.get(template) ?? cut(template);
  let text = present(parts[0], "part");
  for (let at = 1; at < parts.length; at += 2) text += valueFor(present(parts[at], "part"), why) + present(parts[at + 1], "part");
  return text;
}

function valueFor(placeholder: string, why: Why): string {
  switch (placeholder) {
    case "resource":
      return why.resource ?? "";
    case "detail":
      return detailText(why);
    case "where":
      return why.where ?? "";
    case "want":
      return why.want ?? "";
    default:
      return why.entity ?? "";
  }
}

/** Returns `(R: 8 A: 2 T: 4)` for amounts, `(red != blue)` for values that are compared, and nothing if no value is known. */
function detailText({ want, have, total }: Why): string {
  if (want === undefined) return "";
  return total === undefined ? `(${want} != ${have ?? ""})` : `(R: ${want} A: ${have ?? ""} T: ${total})`;
}
