// The order of queued jobs (docs/reference/scheduler.md 4): job_sort_formula, shares, job_sort_key, then rank. The attributes are compiled when they change.
// The formula is evaluated only for the first jobs of strands.
//
// A strand holds jobs whose values by the formula differ by amounts that never change, so it stays sorted while time passes and shares are used. A formula
// depends on properties of the job (resources, job_priority), on its eligible time, and on things outside the job (queue_priority, shares). The terms of a sum
// are examined one by one: a term with properties of the job alone makes a fixed difference between jobs, and so does a multiple of eligible_time. Any other
// term combines properties of the job with eligible_time or with things outside it. Such a term is equal for two jobs if these properties are equal, so only
// jobs with equal values of them share a strand.
//
// K1. Within a strand the order of jobs by value, then rank, is the order of JobEntry.order, then rank, at any time.

import { compareShares, entity, entityOf, type Fairshare, shareFactor, treeUsage, UNKNOWN } from "#model/fairshare.ts";
import {
  compileFormula,
  type Evaluate,
  type Formula,
  type FormulaNode,
  type FormulaValue,
  inputName,
  JOB_FORMULA_NAMES,
  type NameKind,
  readFormula,
} from "#model/formula/formula.ts";
import { type Bounds, boundFormula } from "#model/formula/formula-bounds.ts";
import { partsOf } from "#model/formula/formula-grammar.ts";
import { isNumeric } from "#model/resource-table.ts";
import type { AttrRecord, SchedJob } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import type { JobEntry } from "../shapes/job-line.ts";
import type { Policy } from "../shapes/policy.ts";
import type { Parts, RankFormula, Ranking } from "../shapes/ranking.ts";
import { amountOf, type ResourceSpace } from "../shapes/resource-space.ts";
import type { RankContext, Universe } from "../shapes/universe.ts";
import { eligibleAt } from "./eligible-time.ts";
import { cpusOf, expansionOf, logKey, timeOf } from "./job-measures.ts";

const SHARES: ReadonlySet<string> = new Set(["fairshare_perc", "fairshare_tree_usage", "fairshare_factor"]);
const CONTEXT: ReadonlySet<string> = new Set([...SHARES, "queue_priority", "accrue_type"]);

/** The attributes that determine a ranking. If the scheduler has a value for one of them, this value applies instead of the server's. */
export const RANKING_ATTRS = ["job_sort_formula", "job_sort_formula_threshold"] as const;

export function rankingOf(
  attrs: { readonly server: AttrRecord; readonly sched: AttrRecord },
  policy: Policy,
  space: ResourceSpace,
  modules: { readonly prioritizer: boolean; readonly fairshare: boolean },
): Ranking {
  const text = attrs.sched["job_sort_formula"] ?? attrs.server["job_sort_formula"];
  const asked = modules.prioritizer && policy.job_order === null;
  const read = asked && typeof text === "string" && text !== "" ? readRankFormula(text, space) : null;
  const behind = policy.backfill_formula === "" ? null : readRankFormula(policy.backfill_formula, space, "backfill.formula");
  const usage = readUsageFormula(policy.fairshare_usage_res, space);
  const fault =
    [read, behind, usage].flatMap((each) => (each !== null && "fault" in each && each.fault !== null ? [each.fault] : []))[0] ?? null;
  const formula = read === null || "fault" in read ? null : read;
  const threshold = attrs.sched["job_sort_formula_threshold"];
  const fair_share = policy.fair_share && modules.fairshare;
  const keys = formula === null && policy.job_order === null && policy.job_sort_key.some(({ key }) => key === "fairshare_perc");
  const behindTop = behind === null || "fault" in behind ? null : behind;
  const shares = fair_share || keys || [formula, behindTop].some((each) => each?.formula.names.some((name) => SHARES.has(name)));
  return {
    formula,
    behind: behindTop,
    fault,
    threshold: formula !== null && typeof threshold === "number" ? threshold : null,
    fair_share,
    entity: shares ? policy.fairshare_entity : null,
    usage,
    told: new Set(),
    policy: modules.prioritizer ? policy : { ...policy, job_sort_key: [], job_order: null },
  };
}

const kindIn =
  (space: ResourceSpace) =>
  (name: string): NameKind => {
    const resource = space.all.get(name);
    return resource === undefined ? undefined : isNumeric(resource.type) ? "number" : "other";
  };

/** Reads fairshare_usage_res. Returns cput instead if it cannot be used. */
function readUsageFormula(text: string, space: ResourceSpace): Ranking["usage"] & { readonly fault: string | null } {
  const formula = readFormula(text, kindIn(space), []);
  if (!("fault" in formula)) return { names: formula.names, evaluate: compileFormula(formula), fault: null };
  return { names: ["cput"], evaluate: ([cput = 0]) => ({ value: cput }), fault: `fairshare_usage_res cannot be used: ${formula.text}` };
}

