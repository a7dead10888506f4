// Makes the requests to a PBS complex for jobs of campaigns: the command lines of qsub and qstat, and the script of a batch. Pure.

import type { JobBatch } from "../contract/cluster.ts";
import { BackendError } from "../contract/fault.ts";
import { jobScript } from "../contract/job-script.ts";

/** Jobs that may be killed for the jobs of others have the lowest priority. */
const BEST_EFFORT_PRIORITY = "-1024";

/** Returns the words after `qsub`. The jobs are held until the grid has recorded them. PBS has no array of one job, and arrays must be rerunnable there. */
export function batchArgs(batch: JobBatch, queue: string | null): readonly string[] {
  const { tag, jobs, resources, walltime_s, project } = batch;
  if (resources.kind !== "select") throw new BackendError({ kind: "impossible", text: "PBS takes resources as select only" });
  return [
    ...["-h", "-N", tag, "-S", "/bin/sh", "-m", "n"],
    ...(jobs.length === 1 ? ["-r", "n"] : ["-J", `0-${jobs.length - 1}`]),
    ...["-j", "oe", "-R", "oe"],
    ...["-l", `select=${word(resources.select)}`, "-l", `walltime=${Math.max(1, Math.ceil(walltime_s))}`],
    ...(resources.place === null ? [] : ["-l", `place=${word(resources.place)}`]),
    ...(queue === null ? [] : ["-q", word(queue)]),
    ...(project === null ? [] : ["-P", word(project)]),
    ...(batch.best_effort ? ["-p", BEST_EFFORT_PRIORITY] : []),
  ];
}

function word(text: string): string {
  if (/^[^\p{Cc}\s-][^\p{Cc}\s]{0,4095}$/u.test(text)) return text;
  throw new BackendError({ kind: "impossible", text: `${JSON.stringify(text.slice(0, 100))} cannot be a word of qsub` });
}

export const batchScript = ({ jobs }: JobBatch): string =>
  jobScript({ jobs, index: jobs.length === 1 ? "0" : "PBS_ARRAY_INDEX", node_file: ['CIGRI_NODE_FILE="$PBS_NODEFILE"'] });

/** Returns the words after `qstat` for jobs that the list of live jobs does not have any more. */
export const outcomeArgs = (ids: readonly string[]): readonly string[] => ["-x", "-f", "-F", "json", ...ids];
