// The limits that control groups enforce for a job: `$cgroups` of mom_priv/config and the job's request. Pure.

import { parseSize, sizeBytes } from "#model/values/size.ts";
import { type Attrs, resourcesOf } from "./attrs.ts";

/** memory: exceeding mem kills · cpuset: exclusive cpus · cpu: no more time than ncpus · pids: number of processes */
export const CGROUP_LIMITS = ["memory", "cpuset", "cpu", "pids"] as const;
export type CgroupLimit = (typeof CGROUP_LIMITS)[number];

/** off: none are used. track: each job has a group, so that no process outlives it. enforce: the limits that the groups enforce in addition. */
export type CgroupSettings = { readonly track: boolean; readonly enforce: ReadonlySet<CgroupLimit>; readonly pids_max: number };

/** A job's group. null: not limited. cpus: as the kernel writes lists, `0-1,3`. */
export type JobLimits = {
  readonly memory_bytes: number | null;
  readonly pids_max: number | null;
  readonly cpus: string | null;
  readonly ncpus: number | null;
};

/** A program cannot even start below this. */
const MEMORY_BYTES_MIN = 4 * 1024 * 1024;

/** null: the job has no group. cpus: its cpus (pickCpus). */
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

/** Cpus for a job: the lowest that no other job has. null: there are not enough (an administrator may have set ncpus beyond the real number). */
export function pickCpus(online: readonly number[], taken: ReadonlySet<number>, ncpus: number): number[] | null {
  const free = online.filter((cpu) => !taken.has(cpu));
  return ncpus > 0 && free.length >= ncpus ? free.slice(0, ncpus) : null;
}

/** `0-1,3` -> 0 1 3; the kernel's form of a list. */
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
