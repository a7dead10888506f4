// The order of jobs, compiled from attributes. Types only: order/ranking.ts makes and uses them.

import type { FairshareEntity } from "#model/fairshare.ts";
import type { Evaluate, Formula } from "#model/formula/formula.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import type { Policy } from "./policy.ts";

export type Ranking = {
  readonly formula: RankFormula | null;
  /** backfill.formula, which orders the jobs behind the last top job */
  readonly behind: RankFormula | null;
  /** the reason why a formula cannot be used */
  readonly fault: string | null;
  /** only jobs whose value is above this threshold may run */
  readonly threshold: number | null;
  readonly fair_share: boolean;
  /** the property of a job that names its entity with shares; null: shares do not matter */
  readonly entity: FairshareEntity | null;
  /** computes the usage that a job adds to the usage of its entity */
  readonly usage: { readonly names: readonly string[]; readonly evaluate: Evaluate };
  readonly policy: Policy;
  /** the errors of the formula that were already logged */
  readonly told: Set<string>;
};

export type RankFormula = {
  readonly formula: Formula;
  readonly evaluate: Evaluate;
  /** the formula's value changes as time passes */
  readonly drifts: boolean;
  /** the formula's value depends on the state of the job's clock */
  readonly clocked: boolean;
  readonly parts: Parts;
};

/** The sum of a formula, divided into kinds of terms. */
export type Parts = {
  /** computes the sum of the terms that depend on properties of the job alone */
  readonly own: Evaluate;
  readonly own_names: readonly string[];
  /** the factor with which eligible_time is multiplied in the sum */
  readonly slope: number;
  /** the properties of the job in those terms that also contain other names: `ncpus` in `ncpus * queue_priority` */
  readonly mixed_names: readonly string[];
  /** whether one of those terms contains eligible_time */
  readonly mixes_time: boolean;
};

/** Returns the present preemption level of a job. A job may preempt jobs of lower levels (preempt/preempt-level.ts). */
export type LevelOf = (job: SchedJob) => number;
