// A site's decisions about scheduling, in the form that cycles use: sched_config with all defaults filled in, once for prime and once for non-prime time,
// with holidays and dedicated time (docs/reference/scheduler.md 11 and 12). Made by policy/sched-config.ts; frozen.

import type { DecayRule, FairshareEntity } from "#model/fairshare.ts";
import type { BackfillOrder, SchedPolicyName } from "#model/sched-policies.ts";

/** A sort key such as `"ncpus HIGH"`. high: large values come first. */
export type JobSortKey = { readonly key: string; readonly high: boolean };
/** A sort key such as `"mem HIGH unused"`. total: the whole amount of the vnode. */
export type NodeSortKey = { readonly key: string; readonly high: boolean; readonly amount: "total" | "assigned" | "unused" };

/** The values of `backfill.matcher`, which decides which host is chosen (place/matcher.ts). */
export const MATCHER_NAMES = ["first_fit", "best_fit"] as const;
export type MatcherName = (typeof MATCHER_NAMES)[number];

/** The settings for prime time, or for non-prime time. */
export type Policy = {
  readonly round_robin: boolean;
  readonly by_queue: boolean;
  readonly strict_ordering: boolean;
  readonly backfill: boolean;
  /** jobs must not run from prime into non-prime time, nor back, for more than prime_spill_s */
  readonly backfill_prime: boolean;
  readonly prime_spill_s: number;
  /** backfill_prime does not apply to queues that are neither prime-time nor non-prime-time queues */
  readonly prime_exempt_anytime_queues: boolean;
  /** jobs that request an aoe may become top jobs */
  readonly allow_aoe_calendar: boolean;
  readonly job_sort_key: readonly JobSortKey[];
  /** the named policy; null: none. policy/named-policy.ts turns it into the other settings */
  readonly named: SchedPolicyName | null;
  /** the order of jobs that a named policy sets in place of job_sort_formula and job_sort_key; null: none */
  readonly job_order: "arrival" | "log" | null;
  /** `backfill.order`: the order of the jobs behind the last top job; null: not given, which means the order of the named policy, or `queue` */
  readonly backfill_order: BackfillOrder | null;
  /** `backfill.formula`: the text of the formula for the order `formula` */
  readonly backfill_formula: string;
  readonly fair_share: boolean;
  readonly fairshare_entity: FairshareEntity;
  /** the usage that counts: the text of a formula over resources_used */
  readonly fairshare_usage_res: string;
  readonly fairshare_decay: DecayRule;
  /** entities without shares never run */
  readonly fairshare_enforce_no_shares: boolean;
  readonly node_sort_key: readonly NodeSortKey[];
  readonly smp_cluster_dist: "pack" | "round_robin";
  /** decides which host gets a chunk among those that node_sort_key does not distinguish (`backfill.matcher`) */
  readonly matcher: MatcherName;
  /** names of the resources that are checked at vnodes, queues and server; host, vnode and booleans are always checked */
  readonly resources: ReadonlySet<string>;
  /** names of vnode resources that count as infinite when they are unset */
  readonly resource_unset_infinite: ReadonlySet<string>;
  /** names of resources of hosts whose values come from the moms */
  readonly mom_resources: ReadonlySet<string>;
  readonly primetime_prefix: string;
  readonly nonprimetime_prefix: string;
  readonly dedicated_prefix: string;
  /** dedicated_time: reservations may be in dedicated time */
  readonly resv_confirm_ignore: "dedicated_time" | "none";
  readonly update_comments: boolean;
  /** number of jobs that are tried in one cycle; null: all */
  readonly max_job_check: number | null;
  /** jobs may preempt jobs of lower levels */
  readonly preemptive_sched: boolean;
  /** for how many jobs preemption is tried in one cycle; null: for every job */
  readonly preempt_attempts: number | null;
};

/** The policy of an empty sched_config. */
export const POLICY_DEFAULT: Policy = Object.freeze({
  round_robin: false,
  by_queue: true,
  strict_ordering: false,
  backfill: true,
  backfill_prime: false,
  prime_spill_s: 0,
  prime_exempt_anytime_queues: false,
  allow_aoe_calendar: false,
  job_sort_key: [],
  named: null,
  job_order: null,
  backfill_order: null,
  backfill_formula: "",
  fair_share: false,
  fairshare_entity: "euser",
  fairshare_usage_res: "cput",
  fairshare_decay: { time_s: 24 * 3600, factor: 0.5 },
  fairshare_enforce_no_shares: true,
  node_sort_key: [{ key: "sort_priority", high: true, amount: "total" }],
  smp_cluster_dist: "pack",
  matcher: "first_fit",
  resources: new Set(["ncpus", "mem", "arch", "host", "vnode", "aoe", "eoe"]),
  resource_unset_infinite: new Set<string>(),
  mom_resources: new Set<string>(),
  primetime_prefix: "p_",
  nonprimetime_prefix: "np_",
  dedicated_prefix: "ded",
  resv_confirm_ignore: "none",
  update_comments: true,
  max_job_check: null,
  preemptive_sched: true,
  preempt_attempts: null,
} satisfies Policy);