function readRankFormula(text: string, space: ResourceSpace, setting = "job_sort_formula"): RankFormula | { readonly fault: string } {
  const formula = readFormula(text, kindIn(space), JOB_FORMULA_NAMES);
  if ("fault" in formula) return { fault: `${setting} cannot be used: ${formula.text}` };
  const { names } = formula;
  const drifts = names.includes("eligible_time") || (names.includes("expansion_factor") && !space.all.has("expansion_factor"));
  return {
    formula,
    evaluate: compileFormula(formula),
    drifts,
    clocked: drifts || names.includes("accrue_type"),
    parts: partsOfSum(formula, space),
  };
}

// --- the terms of a formula

function partsOfSum({ root, names: known }: Formula, space: ResourceSpace): Parts {
  // The expansion factor grows with time. It is equal for jobs that were submitted together and request the same time.
  const expands = (name: string): boolean => name === "expansion_factor" && !space.all.has(name);
  const isOwn = (name: string): boolean => name !== "eligible_time" && !CONTEXT.has(name) && !expands(name);
  const whole = { node: root, sign: 1 as const, names: namesOf(root, known) };
  const split = termsOf(root).map((term) => ({ ...term, names: namesOf(term.node, known) }));
  // An error makes the whole formula 0. An error that depends on properties of the job is permanent; any other error may come and go. If a term may have an
  // error that comes and goes, the formula is not split into terms.
  const terms = split.every(({ node, names }) => names.every(isOwn) || cannotFail(node)) ? split : [whole];
  const own: typeof terms = [];
  const mixed = new Set<string>();
  let [slope, mixes_time] = [0, false];
  for (const { node, sign, names } of terms) {
    if (names.every(isOwn)) own.push({ node, sign, names });
    else if (slopeOf(node) !== null) slope += sign * (slopeOf(node) ?? 0);
    else {
      mixes_time ||= names.includes("eligible_time");
      for (const name of names) {
        if (isOwn(name)) mixed.add(name);
        else if (expands(name)) mixed.add("submit_time").add("requested_time");
      }
    }
  }
  const own_names = [...new Set(own.flatMap(({ names }) => names))];
  return { own: sumOf(own, own_names), own_names, slope, mixed_names: [...mixed], mixes_time };
}

function sumOf(terms: readonly { readonly node: FormulaNode; readonly sign: 1 | -1 }[], names: readonly string[]): Evaluate {
  const codes = terms.map(({ node, sign }) => ({ evaluate: compileFormula({ root: node, names }), sign }));
  return (inputs) => {
    let sum = 0;
    for (const { evaluate, sign } of codes) {
      const { value, error } = evaluate(inputs);
      if (error !== undefined) return { value: 0, error };
      sum += sign * value;
    }
    return { value: sum };
  };
}

/** Returns the terms of a sum with their signs. */
function termsOf(root: FormulaNode): { node: FormulaNode; sign: 1 | -1 }[] {
  const terms: { node: FormulaNode; sign: 1 | -1 }[] = [];
  const stack: { node: FormulaNode; sign: 1 | -1 }[] = [{ node: root, sign: 1 }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { node, sign } = next;
    if (node.kind === "binary" && (node.op === "+" || node.op === "-")) {
      stack.push({ node: node.right, sign: node.op === "+" ? sign : (-sign as 1 | -1) }, { node: node.left, sign });
    } else if (node.kind === "unary" && node.op === "-") stack.push({ node: node.arg, sign: -sign as 1 | -1 });
    else terms.push(next);
  }
  return terms;
}

/** Returns whether a term can never have an error: it divides only by numbers, has no powers, and calls only functions that accept all arguments. */
function cannotFail(node: FormulaNode): boolean {
  const safe = (): boolean => {
    switch (node.kind) {
      case "binary":
        if (node.op === "/" || node.op === "//" || node.op === "%") return node.right.kind === "number" && node.right.value !== 0;
        return node.op !== "**";
      case "call":
        return SAFE.has(node.name);
      default:
        return true;
    }
  };
  return safe() && partsOf(node).every(cannotFail);
}
const SAFE: ReadonlySet<string> = new Set(["abs", "fabs", "ceil", "floor", "trunc", "int", "float", "min", "max"]);

/** Returns the names of the values on which a part of the formula depends. known: Formula.names; any other name is a constant. */
function namesOf(root: FormulaNode, known: readonly string[]): string[] {
  const names = new Set<string>();
  const stack: FormulaNode[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (node.kind === "name" && known.includes(inputName(node.name))) names.add(inputName(node.name));
    stack.push(...partsOf(node));
  }
  return [...names];
}

