// Makes the requests to another PBS complex: the command lines of qsub, qstat, qdel and qalter. Pure.
//
// P1. No value of a resource can begin another chunk, resource or option.

import type { RunnerOrder, RunnerRequest, RunnerSighting, Wish } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";
import { runnerScript } from "../contract/script.ts";
import type { PbsOptions } from "./options.ts";

/** Returns the words after `qsub`. PBS has no array of one job, and arrays must be rerunnable there. */
export function qsubArgs(order: RunnerOrder, options: PbsOptions): readonly string[] {
  const { tag, count, request, wish } = order;
  const all = { ...options.options, ...request.options };
  const queue = all["q"] ?? options.queue;
  const account = all["A"] ?? options.account;
  const priority = all["p"] ?? (wish.priority === 0 ? null : String(wish.priority));
  return [
    ...["-N", `${options.name_prefix}${tag}`, "-S", "/bin/sh", "-m", "n"],
    ...(count === 1 ? ["-r", "n"] : ["-J", `0-${count - 1}`]),
    ...(options.output_dir === null ? ["-R", "oe"] : ["-j", "oe", "-o", `${options.output_dir}/`]),
    ...["-l", selectOf(request, options), "-l", `walltime=${Math.max(1, Math.ceil(request.walltime_s))}`],
    ...(queue === null ? [] : ["-q", queue]),
    ...(account === null ? [] : ["-A", account]),
    ...(all["P"] === undefined ? [] : ["-P", all["P"]]),
    ...(priority === null ? [] : ["-p", priority]),
  ];
}

function selectOf(request: RunnerRequest, { cpu_resource, mem_resource, tmp_resource }: PbsOptions): string {
  const pairs: (readonly [name: string, value: number | string])[] = [[cpu_resource, request.ncpus]];
  if (request.mem_kb !== null) pairs.push([mem_resource, `${request.mem_kb}kb`]);
  if (request.tmp_kb !== null && tmp_resource !== null) pairs.push([tmp_resource, `${request.tmp_kb}kb`]);
  pairs.push(...Object.entries(request.resources));
  return `select=1${pairs.map(([name, value]) => `:${pairOf(name, String(value))}`).join("")}`;
}

function pairOf(name: string, value: string): string {
  if (/^[A-Za-z][A-Za-z0-9_-]{0,62}$/.test(name) && /^[A-Za-z0-9_.@/-]{1,255}$/.test(value)) return `${name}=${value}`;
  throw new BackendError({ kind: "impossible", text: `resource ${name}: a name or a value that cannot be in a select` });
}

export function qsubScript(order: RunnerOrder, token_dir: string): string {
  return runnerScript({ order, token_dir, index: order.count === 1 ? "0" : "PBS_ARRAY_INDEX" });
}

/** Returns the words after `qstat`. history: also jobs that ended lately. */
export const qstatArgs = (history: boolean): readonly string[] => [...(history ? ["-x"] : []), "-t", "-f", "-F", "json"];

/** Returns the words after `qalter`: an array as a whole, because its subjobs have one priority. */
export function qalterArgs(runners: readonly RunnerSighting[], { priority }: Wish): readonly string[] {
  return ["-p", String(Math.max(-1024, Math.min(1023, priority))), ...new Set(runners.map(({ id }) => id.replace(/\[\d+\]/, "[]")))];
}
