// Common code of tests of pressure: the data sent to a scheduler about each job, and a job's end.

import type { Delta, Snapshot } from "#protocol/sched-link.ts";
import { type Harness, mom, runOn } from "../harness.ts";

export const TRUE = "-- /bin/true";
export const FORMULA = { kind: "server-changed", set: { job_sort_formula: "pressure" }, unset: [] } as const;

/** The latest data sent to the scheduler about each job. */
export function told(h: Harness, link = 1): Record<string, number | undefined> {
  const jobs = new Map<string, { readonly pressure_s?: number }>();
  for (const frame of h.to_scheds) {
    if (frame.link !== link) continue;
    if (frame.type === "sched-snapshot") {
      jobs.clear();
      for (const job of (frame.data as Snapshot).jobs) jobs.set(job.id, job);
    } else if (frame.type === "sched-delta") {
      for (const change of (frame.data as Delta).changes) {
        if ("put" in change && change.put === "job") jobs.set(change.value.id, change.value);
        if ("drop" in change && change.drop === "job") jobs.delete(change.id);
      }
    }
  }
  return Object.fromEntries([...jobs].map(([id, { pressure_s }]) => [id.replace(".svr", ""), pressure_s]));
}

export function ended(h: Harness, link: number, id: string, walltime: number, exit_status = 0): void {
  runOn(h, id, "n1", link);
  mom(h, link, "mom-obit", { job: id, run_count: 1, exit_status, used: { walltime }, stageout_status: 1 });
}
