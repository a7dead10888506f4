// Makes the requests to Grid Engine: the command lines of qsub, qstat, qdel and qalter. Pure.
//
// G1. A value never begins with `-` and has no `,` where qsub would read another resource, so that no value becomes an option or a resource of its own.

import type { RunnerOrder, RunnerRequest, RunnerSighting, Wish } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";
import { runnerScript } from "../contract/script.ts";
import type { GridEngineOptions } from "./options.ts";

/** Names of the resources that are memory in Grid Engine, so that their amounts need the unit M. */
export type MemoryNames = ReadonlySet<string>;

/** Returns the words after `qsub`. */
export function qsubArgs(order: RunnerOrder, options: GridEngineOptions, memory: MemoryNames): readonly string[] {
  const { request, wish, count, tag } = order;
  const priority = priorityOf(request, wish, options);
  return [
    "-terse",
    ...["-N", `${options.name_prefix}${tag}`, "-t", `1-${count}`, "-S", "/bin/sh", "-wd", "/", "-r", "n", "-j", "y"],
    ...["-o", options.output_dir === null ? "/dev/null" : `${options.output_dir}/${tag}.$TASK_ID.out`],
    // Makes qsub refuse a job that the whole cluster could not run even if it were empty.
    ...["-w", "e"],
    ...(priority === null ? [] : ["-p", String(priority)]),
    ...(options.project === null ? [] : ["-P", options.project]),
    ...(options.queue === null ? [] : ["-q", options.queue]),
    ...resourceArgs(request, options, memory),
  ];
}

function resourceArgs(request: RunnerRequest, options: GridEngineOptions, memory: MemoryNames): readonly string[] {
  const limits = [`h_rt=${Math.max(1, Math.ceil(request.walltime_s))}`];
  const words: string[] = [];
  if (options.cpu_resource !== null) limits.push(`${options.cpu_resource}=${request.ncpus}`);
  else if (options.parallel_env !== null) words.push("-pe", options.parallel_env, String(request.ncpus));
  else if (request.ncpus > 1)
    throw new BackendError({
      kind: "configuration",
      text: `${request.ncpus} cpus wanted; consider: set backend ... parallel_env=NAME or cpu_resource=NAME`,
    });
  if (options.mem_resource !== null && request.mem_kb !== null) limits.push(megabytes(options.mem_resource, request.mem_kb, memory));
  if (options.tmp_resource !== null && request.tmp_kb !== null) limits.push(megabytes(options.tmp_resource, request.tmp_kb, memory));
  const { hard, soft, ...others } = request.resources;
  for (const [name, value] of Object.entries(others)) limits.push(`${name}=${resourceValue(name, value)}`);
  return [
    ...words,
    ...limits.flatMap((limit) => ["-l", limit]),
    ...(hard === undefined ? [] : ["-hard", ...requestWords("hard", String(hard))]),
    ...(soft === undefined ? [] : ["-soft", ...requestWords("soft", String(soft))]),
  ];
}

function megabytes(name: string, kb: number, memory: MemoryNames): string {
  return `${name}=${Math.ceil(kb / 1024)}${memory.has(name) ? "M" : ""}`;
}

function resourceValue(name: string, value: number | string): string {
  const text = String(value);
  if (/^[A-Za-z_][A-Za-z0-9_.]{0,62}$/.test(name) && /^[A-Za-z0-9_.:@/+*?[\]!|&()^#][A-Za-z0-9_.:@/+*?[\]!|&()^#-]{0,255}$/.test(text))
    return text;
  throw new BackendError({ kind: "impossible", text: `resource ${name}: a name or a value that Grid Engine cannot take` });
}

/** Options that may be in the resources `hard` and `soft`, whose text follows -hard and -soft. Each option has one value, -pe has two. */
const ALLOWED: Readonly<Record<"hard" | "soft", readonly string[]>> = { hard: ["-l", "-q", "-masterq", "-pe"], soft: ["-l", "-q"] };

/** Returns the words of the resource hard or soft, such as `-l fast=1 -q a.q`. */
function requestWords(which: "hard" | "soft", text: string): readonly string[] {
  const words = text.split(" ").filter((word) => word !== "");
  for (let at = 0; at < words.length; ) {
    const option = words[at] ?? "";
    const values = words.slice(at + 1, at + (option === "-pe" ? 3 : 2));
    const fine =
      ALLOWED[which].includes(option) &&
      values.length === (option === "-pe" ? 2 : 1) &&
      values.every((value) => /^[^-\p{Cc}][^\p{Cc}]{0,255}$/u.test(value));
    if (!fine)
      throw new BackendError({
        kind: "impossible",
        text: `resource ${which}: ${JSON.stringify(option)} is not one of ${ALLOWED[which].join(" ")} with its value`,
      });
    at += 1 + values.length;
  }
  return words;
}

/** Users may only lower the priority of their jobs, so a wish above 0 counts as 0. */
function priorityOf(request: RunnerRequest, wish: Wish, { default_prio }: GridEngineOptions): number | null {
  const own = request.options["p"];
  if (own !== undefined) return Number(own);
  if (wish.priority !== 0) return wishedPriority(wish);
  return default_prio;
}

const wishedPriority = ({ priority }: Wish): number => Math.max(-1023, Math.min(0, priority));

export function qsubScript(order: RunnerOrder, token_dir: string): string {
  return runnerScript({ order, token_dir, index: "SGE_TASK_ID - 1" });
}

/** Returns the words after `qstat`. user: only the jobs of this user; null: the jobs of all users. z: also jobs that ended lately. */
export const qstatArgs = (user: string | null): readonly string[] => ["-xml", "-s", "prsz", "-u", user ?? "*"];

/** Returns the words after `qdel` and `qalter -p N`: JOB.TASK for each runner. */
export const taskIds = (runners: readonly RunnerSighting[]): readonly string[] => runners.map(({ id }) => id);

/** Returns the words after `qalter`: jobs as a whole, because the tasks of one order have one priority. */
export function qalterArgs(runners: readonly RunnerSighting[], wish: Wish): readonly string[] {
  return ["-p", String(wishedPriority(wish)), ...new Set(runners.map(({ id }) => id.split(".")[0] ?? id))];
}