/** Returns k if the node is k * eligible_time, otherwise null. */
function slopeOf(node: FormulaNode): number | null {
  if (node.kind === "name") return node.name === "eligible_time" ? 1 : null;
  if (node.kind !== "binary") return null;
  const { op, left, right } = node;
  if (op === "*" && left.kind === "number") return scaled(slopeOf(right), left.value);
  if (op === "*" && right.kind === "number") return scaled(slopeOf(left), right.value);
  return op === "/" && right.kind === "number" && right.value !== 0 ? scaled(slopeOf(left), 1 / right.value) : null;
}
const scaled = (slope: number | null, by: number): number | null => (slope === null ? null : slope * by);

// --- the values of jobs

/** Returns the key of a job's strand in its track, and the values that order the job in this strand (smaller first). */
export function placeInStrand(universe: Universe, job: SchedJob): { readonly key: string; readonly order: readonly number[] } {
  const { formula, policy } = universe.ranking;
  if (formula === null)
    return { key: "", order: policy.job_order === null ? keysOf(universe, policy, job) : namedKeys(universe, policy, job) };
  const { own, own_names, slope, mixed_names, mixes_time } = formula.parts;
  const { value, error } = own(own_names.map((name) => ownInput(universe, job, name)));
  if (error !== undefined) return { key: "error", order: [0] };
  const key: unknown[] = mixed_names.map((name) => ownInput(universe, job, name));
  const { base_s, clock } = eligibleOf(job);
  if (formula.clocked) key.push(clock ?? `=${job.accrue_type ?? 0}`);
  if (mixes_time) key.push(value, base_s);
  return { key: key.join(" "), order: [mixes_time ? 0 : -(value + slope * base_s)] };
}

const eligibleOf = (job: SchedJob): { readonly base_s: number; readonly clock: string | null } => ({
  base_s: job.eligible_time_s ?? 0,
  clock: job.clock ?? null,
});

/** Returns the keys of a named policy, smaller first. Arrival decides between equal keys. */
function namedKeys(universe: Universe, { job_order }: Policy, job: SchedJob): number[] {
  return job_order === "log" ? [logKey(job.ctime_s, timeOf(universe, job))] : [];
}

/** Returns the values of job_sort_key, smaller first. */
function keysOf(universe: Universe, policy: Policy, job: SchedJob): number[] {
  return policy.job_sort_key.map(({ key, high }) => {
    const value = keyValue(universe, job, key);
    return high ? -value : value;
  });
}

function keyValue(universe: Universe, job: SchedJob, key: string): number {
  switch (key) {
    case "job_priority":
    case "sort_priority":
      return job.priority;
    case "fairshare_perc":
      return percentageOf(universe, job);
    default:
      return amountOf(universe.space.all.get(key), job.resources[key]) ?? 0;
  }
}

/**
 * Returns the share that a job's entity has of the whole tree. For an entity that resource_group does not name, it is the
 * share of all such entities together.
 */
export function percentageOf({ percentages, ranking }: Universe, job: SchedJob): number {
  return percentages.get(entityOf(job, ranking.policy.fairshare_entity)) ?? percentages.get(UNKNOWN) ?? 0;
}

/** Returns the entity whose shares a job uses. */
export function shareEntity({ ranking }: Universe, job: SchedJob): string {
  return entityOf(job, ranking.policy.fairshare_entity);
}

/** Returns the key of a job's track: the entity whose shares count; "" if shares do not matter. */
export function trackKey({ ranking }: Universe, job: SchedJob): string {
  return ranking.entity === null ? "" : entityOf(job, ranking.entity);
}

function ownInput(universe: Universe, job: SchedJob, name: string): number {
  if (name === "job_priority") return job.priority;
  const resource = universe.space.all.get(name);
  // If the site has a resource with that name, the name means this resource.
  if (resource === undefined) {
    if (name === "pressure") return job.pressure_s ?? 0;
    if (name === "submit_time") return job.ctime_s;
    if (name === "requested_time") return timeOf(universe, job);
    if (name === "area") return timeOf(universe, job) * cpusOf(universe, job);
  }
  return amountOf(resource, job.resources[name]) ?? 0;
}

/**
 * Registers all entities that have jobs before shares are compared. Entities that resource_group does not name divide the share of `unknown`, so each new one
 * of them reduces the shares of the others.
 */
export function knowEntities({ universe, fairshare }: Pick<RankContext, "universe" | "fairshare">): void {
  if (universe.ranking.entity === null) return;
  for (const lines of universe.lines.values()) {
    for (const line of lines) for (const name of line.tracks.keys()) entity(fairshare, name);
  }
}

