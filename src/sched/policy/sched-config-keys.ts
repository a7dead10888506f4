// The keys of sched_config (docs/reference/scheduler.md 12): the kind of value and the default of each, and the names of keys of
// former releases.

import { MODULES_DEFAULT } from "../modules/index.ts";

type Kind = "boolean" | "number" | "duration" | "text" | "list";
export type ConfigKey = {
  readonly name: string;
  readonly kind: Kind;
  /** true: the value may differ between prime and non-prime time */
  readonly prime?: true;
  /** the value in the shipped file; for a key that is not obeyed yet, this value causes no message */
  readonly default: string;
  /** for a key that is not obeyed yet: the effect that is missing */
  readonly later?: string;
  readonly help: string;
};

// biome-ignore format: one row per key
export const SCHED_CONFIG_KEYS: readonly ConfigKey[] = [
  { name: "round_robin", kind: "boolean", prime: true, default: "false", help: "queues of equal Priority take turns" },
  { name: "policy", kind: "text", prime: true, default: "", help: "a named policy: easy, sjbf or log" },
  { name: "by_queue", kind: "boolean", prime: true, default: "true", help: "all jobs of a queue before those of the next" },
  { name: "strict_ordering", kind: "boolean", prime: true, default: "false", help: "no job starts before one that stands before it" },
  { name: "backfill", kind: "boolean", prime: true, default: "true", help: "with strict_ordering: start what does not delay the first job" },
  { name: "backfill_prime", kind: "boolean", prime: true, default: "false", help: "keep jobs from crossing into prime or non-prime time" },
  { name: "prime_exempt_anytime_queues", kind: "boolean", default: "false", help: "backfill_prime leaves other queues alone" },
  { name: "prime_spill", kind: "duration", prime: true, default: "0", help: "how long a job may run on into the next prime or non-prime time" },
  { name: "primetime_prefix", kind: "text", default: "p_", help: "queues that run in prime time only" },
  { name: "nonprimetime_prefix", kind: "text", default: "np_", help: "queues that run in non-prime time only" },
  { name: "dedicated_prefix", kind: "text", default: "ded", help: "queues that run in dedicated time only" },
  { name: "job_sort_key", kind: "list", prime: true, default: "", help: "order of jobs: \"RESOURCE|job_priority HIGH|LOW\"; several lines: first key first" },
  { name: "node_sort_key", kind: "list", prime: true, default: "sort_priority HIGH", help: "order of vnodes: \"RESOURCE|sort_priority HIGH|LOW [total|assigned|unused]\"" },
  { name: "provision_policy", kind: "text", default: "aggressive_provision", later: "nothing is provisioned", help: "how vnodes are chosen for provisioning" },
  { name: "resources", kind: "text", default: "ncpus, mem, arch, host, vnode, aoe, eoe", help: "resources that are checked" },
  { name: "resource_unset_infinite", kind: "text", default: "", help: "resources of vnodes that are infinite where unset" },
  { name: "smp_cluster_dist", kind: "text", prime: true, default: "pack", help: "pack: fill hosts in order; round_robin: go around" },
  { name: "fair_share", kind: "boolean", prime: true, default: "false", help: "order jobs by what their entities have used" },
  { name: "unknown_shares", kind: "number", default: "0", help: "shares of entities that resource_group does not name" },
  { name: "fairshare_usage_res", kind: "text", default: "cput", help: "what counts as usage" },
  { name: "fairshare_entity", kind: "text", default: "euser", help: "who has shares" },
  { name: "fairshare_decay_time", kind: "duration", default: "24:00:00", help: "how often usage decays" },
  { name: "fairshare_decay_factor", kind: "number", default: "0.5", help: "what is left of usage" },
  { name: "fairshare_enforce_no_shares", kind: "boolean", default: "true", help: "entities without shares never run" },
  { name: "preemptive_sched", kind: "boolean", prime: true, default: "true", help: "jobs may make room for jobs of higher levels" },
  { name: "preempt_attempts", kind: "number", default: "", help: "how often preemption is tried in a cycle" },
  { name: "peer_queue", kind: "list", default: "", later: "no jobs are pulled", help: "queues of other servers from which jobs are pulled" },
  { name: "mom_resources", kind: "text", default: "", help: "resources of hosts that are as their moms say (mom_priv/config), whatever qmgr says" },
  { name: "server_dyn_res", kind: "list", default: "", help: "scripts that say what the server has" },
  { name: "max_job_check", kind: "text", default: "ALL_JOBS", help: "jobs looked at in a cycle" },
  { name: "update_comments", kind: "boolean", default: "true", help: "jobs are told why they wait" },
  { name: "resv_confirm_ignore", kind: "text", default: "none", help: "dedicated_time: reservations may lie in it; none: they may not" },
  { name: "allow_aoe_calendar", kind: "boolean", default: "false", help: "jobs with an aoe may be top jobs" },
  { name: "modules", kind: "text", default: MODULES_DEFAULT.join(", "), help: "the chain of modules" },
  { name: "module_alarm", kind: "duration", default: "30", help: "how long a call of a site's module may take; 0: without limit" },
  { name: "module_work_alarm", kind: "duration", default: "600", help: "how long a site's service module may work on a cycle; 0: without limit" },
];

/** Keys of former releases, and what to use instead, in the words of PBS. */
export const OBSOLETE: Readonly<Record<string, string>> = {
  log_filter: "log_events attribute of the scheduler",
  preempt_queue_prio: "preempt_queue_prio attribute of the scheduler",
  preempt_prio: "preempt_prio attribute of the scheduler",
  preempt_order: "preempt_order attribute of the scheduler",
  preempt_sort: "preempt_sort attribute of the scheduler",
  half_life: "fairshare_decay_time and fairshare_decay_factor",
  sort_queues: "",
  sort_by: "job_sort_key",
  key: "job_sort_key",
  strict_fifo: "strict_ordering",
  help_starving_jobs: "use eligible_time in job_sort_formula",
  max_starve: "use eligible_time in job_sort_formula",
  load_balancing: "",
  load_balancing_rr: "",
  cpus_per_ssinode: "",
  preempt_checkpoint: "preempt_order attribute of the scheduler",
  preempt_requeue: "preempt_order attribute of the scheduler",
  preempt_suspend: "preempt_order attribute of the scheduler",
  preempt_starving: "preempt_prio attribute of the scheduler",
  preempt_fairshare: "preempt_prio attribute of the scheduler",
  assign_ssinodes: "",
  sync_time: "",
};
