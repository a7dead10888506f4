// Makes the requests to Slurm: the command lines of sbatch, squeue, scancel and scontrol. Pure.
//
// S1. Every value follows its option in the same word (--name=value), so that no value can become an option.

import type { RunnerOrder, RunnerRequest, Wish } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";
import { runnerScript } from "../contract/script.ts";
import type { SlurmOptions } from "./options.ts";

/** What Slurm's own configuration says. */
export type SlurmFacts = {
  /** names of the licences that Slurm counts */
  readonly licenses: ReadonlySet<string>;
  readonly scale: { readonly origin_s: number; readonly factor: number };
};

/** The largest nice value that sbatch takes. */
const NICE_MAX = 2_147_483_645;

/** Returns the nice value for a start: later starts have higher values, and so a lower priority. It wraps like open-lmake's. */
export function niceOf(start_s: number, { origin_s, factor }: SlurmFacts["scale"]): number {
  const value = Math.trunc((start_s - origin_s) * factor);
  return Math.min(((value % 2 ** 31) + 2 ** 31) % 2 ** 31, NICE_MAX);
}

/** Resources with an option of their own in sbatch: the name of the resource, and the option. */
const NAMED: Readonly<Record<string, string>> = {
  excludes: "exclude",
  features: "constraint",
  gres: "gres",
  licence: "licenses",
  license: "licenses",
  nodes: "nodelist",
  partition: "partition",
  qos: "qos",
  reserv: "reservation",
  wckey: "wckey",
};
/** Options for which the value of the request is added to the backend's value. For any other option the value of the request replaces the backend's value. The job's own options replace both. */
const JOINED = new Set(["gres", "licenses"]);

/** Returns the words after `sbatch`. */
export function sbatchArgs(order: RunnerOrder, options: SlurmOptions, facts: SlurmFacts): readonly string[] {
  const { request, wish, count, tag } = order;
  const fixed = [
    "--parsable",
    `--job-name=${options.name_prefix}${tag}`,
    `--array=0-${count - 1}`,
    "--chdir=/",
    `--output=${options.output_dir === null ? "/dev/null" : `${options.output_dir}/${tag}.%a.out`}`,
    "--no-requeue",
    "--nodes=1",
    "--ntasks=1",
    `--time=${Math.max(1, Math.ceil(request.walltime_s / 60))}`,
    ...(options.cluster === null ? [] : [`--clusters=${options.cluster}`]),
    ...(options.use_nice && wish.start_s !== null ? [`--nice=${niceOf(wish.start_s, facts.scale)}`] : []),
  ];
  return [...fixed, ...[...optionsOf(request, options, facts)].map(([name, value]) => `--${name}=${value}`)];
}

/** Returns the options of sbatch from the request, the job's own options (which replace the options of the request and of the backend) and the options of the backend. */
function optionsOf(request: RunnerRequest, options: SlurmOptions, facts: SlurmFacts): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const add = (name: string, value: string): void => {
    const before = found.get(name);
    found.set(name, JOINED.has(name) && before !== undefined ? `${before},${value}` : value);
  };
  if (options.partition !== null) add("partition", options.partition);
  if (options.account !== null) add("account", options.account);
  for (const [name, value] of Object.entries(options.options)) add(name, value);
  add("cpus-per-task", String(request.ncpus));
  if (request.mem_kb !== null) add("mem", `${request.mem_kb}K`);
  if (request.tmp_kb !== null) add("tmp", `${request.tmp_kb}K`);
  for (const [name, value] of Object.entries(request.resources)) add(...resourceOption(name, value, facts));
  for (const [name, value] of Object.entries(request.options)) found.set(name, value);
  return found;
}

function resourceOption(given: string, value: number | string, { licenses }: SlurmFacts): [name: string, value: string] {
  const [, name = given, index] = /^([a-z]+?)([0-9]+)$/.exec(given) ?? [];
  const option = NAMED[name];
  if (option !== undefined && index !== undefined && Number(index) > 0)
    throw new BackendError({ kind: "impossible", text: `resource ${given}: a runner is one task on one host, so only index 0 exists` });
  const text = wordOf(given, value);
  if (option !== undefined) return [option, text];
  if (given === "ngpus") return ["gres", `gpu:${text}`];
  return licenses.has(given) ? ["licenses", `${given}:${text}`] : ["gres", `${given}:${text}`];
}

function wordOf(name: string, value: number | string): string {
  const text = String(value);
  if (/^[^\p{Cc}]{1,1024}$/u.test(text)) return text;
  throw new BackendError({ kind: "impossible", text: `resource ${name}: a value that Slurm cannot take` });
}

/** Returns the script that sbatch reads from its standard input. */
export function sbatchScript(order: RunnerOrder, token_dir: string): string {
  return runnerScript({ order, token_dir, index: "SLURM_ARRAY_TASK_ID" });
}

/**
 * Returns the words after `squeue`. separator: a text that nobody could foresee. Names of jobs may contain line ends and everything else; only with an unforeseeable
 * separator can no user write a line that looks like a job of ours. user: only the jobs of this user; null: the jobs of all users.
 */
export function squeueArgs(separator: string, user: string | null, cluster: string | null): readonly string[] {
  const fields = ["", "%i", "%F", "%K", "%T", "%r", "%N", "%u", "%j", ""].join(separator);
  return [
    "--noheader",
    "--array",
    "--states=all",
    `--format=${fields}`,
    ...(user === null ? [] : [`--user=${user}`]),
    ...(cluster === null ? [] : [`--clusters=${cluster}`]),
  ];
}

/** Returns the words after `scancel`. */
export function scancelArgs(ids: readonly string[], queued_only: boolean, cluster: string | null): readonly string[] {
  return [...(queued_only ? ["--state=PENDING"] : []), ...(cluster === null ? [] : [`--clusters=${cluster}`]), ...ids];
}

/** Returns the words after `scontrol` that give a job another nice value; null: nothing to change. */
export function niceArgs(id: string, wish: Wish, options: SlurmOptions, facts: SlurmFacts): readonly string[] | null {
  if (!options.use_nice || wish.start_s === null) return null;
  const cluster = options.cluster === null ? [] : [`--cluster=${options.cluster}`];
  return [...cluster, "update", `jobid=${id}`, `nice=${niceOf(wish.start_s, facts.scale)}`];
}
