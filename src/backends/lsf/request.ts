// Makes the requests to LSF: the command lines of bsub, bjobs and bkill. Pure. The options are those that IBM's reference of LSF 10.1 documents.
//
// L1. No value of a resource can add a condition or another resource to the resource requirement.
// L2. Memory and disk have a unit, so that LSF_UNIT_FOR_LIMITS does not matter.

import type { RunnerOrder, RunnerRequest, RunnerSighting } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";
import { runnerScript } from "../contract/script.ts";
import type { LsfOptions } from "./options.ts";

/** Returns the words after `bsub`; the script is read from the standard input. */
export function bsubArgs(order: RunnerOrder, options: LsfOptions): readonly string[] {
  const { tag, count, request } = order;
  const all = { ...options.options, ...request.options };
  const queue = all["q"] ?? options.queue;
  const project = all["P"] ?? options.project;
  const others = Object.entries(all).filter(([name]) => name !== "q" && name !== "P");
  const memory = request.mem_kb === null ? [] : ["-M", `${megabytes(request.mem_kb)}MB`];
  return [
    ...[
      "-J",
      `${options.name_prefix}${tag}[1-${count}]`,
      "-n",
      String(request.ncpus),
      "-W",
      String(Math.max(1, Math.ceil(request.walltime_s / 60))),
    ],
    ...["-rn", "-cwd", "/", "-o", options.output_dir === null ? "/dev/null" : `${options.output_dir}/${tag}.%I.out`],
    ...memory,
    ...["-R", requirement(request, options)],
    ...gpus(request),
    ...(queue === null ? [] : ["-q", queue]),
    ...(project === null ? [] : ["-P", project]),
    ...others.flatMap(([name, value]) => [`-${name}`, value]),
  ];
}

/** Returns the resource requirement: all cpus on one host, memory and disk reserved there, other resources by number or by value. */
function requirement(request: RunnerRequest, { mem_resource, tmp_resource }: LsfOptions): string {
  const select: string[] = [];
  const rusage: string[] = [];
  if (request.mem_kb !== null) {
    select.push(`${mem_resource}>${megabytes(request.mem_kb)}MB`);
    rusage.push(`${mem_resource}=${megabytes(request.mem_kb)}MB`);
  }
  if (request.tmp_kb !== null) {
    select.push(`${tmp_resource}>${megabytes(request.tmp_kb)}MB`);
    rusage.push(`${tmp_resource}=${megabytes(request.tmp_kb)}MB`);
  }
  for (const [name, value] of Object.entries(request.resources)) {
    if (name === "ngpus") continue;
    if (!/^[A-Za-z][A-Za-z0-9_]{0,62}$/.test(name) || !/^[A-Za-z0-9_.-]{1,255}$/.test(String(value)))
      throw new BackendError({ kind: "impossible", text: `resource ${name}: a name or a value that cannot be in a resource requirement` });
    if (typeof value === "number") rusage.push(`${name}=${value}`);
    else select.push(`${name}==${value}`);
  }
  const section = (name: string, parts: readonly string[], between: string): readonly string[] =>
    parts.length === 0 ? [] : [`${name}[${parts.join(between)}]`];
  return [...section("select", select, " && "), ...section("rusage", rusage, ":"), "span[hosts=1]"].join(" ");
}

function gpus({ resources }: RunnerRequest): readonly string[] {
  const number = resources["ngpus"];
  if (number === undefined) return [];
  if (!/^[0-9]{1,4}$/.test(String(number))) throw new BackendError({ kind: "impossible", text: "resource ngpus: no number" });
  return ["-gpu", `num=${number}`];
}

const megabytes = (kb: number): number => Math.ceil(kb / 1024);

export function bsubScript(order: RunnerOrder, token_dir: string): string {
  return runnerScript({ order, token_dir, index: "LSB_JOBINDEX - 1" });
}

/** The fields that bjobs is asked for. */
export const FIELDS = "jobid jobindex stat user exec_host pend_reason exit_reason job_name";

/** Returns the words after `bjobs`. -a: also jobs that ended lately. user: only the jobs of this user; null: the jobs of all users. */
export const bjobsArgs = (user: string | null): readonly string[] => ["-a", "-u", user ?? "all", "-o", FIELDS, "-json"];

/** Returns the words after `bkill`. */
export const bkillArgs = (runners: readonly RunnerSighting[]): readonly string[] => runners.map(({ id }) => id);
