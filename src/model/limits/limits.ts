// Limits at submission: decides whether one more job may enter a queue or the complex, and makes the text of the refusal
// (docs/reference/errors.md 3). The server supplies the counts; this file only compares them with limits.
//
// I1. A limit for the name of a user, group or project applies in place of the generic limit. A job must be within the
//     limits of all kinds.
// I2. Limits are checked in this order: for all jobs together, for the user, for the group, for the project.

import type { EntityLimits } from "../attribute.ts";
import { PBSE, Reject, reject } from "../pbse.ts";
import type { ResourceDef } from "../resource-table.ts";
import { type EntityKind, GENERIC, limitFor } from "../values/entity-limit.ts";
import { resourceAmount } from "../values/resource-value.ts";

/** Where a limit is set: on a queue, or on the server (complex). */
export type LimitScope = { readonly kind: "queue"; readonly name: string } | { readonly kind: "complex" };
/** The entities for which a job counts. */
export type JobEntities = { readonly user: string; readonly group: string; readonly project: string };
/** Use without the new job: by all jobs, and by the jobs of its user, its group and its project. A number of jobs, or an amount of a resource (sizes in kb). */
export type EntityUse = { readonly all: number; readonly user: number; readonly group: number; readonly project: number };
/** The attributes that give the limit. queued: max_queued and max_queued_res; waiting: queued_jobs_threshold and queued_jobs_threshold_res. */
export type LimitFamily = "queued" | "waiting";

export type LimitQuestion = {
  readonly family: LimitFamily;
  readonly scope: LimitScope;
  readonly who: JobEntities;
  readonly use: EntityUse;
  /**
   * what the job adds for each entity: 1, the number of subjobs of an array, or an amount of the resource. If this is 0 or
   * less, the limit is not checked
   */
  readonly added: EntityUse;
};

const WORDS: { readonly [letter in "u" | "g" | "p"]: "user" | "group" | "project" } = { u: "user", g: "group", p: "project" };
const ORDER: readonly EntityKind[] = ["o", "u", "g", "p"];

/**
 * The refusal (15142) of a job that would exceed a limit on the number of jobs. Returns null if the job may
 * enter.
 */
export function countRefusal(limits: EntityLimits | undefined, question: LimitQuestion): Reject | null {
  for (const kind of ORDER) {
    const found = limitFor(limits, kind, nameOf(kind, question.who));
    const added = usedBy(kind, question.added);
    if (found !== undefined && added > 0 && usedBy(kind, question.use) + added > found.limit) {
      return new Reject(PBSE.ENTLIMCT, countText(kind, found.key, question));
    }
  }
  return null;
}

/**
 * The refusal (15143) of a job that would exceed a limit on an amount of a resource. Returns null if the job
 * may enter.
 */
export function resourceRefusal(
  limits: { readonly [entity: string]: number | string } | undefined,
  resource: ResourceDef,
  question: LimitQuestion,
): Reject | null {
  for (const kind of ORDER) {
    const found = limitFor(limits, kind, nameOf(kind, question.who));
    const added = usedBy(kind, question.added);
    if (found === undefined || added <= 0) continue;
    const limit = resourceAmount(resource, found.limit);
    if (limit !== null && usedBy(kind, question.use) + added > limit) {
      return new Reject(PBSE.ENTLIMRESC, resourceText(kind, found.key, resource.name, question));
    }
  }
  return null;
}

/** The refusal of a job that would exceed the old-style limit max_queuable. */
export function queuableRefusal(max_queuable: number | undefined, jobs: number, added = 1): Reject | null {
  return max_queuable !== undefined && jobs + added > max_queuable ? reject(PBSE.MAXQUED) : null;
}

/**
 * Whether there are limits of both the old and the new style. Server and queues may not have both (15141).
 */
export function mixesLimitStyles(styles: Iterable<"old" | "new" | undefined>): boolean {
  const found = new Set(styles);
  return found.has("old") && found.has("new");
}

function countText(kind: EntityKind, key: string, { family, scope, who }: LimitQuestion): string {
  const queued = family === "waiting" ? " in 'Q' state" : "";
  const place = scope.kind === "queue" ? `queue ${scope.name}` : "complex";
  if (kind === "o") return `Maximum number of jobs${queued} already in ${place}`;
  const word = WORDS[kind];
  // PBS writes the word generic in place of the queue's name, and tools of sites search for it.
  const whose = scope.kind === "queue" ? "queue generic" : place;
  if (key.endsWith(`:${GENERIC}`)) return `would exceed ${whose}'s per-${word} limit${queued === "" ? "" : ` of jobs${queued}`}`;
  return `Maximum number of jobs${queued} for ${word} ${nameOf(kind, who)} already in ${place}`;
}

function resourceText(kind: EntityKind, key: string, resource: string, { family, scope, who }: LimitQuestion): string {
  const place = scope.kind === "queue" ? `queue ${scope.name}` : "complex";
  const tail = `limit on resource ${resource} in ${place}${family === "waiting" ? " for jobs in 'Q' state" : ""}`;
  if (kind === "o") return `would exceed ${tail}`;
  const word = WORDS[kind];
  return key.endsWith(`:${GENERIC}`) ? `would exceed per-${word} ${tail}` : `would exceed ${word} ${nameOf(kind, who)}'s ${tail}`;
}

function nameOf(kind: EntityKind, who: JobEntities): string {
  return kind === "o" ? "" : who[WORDS[kind]];
}

function usedBy(kind: EntityKind, use: EntityUse): number {
  return kind === "o" ? use.all : use[WORDS[kind]];
}
