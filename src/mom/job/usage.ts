// resources_used of a job (docs/reference/execution.md 4): computed from samples of its processes and the kernel's final values. Pure.
//
// U1. mem and vmem are the largest sampled values. mem is at least the peak of the job's largest process, which the kernel reports at its end. If a job ends
//     before its first sample and uses less memory than the starter, its mem is 0kb, as in PBS: the kernel's peak is then the peak of the starter
//     (starter/starter.ts).

import type { Usage } from "#protocol/mom-link.ts";
import { type Attrs, resourcesOf } from "./attrs.ts";
import type { ProcessInfo } from "./process.ts";

export type Sample = {
  /** cpu seconds so far; never decreases */
  readonly cput_s: number;
  readonly mem_kb: number;
  readonly vmem_kb: number;
  /** the values at this moment, which are compared with limits */
  readonly mem_now_kb: number;
  readonly vmem_now_kb: number;
  /** moving average, in per cent of one cpu */
  readonly cpupercent: number;
  readonly at_ms: number;
};

export const noSample = (at_ms: number): Sample => ({
  cput_s: 0,
  mem_kb: 0,
  vmem_kb: 0,
  mem_now_kb: 0,
  vmem_now_kb: 0,
  cpupercent: 0,
  at_ms,
});

/** The usage of one job's processes at one moment, added up. */
export type Seen = { readonly cput_s: number; readonly mem_kb: number; readonly vmem_kb: number };

export function seenOf(processes: readonly ProcessInfo[], ticks_per_s: number, page_kb: number): Seen {
  let ticks = 0;
  let pages = 0;
  let vmem_kb = 0;
  for (const info of processes) {
    ticks += info.ticks;
    pages += info.rss_pages;
    vmem_kb += info.vmem_kb;
  }
  return { cput_s: ticks / ticks_per_s, mem_kb: pages * page_kb, vmem_kb };
}

export type CpuWeights = { readonly up: number; readonly down: number };

/** Returns the next sample. The moving average uses one weight when it rises and another when it falls ($enforce delta_weightup, delta_weightdown). */
export function nextSample(before: Sample, seen: Seen, now_ms: number, weights: CpuWeights): Sample {
  const cput_s = Math.max(before.cput_s, seen.cput_s);
  const elapsed_s = (now_ms - before.at_ms) / 1000;
  const percent = elapsed_s > 0 ? (100 * (cput_s - before.cput_s)) / elapsed_s : before.cpupercent;
  const weight = percent > before.cpupercent ? weights.up : weights.down;
  return {
    cput_s,
    mem_kb: Math.max(before.mem_kb, seen.mem_kb),
    vmem_kb: Math.max(before.vmem_kb, seen.vmem_kb),
    mem_now_kb: seen.mem_kb,
    vmem_now_kb: seen.vmem_kb,
    cpupercent: before.cpupercent + weight * (percent - before.cpupercent),
    at_ms: now_ms,
  };
}

/** Returns resources_used in the value types of the server: durations in seconds, sizes as text. */
export function usageOf(attrs: Attrs, sample: Sample, walltime_s: number): Usage {
  const ncpus = resourcesOf(attrs)["ncpus"];
  return {
    cpupercent: Math.floor(sample.cpupercent),
    cput: Math.floor(sample.cput_s),
    mem: `${sample.mem_kb}kb`,
    ncpus: typeof ncpus === "number" ? ncpus : 1,
    vmem: `${sample.vmem_kb}kb`,
    walltime: Math.floor(walltime_s),
  };
}
