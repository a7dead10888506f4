// Makes the requests for jobs of campaigns to Slurm: the command lines of sbatch, squeue, sinfo, and the script of a batch. Pure.
//
// S1. Every value follows its option in the same word (--name=value), so that no value can become an option.

import { equalChunks } from "../contract/chunks.ts";
import type { JobBatch } from "../contract/cluster.ts";
import { BackendError } from "../contract/fault.ts";
import { jobScript } from "../contract/job-script.ts";

/** A job of a best-effort campaign gives way to all others by a low priority. */
const BEST_EFFORT_NICE = 100_000;

/** Returns the words after `sbatch`. The jobs are held until the grid has recorded them. */
export function batchArgs(batch: JobBatch, partition: string | null, account: string | null): readonly string[] {
  const { tag, jobs, walltime_s } = batch;
  const chunks = equalChunks(batch.resources, "Slurm");
  const queue = batch.queue ?? partition;
  const project = batch.project ?? account;
  return [
    ...["--parsable", "--hold", "--no-requeue", `--job-name=${tag}`, `--array=0-${jobs.length - 1}`, "--chdir=/", "--output=/dev/null"],
    `--time=${Math.max(1, Math.ceil(walltime_s / 60))}`,
    `--ntasks=${chunks.count}`,
    `--cpus-per-task=${chunks.ncpus}`,
    ...(chunks.mem_kb === null ? [] : [`--mem-per-cpu=${Math.ceil(chunks.mem_kb / chunks.ncpus)}K`]),
    ...(chunks.arrangement === "spread" ? [`--nodes=${chunks.count}`, "--ntasks-per-node=1"] : []),
    ...(chunks.arrangement === "pack" ? ["--nodes=1"] : []),
    ...(chunks.isExclusive ? ["--exclusive"] : []),
    ...Object.entries(chunks.others).map(([name, text]) => resource(name, text)),
    ...(queue === null ? [] : [`--partition=${word(queue)}`]),
    ...(project === null ? [] : [`--account=${word(project)}`]),
    ...(batch.best_effort ? [`--nice=${BEST_EFFORT_NICE}`] : []),
  ];
}

const resource = (name: string, text: string): string =>
  name === "ngpus" ? `--gres=gpu:${word(text)}` : name === "features" ? `--constraint=${word(text)}` : `--gres=${word(name)}:${word(text)}`;

function word(text: string): string {
  if (/^[^\p{Cc}\s]{1,255}$/u.test(text)) return text;
  throw new BackendError({ kind: "impossible", text: `${JSON.stringify(text.slice(0, 100))} cannot be a value of sbatch` });
}

/** Slurm names the hosts of a job in a short form; scontrol writes one in each line. */
const NODE_FILE = [
  'CIGRI_NODE_FILE="$(mktemp -p "${SLURM_TMPDIR:-${TMPDIR:-/tmp}}" cigri_nodes.XXXXXXXX)"',
  'scontrol show hostnames "$SLURM_JOB_NODELIST" >"$CIGRI_NODE_FILE" 2>/dev/null || hostname >"$CIGRI_NODE_FILE"',
];

export const batchScript = ({ jobs }: JobBatch): string => jobScript({ jobs, index: "SLURM_ARRAY_TASK_ID", node_file: NODE_FILE });

/**
 * Returns the words after `squeue` that ask how jobs of the grid ended. The columns have fixed widths. The jobs are named by their ids, so that no other job is shown: a user
 * could give a job a name that looks like a line.
 */
export const endArgs = (ids: readonly string[]): readonly string[] => [
  "--noheader",
  "--array",
  "--states=all",
  `--jobs=${ids.join(",")}`,
  `--Format=ArrayJobID:${WIDTH},ArrayTaskID:${WIDTH},State:${WIDTH},exit_code:${WIDTH},TimeUsed:${WIDTH}`,
];
/** The width of a column of endArgs. */
export const WIDTH = 24;

/** Returns the words after `sinfo`: cpus in use, idle, otherwise, and in total. */
export const sinfoArgs = (partition: string | null): readonly string[] => [
  "--noheader",
  "--format=%C",
  ...(partition === null ? [] : [`--partition=${partition}`]),
];