/** Returns the present value of a job by the formula. Without a formula all jobs have the same value. */
export function worth(ranks: RankContext, job: SchedJob): FormulaValue {
  return formulaValue(ranks, ranks.universe.ranking.formula, job);
}

/** Returns the present value of a job by backfill.formula. Without a formula all jobs have the same value. */
export function backfillWorth(ranks: RankContext, job: SchedJob): number {
  return formulaValue(ranks, ranks.universe.ranking.behind, job).value;
}

function formulaValue(ranks: RankContext, formula: RankFormula | null, job: SchedJob): FormulaValue {
  if (formula === null) return NOTHING;
  const result = formula.evaluate(formula.formula.names.map((name) => input(ranks, job, name)));
  if (result.error !== undefined && !ranks.errors.has(result.error)) ranks.errors.set(result.error, job.id);
  return result;
}
const NOTHING: FormulaValue = { value: 0 };

/** Returns the usage that an entity is charged for amounts of resources, used or requested. */
export function usageOf({ ranking, space }: Universe, resources: { readonly [resource: string]: unknown }): number {
  const { names, evaluate } = ranking.usage;
  return Math.max(0, evaluate(names.map((name) => amountOf(space.all.get(name), resources[name]) ?? 0)).value);
}

function input({ universe, fairshare, now_s }: RankContext, job: SchedJob, name: string): number {
  switch (name) {
    case "eligible_time":
      return eligibleAt(universe.clocks, job, now_s).eligible_s;
    case "accrue_type":
      return eligibleAt(universe.clocks, job, now_s).accrue_type;
    case "queue_priority":
      return universe.queues.get(job.queue)?.priority ?? 0;
    case "fairshare_perc":
      return shareNode(universe, fairshare, job).percentage;
    case "fairshare_tree_usage":
      return treeUsage(fairshare, shareNode(universe, fairshare, job));
    case "fairshare_factor":
      return shareFactor(fairshare, shareNode(universe, fairshare, job));
    case "expansion_factor":
      return universe.space.all.has(name) ? ownInput(universe, job, name) : expansionOf(universe, job, now_s);
    default:
      return ownInput(universe, job, name);
  }
}

const shareNode = (universe: Universe, fairshare: Fairshare, job: SchedJob) =>
  entity(fairshare, entityOf(job, universe.ranking.policy.fairshare_entity));

/** Returns bounds for the values that a job can have until a time, as long as shares and priorities of queues stay as they are. */
export function worthUntil(ranks: RankContext, job: SchedJob, until_s: number): Bounds {
  const { formula } = ranks.universe.ranking;
  if (formula === null) return { low: 0, high: 0 };
  if (!formula.clocked) {
    const { value } = worth(ranks, job);
    return { low: value, high: value };
  }
  const inputs = formula.formula.names.map((name): Bounds => {
    const low = input(ranks, job, name);
    if (name === "eligible_time") return { low, high: low + Math.max(0, until_s - ranks.now_s) };
    if (name === "expansion_factor") return { low, high: Math.max(low, input({ ...ranks, now_s: until_s }, job, name)) };
    // If a clock stops or starts again before that time, the accrue type changes.
    return name === "accrue_type" && job.clock !== undefined ? { low: 1, high: 2 } : { low, high: low };
  });
  return boundFormula(formula.formula, inputs);
}

/** Returns whether a job comes before another one of any strand. a, b: jobs with their present values by the formula. */
export function comesBefore(ranks: RankContext, a: Ranked, b: Ranked): boolean {
  if (a.value !== b.value) return a.value > b.value;
  const { ranking } = ranks.universe;
  if (ranking.fair_share) {
    const order = compareEntities(ranks, a.entry, b.entry);
    if (order !== 0) return order < 0;
  }
  return ranking.formula === null ? inStrandBefore(a.entry, b.entry) : rankBefore(a.entry, b.entry);
}
export type Ranked = { readonly entry: JobEntry; readonly value: number };

function compareEntities({ universe, fairshare }: RankContext, a: JobEntry, b: JobEntry): number {
  return compareShares(shareNode(universe, fairshare, a.job), shareNode(universe, fairshare, b.job));
}

/** Returns whether a job comes before another one of its strand or, if there is no formula, of any strand (K1). */
export function inStrandBefore(a: JobEntry, b: JobEntry): boolean {
  for (let at = 0; at < a.order.length; at++) {
    const [left, right] = [present(a.order[at], "rank"), present(b.order[at], "rank")];
    if (left !== right) return left < right;
  }
  return rankBefore(a, b);
}

export function rankBefore(a: JobEntry, b: JobEntry): boolean {
  return a.job.rank < b.job.rank || (a.job.rank === b.job.rank && a.job.id < b.job.id);
}
