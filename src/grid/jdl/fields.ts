// The keys of a campaign file (JDL). The keys have the names of CiGri; keys that CiGri does not have are marked as ours. Pure.

import type { Fields, Shape } from "./shape.ts";

/** A text on one line: no control characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const LINE: Shape = { kind: "text", pattern: /^[^\u0000-\u001f\u007f]{1,4096}$/, says: "a text of one line" };
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const PATH: Shape = { kind: "text", pattern: /^[^\u0000-\u001f\u007f]{1,4095}$/, says: "a path" };
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const COMMAND: Shape = { kind: "text", pattern: /^[^\u0000]{1,65536}$/, says: "a command line" };
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
const PARAMETER_LINE = /^[^\u0000\n\r]*[^\s\u0000][^\u0000\n\r]*$/;
const PARAMETER: Shape = { kind: "text", pattern: PARAMETER_LINE, says: "a parameter on one line that is not empty" };
const WORD: Shape = { kind: "text", pattern: /^[A-Za-z0-9_.@/:=+-]{1,255}$/, says: "a word" };
const COMMANDS: Shape = { kind: "list", of: COMMAND, min: 0 };
const DURATION: Shape = { kind: "duration" };
const FLAG: Shape = { kind: "flag" };
const only = (...values: readonly string[]): Shape => ({ kind: "choice", values });

const NO_STAGING = "campaigns do not copy files; name the files of each job in inputs, or copy files in a prologue";
const NO_DEPENDENCIES = "jobs of a campaign do not depend on other jobs; submit a second campaign when the first has ended";
/** Keys that are refused with a reason, because people look for them. */
const REFUSED: Readonly<Record<string, string>> = Object.fromEntries([
  ...["depend", "depends", "depends_on", "dependencies", "after", "workflow"].map((key) => [key, NO_DEPENDENCIES]),
  ...["stage_in", "stage_out", "stagein", "stageout", "staging", "output_destination"].map((key) => [key, NO_STAGING]),
]);

export const CHECKPOINTING_FIELDS: Fields = {
  signal: {
    shape: { kind: "text", pattern: /^SIG[A-Z0-9]{2,10}$/, says: "a signal such as SIGUSR2" },
    about: "The signal that tells a job to write a checkpoint. Default: SIGUSR2.",
  },
  period: { shape: DURATION, about: "The time between two signals." },
  cost: {
    shape: DURATION,
    about: "How long a job takes to write a checkpoint. With mtbf, the time between two signals is the square root of 2 * cost * mtbf.",
  },
  mtbf: { shape: DURATION, about: "The mean time between failures or kills of a job." },
  data: {
    shape: only("cluster", "everywhere"),
    about: "Where a checkpoint can be read: on the cluster that wrote it, or on all clusters. Default: cluster.",
  },
};

/** Keys of the section of a cluster. At the top of the file they are defaults for all clusters. */
export const CLUSTER_FIELDS: Fields = {
  exec_file: {
    shape: COMMAND,
    about: "The command line of a job. Its words are separated by the quoting rules of a shell; the words of the parameter follow.",
  },
  exec_directory: {
    shape: PATH,
    about: "The directory in which jobs start. ~ and {HOME} are the home directory, {CAMPAIGN_ID} the campaign. Default: {HOME}.",
  },
  type: { shape: only("best-effort", "normal"), about: "best-effort: jobs of local users may end the jobs. Default: best-effort." },
  walltime: { shape: DURATION, about: "The requested time of a job. Default: 01:00:00." },
  resources: {
    shape: LINE,
    about: "A PBS select (2:ncpus=4) or a hierarchy of OAR (/nodes=2/core=4). Default: that of the cluster, otherwise one cpu.",
  },
  select: { shape: LINE, about: "Ours: another name of resources." },
  place: { shape: LINE, about: "Ours: the PBS place of a select." },
  properties: {
    shape: LINE,
    about: "A condition on the properties of resources, as oarsub -p. On other clusters only name='value' joined by \"and\".",
  },
  project: { shape: WORD, about: "The project that the jobs belong to." },
  queue: { shape: WORD, about: "Ours: the queue of the cluster. Default: that of the cluster." },
  cluster_job_type: { shape: WORD, about: "A type of job of OAR, as oarsub -t." },
  prologue: { shape: COMMANDS, about: "Command lines that run once on the cluster, before any job." },
  epilogue: { shape: COMMANDS, about: "Command lines that run once on the cluster, after all jobs." },
  prologue_walltime: { shape: DURATION, about: "The requested time of the prologue. Default: that of a job." },
  epilogue_walltime: { shape: DURATION, about: "The requested time of the epilogue. Default: that of a job." },
  max_jobs: { shape: { kind: "integer", min: 1, max: 10_000_000 }, about: "Most jobs of the campaign on the cluster at a time." },
  checkpointing_type: { shape: only("None"), about: "Only None; the key checkpointing has the options." },
  checkpointing: {
    shape: { kind: "record", fields: CHECKPOINTING_FIELDS },
    about: "Ours: jobs are told by a signal when to write a checkpoint, and restart first.",
  },
  test_mode: { shape: FLAG, about: "true: the campaign is of type test." },
  output_gathering_method: { shape: only("None"), about: "Only None: campaigns do not copy files." },
  output_file: { shape: PATH, about: "Accepted and stored, as in CiGri; nothing follows from it." },
  dimensional_grouping: { shape: FLAG, about: "Accepted; jobs are not grouped." },
  temporal_grouping: { shape: FLAG, about: "Accepted; jobs are not grouped." },
};

