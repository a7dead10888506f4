// The attributes that order jobs, compiled. Types only: order/ranking.ts makes and uses them.

import type { FairshareEntity } from "#model/fairshare.ts";
import type { Evaluate, Formula } from "#model/formula/formula.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import type { Policy } from "./policy.ts";

export type Ranking = {
  readonly formula: RankFormula | null;
  /** the reason why a formula cannot be used */
  readonly fault: string | null;
  /** jobs whose value is not above it do not run */
  readonly threshold: number | null;
  readonly fair_share: boolean;
  /** the entities with shares; null: shares do not matter */
  readonly entity: FairshareEntity | null;
  /** the usage of a run that counts for its entity */
  readonly usage: { readonly names: readonly string[]; readonly evaluate: Evaluate };
  readonly policy: Policy;
  /** errors of the formula that were logged */
  readonly told: Set<string>;
};

export type RankFormula = {
  readonly formula: Formula;
  readonly evaluate: Evaluate;
  /** its value changes by itself */
  readonly drifts: boolean;
  /** its value depends on the state of the job's clock */
  readonly clocked: boolean;
  readonly parts: Parts;
};

/** The parts of the formula's sum. */
export type Parts = {
  /** worth of the terms with properties of the job alone */
  readonly own: Evaluate;
  readonly own_names: readonly string[];
  /** factor of eligible_time */
  readonly slope: number;
  /** properties of the job that a term combines with other names */
  readonly mixed_names: readonly string[];
  /** one of those parts depends on eligible_time */
  readonly mixes_time: boolean;
};

/** The preemption level of a job at present: a job may preempt jobs of lower levels (preempt/preempt-level.ts). */
export type LevelOf = (job: SchedJob) => number;
