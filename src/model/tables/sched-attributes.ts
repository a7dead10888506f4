// Attributes of schedulers (docs/reference/attributes.md 3; docs/reference/differences.md: `partition` is a list, and
// `partitions` is an alias).
//
// I1. The scheduler `default` always exists. Its partition is pbs-default and cannot be set.

import { type AttributeRow, type AttributeValue, attributeTable, defaultAttributes } from "../attribute.ts";
import { isAbsolutePath } from "../attribute-checks.ts";
import { BACKFILL_ORDERS, SCHED_POLICIES } from "../sched-policies.ts";

export const DEFAULT_SCHED = "default";
export const DEFAULT_PARTITION = "pbs-default";

const PREEMPT_LEVELS = new Set(["express_queue", "normal_jobs", "fairshare", "queue_softlimits", "server_softlimits"]);

/** Checks preempt_prio: levels from high to low, separated by commas. Levels that are joined by + are one combined level. */
function isPreemptPrio(text: string): boolean {
  const levels = text.split(",").flatMap((level) => level.split("+").map((word) => word.trim()));
  return levels.every((word) => PREEMPT_LEVELS.has(word));
}

/** Checks preempt_order: letters of S C R D, each once, then pairs of a percentage and letters, with falling percentages: `SCR 80 SC 50 S`. */
function isPreemptOrder(text: string): boolean {
  const words = text.trim().split(/[ \t]+/);
  let percent = 100;
  for (const [at, word] of words.entries()) {
    if (at % 2 === 0) {
      if (!/^[SCRD]{1,4}$/.test(word) || new Set(word).size !== word.length) return false;
    } else {
      if (!/^[0-9]{1,3}$/.test(word) || Number(word) >= percent) return false;
      percent = Number(word);
    }
  }
  return words.length % 2 === 1;
}

/** Checks for one of off, low, medium, high, or a number of seconds. */
function isFuzzy(text: string): boolean {
  return /^(off|low|medium|med|high|[0-9]{1,9})$/i.test(text);
}

// biome-ignore format: one row per attribute
const ROWS: readonly AttributeRow[] = [
  ["sched_host", "string", "all", "mgr", "host the scheduler runs on"],
  ["sched_port", "integer", "all", "mgr", "port of a scheduler on another host; a local one needs none", { min: 1, max: 65535 }],
  ["sched_cycle_length", "duration", "all", "op", "longest time a cycle may take", { default: 1200, restored: true }],
  ["do_not_span_psets", "boolean", "all", "op", "whether a job that fits in no placement set waits", { assumed: false }],
  ["only_explicit_psets", "boolean", "all", "op", "whether vnodes without a value form no placement set", { assumed: false }],
  ["sched_preempt_enforce_resumption", "boolean", "all", "mgr", "whether preempted jobs become top jobs", { assumed: false }],
  ["preempt_targets_enable", "boolean", "all", "mgr", "whether the resource preempt_targets of jobs is honoured", { assumed: true }],
  ["job_sort_formula_threshold", "float", "op", "mgr", "jobs whose formula yields no more than this do not run"],
  ["throughput_mode", "boolean", "all", "mgr", "old form of job_run_wait: True is runjob_hook, False is execjob_hook", { default: true, restored: true }],
  ["job_run_wait", "keyword", "all", "mgr", "how long a cycle waits for a job it started: none, runjob_hook, execjob_hook", { default: "runjob_hook", restored: true, keywords: ["none", "runjob_hook", "execjob_hook"] }],
  ["opt_backfill_fuzzy", "string", "all", "mgr", "how coarsely backfill looks at time: off, low, medium, high or seconds", { assumed: "low", check: isFuzzy }],
  ["partition", "string_array", "all", "mgr", "partitions the scheduler serves; a partition belongs to one scheduler", { unique: true, alias: "partitions", check: isPartitionName }],
  ["sched_priv", "string", "all", "root", "directory of the scheduler's configuration; set by root on the server host", { restatable: true, check: isAbsolutePath }],
  ["sched_log", "string", "all", "root", "directory of the scheduler's logs; set by root on the server host", { restatable: true, check: isAbsolutePath }],
  ["scheduling", "boolean", "all", "mgr", "whether the scheduler runs cycles; True starts it", { default: false, restored: true }],
  ["scheduler_iteration", "integer", "all", "mgr", "seconds between timed cycles", { default: 600, restored: true, min: 0 }],
  ["sched_user", "string", "all", "root", "user the scheduler runs as in system mode; unset: root; set by root on the server host", { restatable: true }],
  ["comment", "string", "all", "mgr", "free text; the server writes here when the scheduler needs attention", { characters: "lines" }],
  ["state", "keyword", "all", "pbs", "down, idle or scheduling", { default: "down", keywords: ["down", "idle", "scheduling"] }],
  ["preempt_queue_prio", "integer", "all", "mgr", "jobs of queues with at least this Priority are express jobs", { default: 150, restored: true }],
  ["preempt_prio", "string", "all", "mgr", "preemption levels from high to low", { default: "express_queue, normal_jobs", restored: true, check: isPreemptPrio }],
  ["preempt_order", "string", "all", "mgr", "methods tried in order: S suspend, C checkpoint, R requeue, D delete", { default: "SCR", restored: true, check: isPreemptOrder }],
  ["preempt_sort", "keyword", "all", "mgr", "which victims come first", { default: "min_time_since_start", restored: true, keywords: ["min_time_since_start"] }],
  ["log_events", "integer", "all", "op", "mask of what the scheduler logs", { default: 767, restored: true }],
  ["job_sort_formula", "formula", "all", "mgr", "formula for the order of jobs in this scheduler", { characters: "lines" }],
  ["server_dyn_res_alarm", "integer", "all", "mgr", "seconds that a program for a dynamic resource may run; 0: without limit", { default: 30, restored: true, min: 0 }],
  ["attr_update_period", "integer", "all", "mgr", "seconds between updates of jobs that cannot run", { assumed: 0, min: 0 }],
  ["policy", "keyword", "all", "mgr", "named policy for the order of jobs and for backfilling; wins over sched_config", { keywords: SCHED_POLICIES }],
  ["backfill.order", "keyword", "all", "mgr", "order in which the jobs behind the last top job are tried; wins over sched_config", { keywords: BACKFILL_ORDERS }],
  ["backfill.formula", "formula", "all", "mgr", "formula for backfill.order=formula; wins over sched_config", { characters: "lines" }],
];

export const SCHED_ATTRIBUTES = attributeTable("sched", ROWS);

/** Whether a text can be the name of a partition. The rules are those of queue names, but the name may be longer. */
export function isPartitionName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,78}$/.test(text);
}

/** The default directories: sched_priv and sched_logs for the default scheduler, with the suffix `_NAME` for others. */
export function schedDirectories(name: string, home: string): { readonly sched_priv: string; readonly sched_log: string } {
  const suffix = name === DEFAULT_SCHED ? "" : `_${name}`;
  return { sched_priv: `${home}/sched_priv${suffix}`, sched_log: `${home}/sched_logs${suffix}` };
}

/** The attributes of a new scheduler. The default scheduler also has host, partition and scheduling. */
export function freshSched(name: string, home: string, server_host: string): { [name: string]: AttributeValue } {
  const attrs = { ...defaultAttributes(SCHED_ATTRIBUTES), ...schedDirectories(name, home) };
  if (name !== DEFAULT_SCHED) return attrs;
  return { ...attrs, sched_host: server_host, partition: [DEFAULT_PARTITION], scheduling: true };
}
