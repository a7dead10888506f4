// Reads and writes the text of the file `usage` in a sched_priv (docs/reference/scheduler.md 10). The format is JSON,
// because only the scheduler and pbsfs read it. Entities that have used nothing (usage 1) are left out.
//
//   { "format": "fairshare usage 1", "last_decay": 1790000000, "usage": { "alice": 120.5 }, "running": { "5.svr": [1, 60] } }
//
// running: for each run that may continue, its run_count and the amount of its usage that was counted already.

import { isRecord } from "#support/guards.ts";
import type { Counted, StoredUsage } from "./fairshare.ts";

const FORMAT = "fairshare usage 1";

export function usageText({ last_decay_s, usage, running }: StoredUsage): string {
  const runs = Object.fromEntries(Object.entries(running).map(([id, { run, amount }]) => [id, [run, amount]]));
  return `${JSON.stringify({ format: FORMAT, last_decay: last_decay_s, usage, running: runs }, null, 1)}\n`;
}

/** Parses the text of the file. If it is malformed, returns a text that describes the fault. */
export function parseUsage(text: string): StoredUsage | string {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return text.startsWith("PBS_MAG!") ? "it was written by another PBS" : "it is no JSON";
  }
  if (!isRecord(data) || data["format"] !== FORMAT) return "it is no usage of this format";
  const { last_decay, usage, running } = data;
  if (!isAmount(last_decay) || !isRecord(usage) || !isRecord(running)) return "something is missing in it";
  const runs: [string, Counted][] = [];
  for (const [id, value] of Object.entries(running)) {
    const [run, amount] = Array.isArray(value) ? value : [];
    if (!isAmount(run) || !isAmount(amount)) return `the run of ${id} is not two numbers`;
    runs.push([id, { run, amount }]);
  }
  for (const [name, value] of Object.entries(usage)) if (!isAmount(value)) return `the usage of ${name} is no amount`;
  return { last_decay_s: last_decay, usage: usage as Record<string, number>, running: Object.fromEntries(runs) };
}

const isAmount = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value) && value >= 0;
