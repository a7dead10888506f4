// Limits of a job: what the kernel enforces per process, what the mom watches for the whole job (pbs/mom.md 4). Pure.

import { parseSize, sizeBytes, sizeKb } from "#model/values/size.ts";
import { type Attrs, resourcesOf } from "./job-attrs.ts";
import { JOB_EXEC } from "./job-exec.ts";

/** Set by prlimit before the program runs: name of the limit -> bytes or seconds. */
export function kernelLimits(attrs: Attrs): { [name: string]: number } {
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
  lower("as", bytes("vmem"));
  lower("core", bytes("core"));
  lower("cpu", secondsOf(resources["pcput"]));
  return limits;
}

/** The nice value asked for; null: none. */
export function niceOf(attrs: Attrs): number | null {
  const value = resourcesOf(attrs)["nice"];
  return typeof value === "number" && Number.isInteger(value) ? Math.max(-20, Math.min(19, value)) : null;
}

export type Used = { readonly walltime_s: number; readonly cput_s: number; readonly mem_kb: number; readonly vmem_kb: number };
export type Enforcement = { readonly mem: boolean; readonly cputmult: number; readonly wallmult: number };

/** A limit that was passed: the code for Exit_status and PBS's words. */
export type Breach = { readonly exit_status: number; readonly text: string };

const KILL = { vmem: JOB_EXEC.KILL_VMEM, mem: JOB_EXEC.KILL_MEM, cput: JOB_EXEC.KILL_CPUT, walltime: JOB_EXEC.KILL_WALLTIME } as const;

/** null: within its limits. */
export function breachOf(attrs: Attrs, used: Used, enforce: Enforcement): Breach | null {
  const resources = resourcesOf(attrs);
  const over = (what: keyof typeof KILL, amount: number, limit: number | null, unit: string): Breach | null =>
    limit === null || amount <= limit ? null : { exit_status: KILL[what], text: `${what} ${amount}${unit} exceeded limit ${limit}${unit}` };
  const kb = (value: unknown): number | null => (typeof value === "string" ? sizeKb(value) : null);
  return (
    over("vmem", used.vmem_kb, kb(resources["vmem"]), "kb") ??
    (enforce.mem ? over("mem", used.mem_kb, kb(resources["mem"]), "kb") : null) ??
    over("cput", Math.floor(used.cput_s * enforce.cputmult), secondsOf(resources["cput"]), "") ??
    over("walltime", Math.floor(used.walltime_s * enforce.wallmult), secondsOf(resources["walltime"]), "")
  );
}

/** Whether the job has a limit that only looking at its processes can enforce. */
export function needsWatching(attrs: Attrs, enforce: Enforcement): boolean {
  const resources = resourcesOf(attrs);
  return resources["cput"] !== undefined || resources["vmem"] !== undefined || (enforce.mem && resources["mem"] !== undefined);
}

/** mem of the job in kb; null: not asked for. */
export function memoryLimit_kb(attrs: Attrs): number | null {
  const mem = resourcesOf(attrs)["mem"];
  return typeof mem === "string" ? sizeKb(mem) : null;
}

const secondsOf = (value: unknown): number | null => (typeof value === "number" ? value : null);
