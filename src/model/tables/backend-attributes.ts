// Attributes of backends: systems that start runners, on which the jobs of a partition run (docs/runners.md). The objects are Partita's own; PBS has none.
//
// I1. Only the server sets state, state_count, last_error and last_error_time. While the backend is enabled, state and last_error say what its adapter last
//     reported.

import { type AttributeRow, attributeTable } from "../attribute.ts";
import { BACKEND_OPTION_ROWS } from "./backend-options.ts";
import { isPartitionName } from "./sched-attributes.ts";

const BACKEND_TYPES = ["local", "slurm", "gridengine", "lsf", "openstack", "pbs"] as const;

/** Default of max_runners, the largest number of runners. Runners that wait to be started are counted as well. */
const MAX_RUNNERS_DEFAULT = 100;
/** Defaults of runner_idle_wait, runner_resync_interval, runner_walltime and runner_lost_after, in seconds. The rows below say what they mean. */
const IDLE_WAIT_S_DEFAULT = 2;
const RESYNC_S_DEFAULT = 60;
const WALLTIME_S_DEFAULT = 3600;
const LOST_AFTER_S_DEFAULT = 60;
const RETRY_WAIT_S_DEFAULT = 30;

// biome-ignore format: one row per attribute
const ROWS: readonly AttributeRow[] = [
  ["type", "keyword", "all", "mgr", "what starts the runners: local, slurm, gridengine, lsf, openstack or pbs", { keywords: BACKEND_TYPES }],
  ["enabled", "boolean", "all", "mgr", "whether runners are started; False: runners leave when their jobs have ended", { default: false, restored: true }],
  ["partition", "string", "all", "mgr", "partition to which the runners belong; unset: that of the default scheduler", { check: isPartitionName }],
  ["max_runners", "integer", "all", "mgr", "largest number of runners, waiting ones included", { default: MAX_RUNNERS_DEFAULT, restored: true, min: 0 }],
  ["runner_idle_wait", "duration", "all", "mgr", "how long a runner without a job waits for another one before it leaves", { default: IDLE_WAIT_S_DEFAULT, restored: true, min: 0 }],
  ["runner_walltime", "duration", "all", "mgr", "how long a runner lives at least; longer if the jobs of its bucket need more", { default: WALLTIME_S_DEFAULT, restored: true, min: 60 }],
  ["default_walltime", "duration", "all", "mgr", "walltime of jobs in queues of the partition that request none and get none from queue or server", { min: 60 }],
  ["runner_resync_interval", "duration", "all", "mgr", "how often the number of runners is computed again although nothing has changed", { default: RESYNC_S_DEFAULT, restored: true, min: 1 }],
  ["runner_lost_after", "duration", "all", "mgr", "a runner that is not connected for so long counts as lost", { default: LOST_AFTER_S_DEFAULT, restored: true, min: 1 }],
  ["fallback", "keyword", "all", "mgr", "where jobs go while the backend cannot be used: local, or hold (they wait)", { default: "local", restored: true, keywords: ["local", "hold"] }],
  ["retries", "integer", "all", "mgr", "how often a job that fails is run again, unless it says so itself (-W retries)", { default: 0, restored: true, min: 0, max: 100 }],
  ["retry_wait", "duration", "all", "mgr", "pause before the first retry of a job; it doubles with each failure, up to half an hour, and a random part is added", { default: RETRY_WAIT_S_DEFAULT, restored: true, min: 1 }],
  ["override", "keyword", "all", "mgr", "how amounts learned from earlier jobs count for jobs without override: no, higher or always; unset: requests stay as they are", { keywords: ["no", "higher", "always"] }],
  ["backend_opts_allowed", "string_array", "all", "mgr", "long names of the options that jobs may give (-W backend_opts); none: no options; unset: all of the type", { check: (text) => /^[A-Za-z][A-Za-z-]{0,62}$/.test(text) }],
  ["comment", "string", "all", "mgr", "free text", { characters: "lines" }],
  ["state", "keyword", "all", "pbs", "disabled, starting, ready or failing", { keywords: ["disabled", "starting", "ready", "failing"] }],
  ["state_count", "string", "all", "pbs", "numbers of runners: Asked (waiting to be started), Idle, Busy, Lost"],
  ["last_error", "string", "all", "pbs", "what the backend said when it failed last, in its own words", { characters: "lines" }],
  ["last_error_time", "time", "all", "pbs", "when the backend failed last"],
];

export const BACKEND_ATTRIBUTES = attributeTable("backend", [...ROWS, ...BACKEND_OPTION_ROWS]);
