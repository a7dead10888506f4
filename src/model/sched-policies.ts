// The named policies of schedulers and the orders of backfilling, as words of attributes and of sched_config (docs/policy.md, docs/backfill.md).

/** The values of `policy`. */
export const SCHED_POLICIES = ["easy", "sjbf", "log"] as const;
export type SchedPolicyName = (typeof SCHED_POLICIES)[number];

/** The values of `backfill.order`: the order of the jobs behind the last top job. */
export const BACKFILL_ORDERS = ["queue", "shortest", "smallest_area", "expansion", "formula"] as const;
export type BackfillOrder = (typeof BACKFILL_ORDERS)[number];

/** The attributes of a scheduler that replace lines of its sched_config. Their names are those of the lines, with a dot. */
export const BACKFILL_ATTRS = ["backfill.order", "backfill.formula"] as const;