export const DUPLICATION_FIELDS: Fields = {
  at_end: { shape: FLAG, about: "Second copies of the last jobs start when no task is left and resources are free. Default: true." },
  late_factor: {
    shape: { kind: "number", min: 1, max: 1000 },
    about: "A job that runs longer than this multiple of the median is copied. Default: 3.",
  },
  copies_max: { shape: { kind: "integer", min: 1, max: 2 }, about: "Most jobs of a task at a time. 1: no copies. Default: 2." },
};

export const INPUT_FIELDS: Fields = {
  file: {
    shape: PATH,
    isRequired: true,
    about: "The file, by its absolute path or below the home directory. {1}, {2}, ... are words of the job's parameter.",
  },
  to: { shape: PATH, about: "Its name below exec_directory. Default: the last part of file." },
  bytes: {
    shape: { kind: "integer", min: 0, max: 1e15 },
    about: "Its size, from which the time of the copy is estimated. Default: the size is asked for.",
  },
};

export const ERROR_BUDGET_FIELDS: Fields = {
  count: {
    shape: { kind: "integer", min: 1, max: 1_000_000 },
    about: "Failed jobs on a cluster after which the campaign pauses there. Default: 5.",
  },
  percent: {
    shape: { kind: "number", min: 0, max: 100 },
    about: "It pauses only if these are also more than this share of its ended jobs there. Default: 0.",
  },
};

/** Keys at the top of the file. */
export const TOP_FIELDS: Fields = {
  name: { shape: LINE, isRequired: true, about: "The name of the campaign." },
  clusters: {
    shape: { kind: "map", of: { kind: "record", fields: CLUSTER_FIELDS, refused: REFUSED }, min: 1 },
    isRequired: true,
    about: "The clusters on which jobs may run, with what differs there.",
  },
  param_file: { shape: PATH, about: "A file with one parameter in each line. gridsub reads it." },
  params: {
    shape: {
      kind: "list",
      of: PARAMETER,
      min: 1,
    },
    about: "The parameters.",
  },
  nb_jobs: { shape: { kind: "integer", min: 1, max: 100_000_000 }, about: "The number of jobs. Their parameters are 0, 1, 2, ..." },
  jobs_type: { shape: only("normal"), about: "Only normal; desktop_computing is not there." },
  campaign_type: {
    shape: only("default", "test"),
    about: "Ours: test: one job on each cluster, before all other campaigns. gridsub -t has precedence.",
  },
  duplication: {
    shape: { kind: "record", fields: DUPLICATION_FIELDS },
    about: "Ours: when a second copy of a job starts. Without this key no job is copied.",
  },
  canary: { shape: FLAG, about: "Ours: on each cluster one job runs first, then ten, then all. Default: true." },
  error_budget: { shape: { kind: "record", fields: ERROR_BUDGET_FIELDS }, about: "Ours: how many failures pause a campaign on a cluster." },
  resubmissions_max: {
    shape: { kind: "integer", min: 0, max: 1_000_000 },
    about:
      "Ours: how often a task runs again on its own after kills, walltime, and exit codes 66 and 67. Default: that of the grid, usually 20.",
  },
  inputs: {
    shape: { kind: "list", of: { kind: "record", fields: INPUT_FIELDS }, min: 0 },
    about: "Ours: files that each job needs, copied to its cluster before it starts.",
  },
};

export const JDL_SHAPE: Shape = { kind: "record", fields: { ...CLUSTER_FIELDS, ...TOP_FIELDS }, refused: REFUSED };
