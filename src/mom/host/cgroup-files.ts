// Files of a job's control groups: writes the limits, and reads what the kernel knows about the processes.

import { writeFileSync } from "node:fs";
import type { JobLimits } from "../job/cgroup-limits.ts";
import { type Hierarchy, quietly, read } from "./cgroup-hierarchy.ts";

const CPU_PERIOD_US = 100_000;
const KB = 1024;

/** Switches the limits on memory and cpu off until limit() sets them again. Only for version 2. */
export function lift(job: string, { version, top }: Hierarchy): void {
  if (version === 1) return;
  quietly(() => writeFileSync(`${top}/${job}/memory.max`, "max"));
  quietly(() => writeFileSync(`${top}/${job}/cpu.max`, `max ${CPU_PERIOD_US}`));
}

export type Limiting = {
  readonly memory: Hierarchy | undefined;
  readonly cpu: Hierarchy | undefined;
  readonly pids: Hierarchy | undefined;
};

/** Sets the limits of a job's groups. If the kernel refuses a limit, the job runs without it (G3). */
export function limit(limits: JobLimits, job: string, { memory, cpu, pids }: Limiting): void {
  const set = (hierarchy: Hierarchy | undefined, file: string, value: string): void => {
    if (hierarchy !== undefined) quietly(() => writeFileSync(`${hierarchy.top}/${job}/${file}`, value));
  };
  if (limits.memory_bytes !== null) {
    const bytes = String(limits.memory_bytes);
    set(memory, memory?.version === 2 ? "memory.max" : "memory.limit_in_bytes", bytes);
    set(memory, memory?.version === 2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes", memory?.version === 2 ? "0" : bytes);
  }
  if (limits.ncpus !== null) {
    const quota = String(Math.round(limits.ncpus * CPU_PERIOD_US));
    if (cpu?.version === 2) set(cpu, "cpu.max", `${quota} ${CPU_PERIOD_US}`);
    else {
      set(cpu, "cpu.cfs_period_us", String(CPU_PERIOD_US));
      set(cpu, "cpu.cfs_quota_us", quota);
    }
  }
  if (limits.pids_max !== null) set(pids, "pids.max", String(limits.pids_max));
}

/** Returns the cpu seconds that the job's group has used; null: not known. */
export function cputOf(job: string, tracker: Hierarchy, cpuacct: Hierarchy | undefined): number | null {
  if (tracker.version === 2) {
    const usec = /^usage_usec (\d+)/m.exec(read(`${tracker.top}/${job}/cpu.stat`))?.[1];
    return usec === undefined ? null : Number(usec) / 1e6;
  }
  const nsec = cpuacct === undefined ? "" : read(`${cpuacct.top}/${job}/cpuacct.usage`).trim();
  return nsec === "" ? null : Number(nsec) / 1e9;
}

/** Returns the peak memory of the job and whether the kernel killed a process for lack of memory. groups: the hierarchies in which the job has a group. */
export function memoryOf(
  job: string,
  memory: Hierarchy | undefined,
  groups: readonly Hierarchy[],
): { readonly mem_peak_kb: number | null; readonly oom: boolean } {
  if (memory === undefined || !groups.includes(memory)) return { mem_peak_kb: null, oom: false };
  const group = `${memory.top}/${job}`;
  const [peak, events] = memory.version === 2 ? ["memory.peak", "memory.events"] : ["memory.max_usage_in_bytes", "memory.oom_control"];
  const bytes = read(`${group}/${peak}`).trim();
  const kills = Number(/^oom_kill (\d+)/m.exec(read(`${group}/${events}`))?.[1] ?? 0);
  return { mem_peak_kb: bytes === "" ? null : Math.floor(Number(bytes) / KB), oom: kills > 0 };
}
