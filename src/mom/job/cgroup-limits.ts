// The limits that control groups enforce for a job: `$cgroups` of mom_priv/config and the job's request. Pure.

import { parseSize, sizeBytes } from "#model/values/size.ts";
import { type Attrs, resourcesOf } from "./attrs.ts";

/**
 * memory: a job that exceeds mem is killed. cpuset: a job has cpus of its own. cpu: a job gets no more cpu time than its ncpus. pids: the number of processes
 * is limited.
 */
export const CGROUP_LIMITS = ["memory", "cpuset", "cpu", "pids"] as const;
export type CgroupLimit = (typeof CGROUP_LIMITS)[number];

/**
 * The settings of `$cgroups`. track: each job has a group, so that no process outlives its job; false: no groups are used. enforce: the limits that the groups
 * enforce in addition.
 */
export type CgroupSettings = { readonly track: boolean; readonly enforce: ReadonlySet<CgroupLimit>; readonly pids_max: number };

/** The limits of a job's group; null: not limited. cpus: a list in the form of the kernel, `0-1,3`. */
export type JobLimits = {
  readonly memory_bytes: number | null;
  readonly pids_max: number | null;
  readonly cpus: string | null;
  readonly ncpus: number | null;
};

/** Lowest memory limit. With less, a program cannot even start. */
const MEMORY_BYTES_MIN = 4 * 1024 * 1024;

/** Returns the limits of a job's group; null: the job gets no group. cpus: those that pickCpus chose for the job. */
export function jobLimits(attrs: Attrs, { track, enforce, pids_max }: CgroupSettings, cpus: readonly number[] | null): JobLimits | null {
  if (!track) return null;
  const resources = resourcesOf(attrs);
  const size = enforce.has("memory") ? parseSize(String(resources["mem"] ?? "")) : null;
  const ncpus = resources["ncpus"];
  return {
    memory_bytes: size === null ? null : Math.max(MEMORY_BYTES_MIN, sizeBytes(size)),
    pids_max: enforce.has("pids") ? pids_max : null,
    cpus: enforce.has("cpuset") && cpus !== null ? cpus.join(",") : null,
    ncpus: enforce.has("cpu") && typeof ncpus === "number" && ncpus > 0 ? ncpus : null,
  };
}

/** Chooses the lowest cpus that no other job has. Returns null if too few are free (an administrator may have set ncpus higher than the real number). */
export function pickCpus(online: readonly number[], taken: ReadonlySet<number>, ncpus: number): number[] | null {
  const free = online.filter((cpu) => !taken.has(cpu));
  return ncpus > 0 && free.length >= ncpus ? free.slice(0, ncpus) : null;
}

/** Parses a list of the kernel: `0-1,3` -> 0 1 3. */
export function parseCpuList(text: string): number[] {
  return text
    .trim()
    .split(",")
    .flatMap((part) => {
      const range = /^(\d+)(?:-(\d+))?$/.exec(part);
      if (range === null) return [];
      const from = Number(range[1]);
      return Array.from({ length: Number(range[2] ?? from) - from + 1 }, (_, at) => from + at);
    });
}
