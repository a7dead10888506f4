// Limits of a job: those that the kernel enforces for each process, and those that the mom checks for the whole job (docs/reference/execution.md 4). Pure.

import { JOB_EXEC } from "#model/exit-status.ts";
import { parseSize, sizeBytes, sizeKb } from "#model/values/size.ts";

import { type Attrs, resourcesOf } from "./attrs.ts";

/** Limits that prlimit sets before the program runs: name of the limit -> bytes or seconds. */
export function kernelLimits(attrs: Attrs, several_hosts = false): { [name: string]: number } {
  const resources = resourcesOf(attrs);
  const limits: { [name: string]: number } = {};
  const lower = (name: string, amount: number | null): void => {
    if (amount !== null) limits[name] = Math.min(limits[name] ?? Number.POSITIVE_INFINITY, amount);
  };
  const bytes = (resource: string): number | null => {
    const size = parseSize(String(resources[resource] ?? ""));
    return size === null ? null : sizeBytes(size);
  };
  lower("fsize", bytes("file"));
  lower("rss", bytes("pmem"));
  lower("as", bytes("pvmem"));
  // No kernel knows how much vmem a job uses on its other hosts. If the job has several, only the mom checks this limit (docs/reference/execution.md 4).
  if (!several_hosts) lower("as", bytes("vmem"));
  lower("core", bytes("core"));
  lower("cpu", secondsOf(resources["pcput"]));
  return limits;
}

/** Returns the requested nice value, brought into the range -20 to 19; null: none was requested. */
export function niceOf(attrs: Attrs): number | null {
  const value = resourcesOf(attrs)["nice"];
  return typeof value === "number" && Number.isInteger(value) ? Math.max(-20, Math.min(19, value)) : null;
}

export type Used = {
  readonly walltime_s: number;
  readonly cput_s: number;
  readonly mem_kb: number;
  readonly vmem_kb: number;
  /** moving average, in per cent of one cpu */
  readonly cpupercent: number;
};

/**
 * `$enforce cpuaverage` compares cput with walltime, `$enforce cpuburst` uses the moving average cpupercent. The limit in cpus is ncpus x factor + percent/100.
 */
export type CpuEnforcement = {
  readonly average: boolean;
  readonly burst: boolean;
  /** the average is checked only after this walltime */
  readonly trialperiod_s: number;
  readonly average_percent_over: number;
  readonly average_cpufactor: number;
  readonly delta_percent_over: number;
  readonly delta_cpufactor: number;
};
export const NO_CPU_ENFORCEMENT: CpuEnforcement = {
  average: false,
  burst: false,
  trialperiod_s: 120,
  average_percent_over: 50,
  average_cpufactor: 1.025,
  delta_percent_over: 50,
  delta_cpufactor: 1.5,
};
export type Enforcement = { readonly mem: boolean; readonly cputmult: number; readonly wallmult: number; readonly cpu: CpuEnforcement };

/** A limit that was exceeded: the code for Exit_status and the text of PBS. */
export type Breach = { readonly exit_status: number; readonly text: string };

const KILL = { vmem: JOB_EXEC.KILL_VMEM, mem: JOB_EXEC.KILL_MEM, cput: JOB_EXEC.KILL_CPUT, walltime: JOB_EXEC.KILL_WALLTIME } as const;

/** Returns the first limit that the job exceeds; null: it is within all limits. */
export function breachOf(attrs: Attrs, used: Used, enforce: Enforcement): Breach | null {
  const resources = resourcesOf(attrs);
  const over = (what: keyof typeof KILL, amount: number, limit: number | null, unit: string): Breach | null =>
    limit === null || amount <= limit ? null : { exit_status: KILL[what], text: `${what} ${amount}${unit} exceeded limit ${limit}${unit}` };
  const kb = (value: unknown): number | null => (typeof value === "string" ? sizeKb(value) : null);
  return (
    cpuBreach(resources["ncpus"], used, enforce.cpu) ??
    over("vmem", used.vmem_kb, kb(resources["vmem"]), "kb") ??
    (enforce.mem ? over("mem", used.mem_kb, kb(resources["mem"]), "kb") : null) ??
    over("cput", Math.floor(used.cput_s * enforce.cputmult), secondsOf(resources["cput"]), "") ??
    over("walltime", Math.floor(used.walltime_s * enforce.wallmult), secondsOf(resources["walltime"]), "")
  );
}

function cpuBreach(asked: unknown, used: Used, cpu: CpuEnforcement): Breach | null {
  const ncpus = typeof asked === "number" ? asked : 1;
  if (cpu.burst && used.cpupercent > ncpus * cpu.delta_cpufactor * 100 + cpu.delta_percent_over) {
    const text = `ncpus ${(used.cpupercent / 100).toFixed(1)} exceeded limit ${ncpus} (burst)`;
    return { exit_status: JOB_EXEC.KILL_NCPUS_BURST, text };
  }
  if (!cpu.average || used.walltime_s <= cpu.trialperiod_s || used.walltime_s <= 0) return null;
  const average = used.cput_s / used.walltime_s;
  if (average * 100 <= ncpus * cpu.average_cpufactor * 100 + cpu.average_percent_over) return null;
  return { exit_status: JOB_EXEC.KILL_NCPUS_SUM, text: `ncpus ${average.toFixed(2)} exceeded limit ${ncpus} (sum)` };
}

/** Whether the job has a limit that the mom enforces by sampling its processes. */
export function needsWatching(attrs: Attrs, enforce: Enforcement): boolean {
  const resources = resourcesOf(attrs);
  if (enforce.cpu.average || enforce.cpu.burst) return true;
  return resources["cput"] !== undefined || resources["vmem"] !== undefined || (enforce.mem && resources["mem"] !== undefined);
}

/** Returns the requested mem in kb; null: no mem was requested. */
export function memoryLimit_kb(attrs: Attrs): number | null {
  const mem = resourcesOf(attrs)["mem"];
  return typeof mem === "string" ? sizeKb(mem) : null;
}

const secondsOf = (value: unknown): number | null => (typeof value === "number" ? value : null);
