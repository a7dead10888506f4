// Attributes of backend objects that say how an adapter (src/backends) reaches its cluster manager and translates requests. The table of backend objects
// appends these rows to the rows that every backend has. The help of each row names the types of backends that use the attribute.
//
// O1. `assumed` is the value with which an adapter works while the attribute is unset; src/backends reads it from here.

import type { AttributeRow, AttributeValue } from "../attribute.ts";

const ABSOLUTE = (path: string): boolean => path.startsWith("/") && !path.includes("\0");
/** Whether a text can be an argument of another program: it contains no blank and is not an option. */
const WORD = (text: string): boolean => /^[A-Za-z0-9_.@+:/=%,#[\]~^()|&!*<>-]{1,255}$/.test(text) && !text.startsWith("-");
const NAME = (text: string): boolean => /^[A-Za-z_][A-Za-z0-9_.]{0,62}$/.test(text);
const URL_TEXT = (text: string): boolean => /^https?:\/\/[^\s/@]+(\/\S*)?$/.test(text);
/** A date of Slurm's PriorityParameters: YYYY-MM-DD HH:MM with an optional offset. */
const DATE = (text: string): boolean => /^\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( ?[+-]\d\d:\d\d)?$/.test(text);

// biome-ignore format: one row per attribute
export const BACKEND_OPTION_ROWS: readonly AttributeRow[] = [
  ["bin",               "string",  "all", "root", "directory of the backend's programs; unset: looked for in the usual directories (gridengine: required)", { check: ABSOLUTE }],
  ["root",              "string",  "all", "root", "gridengine: SGE_ROOT (required); lsf: LSF_ENVDIR", { check: ABSOLUTE }],
  ["cell",              "string",  "all", "mgr",  "gridengine: SGE_CELL", { check: WORD }],
  ["cluster",           "string",  "all", "mgr",  "gridengine: SGE_CLUSTER_NAME; slurm: the cluster (-M); pbs: the server of the other complex (PBS_SERVER)", { check: WORD }],
  ["config",            "string",  "all", "root", "slurm: SLURM_CONF; pbs: PBS_CONF_FILE; gridengine, lsf: a file of NAME=VALUE lines for the environment", { check: ABSOLUTE }],
  ["url",               "string",  "all", "root", "openstack: the identity service, in place of OS_AUTH_URL", { check: URL_TEXT }],
  ["credentials",       "string",  "all", "root", "openstack: a file with mode 0600 and NAME=VALUE lines (OS_USERNAME=...)", { check: ABSOLUTE }],
  ["command_timeout",   "integer", "all", "mgr",  "seconds that a program or request of the backend may take", { assumed: 30, min: 1, max: 600 }],
  ["n_max_queued_jobs", "integer", "all", "mgr",  "runners of one bucket that wait in the backend at the same time", { assumed: 10, min: 1, max: 1000 }],
  ["repo_key",          "string",  "all", "mgr",  "a text before the names of runners in the backend", { assumed: "", check: (text) => /^[A-Za-z0-9_.:+-]{0,32}$/.test(text) }],
  ["token_dir",         "string",  "all", "root", "directory of the runners' tokens, on a file system that the runners' hosts share; unset: below the server's home", { check: ABSOLUTE }],
  ["output_dir",        "string",  "all", "mgr",  "directory for what runners print; unset: it is thrown away", { check: ABSOLUTE }],
  ["remote_queue",      "string",  "all", "mgr",  "where runners are submitted: slurm: partition; gridengine, lsf, pbs: queue", { check: WORD }],
  ["account",           "string",  "all", "mgr",  "slurm: account; gridengine, lsf: project; pbs: account string (-A)", { check: WORD }],
  ["backend_opts",      "string",  "all", "mgr",  "options for every runner, as in qsub -W backend_opts=; a job's own options come before them", { assumed: "" }],
  ["default_prio",      "integer", "all", "mgr",  "gridengine: the priority of runners if a job gives none", { min: -1023, max: 1024 }],
  ["cpu_resource",      "string",  "all", "mgr",  "gridengine: the resource that counts cpus; pbs: instead of ncpus", { check: NAME }],
  ["mem_resource",      "string",  "all", "mgr",  "gridengine: the resource that counts memory in MB; lsf: instead of mem; pbs: instead of mem", { check: NAME }],
  ["tmp_resource",      "string",  "all", "mgr",  "gridengine, pbs: the resource that counts temporary disk space in MB; lsf: instead of tmp", { check: NAME }],
  ["parallel_env",      "string",  "all", "mgr",  "gridengine: the parallel environment for runners with several cpus, if cpu_resource is unset", { check: WORD }],
  ["use_nice",          "boolean", "all", "mgr",  "slurm: the nice value of a runner says when it is wanted (ETA minus pressure)", { assumed: false }],
  ["time_origin",       "string",  "all", "mgr",  "slurm: the date at which the nice value is 0; unset: that of slurm.conf, otherwise 2023-01-01 00:00", { check: DATE }],
  ["nice_factor",       "float",   "all", "mgr",  "slurm: nice values for each second; unset: that of slurm.conf, otherwise 1", { min: 0 }],
  ["resources_available", "resource_list", "all", "mgr", "local: what runners may use together; ncpus and mem are those of the machine if unset"],
  ["image",             "string",  "all", "mgr",  "openstack: image of the servers, by name or id", { check: (text) => text.length <= 255 }],
  ["flavors",           "string",  "all", "mgr",  "openstack: a regular expression; only flavours whose whole name matches are used", { assumed: ".*", check: (text) => text.length <= 255 && isExpression(text) }],
  ["networks",          "string_array", "all", "mgr", "openstack: ids of networks; none: without network; unset: auto", { check: (text) => /^[A-Za-z0-9-]{1,64}$/.test(text) }],
  ["key_name",          "string",  "all", "mgr",  "openstack: key pair of the servers", { check: (text) => text.length <= 255 }],
  ["security_groups",   "string_array", "all", "mgr", "openstack: security groups of the servers", { check: (text) => text.length <= 255 }],
  ["max_spawns",        "integer", "all", "mgr",  "openstack: servers that are being built at the same time", { assumed: 10, min: 1, max: 1000 }],
  ["keep_alive",        "integer", "all", "mgr",  "openstack: seconds that a runner waits for another job before it leaves and its server is deleted", { assumed: 120, min: 0, max: 86_400 }],
];

/** The value that is assumed for an attribute that is unset (O1). */
export const assumedOption = (name: string): AttributeValue | undefined => BACKEND_OPTION_ROWS.find(([row]) => row === name)?.[5]?.assumed;

const EXPRESSION = /^(?:[A-Za-z0-9_ :.|-]|\\[.+*?()[\]{}|^$\\]|\[\^?[A-Za-z0-9_.:-]+\]|[*+?](?![*+?]))*$/;
const REPETITIONS_MAX = 4;

/** Whether a text is a regular expression that is matched quickly: no groups, no back references, few repetitions. */
function isExpression(text: string): boolean {
  return EXPRESSION.test(text) && !/^[*+?]|\|[*+?]/.test(text) && (text.match(/[*+?]/g) ?? []).length <= REPETITIONS_MAX;
}
