// Reads what the local backend finds again: its record of an order, and the environment of a process. Pure.

import { z } from "zod";
import { RUNNER_ENV, type RunnerOrder } from "../contract/backend.ts";
import { parseTag } from "../contract/tag.ts";
import type { Process } from "../shell/processes.ts";
import type { Amounts } from "./options.ts";

export type RunnerRecord = { readonly state: "queued" | "running" | "ended"; readonly process: Process | null };

/** An order as the local backend keeps it in a file. Tokens are not in it. */
export type OrderRecord = Pick<RunnerOrder, "tag" | "owner" | "argv" | "env" | "wish"> & {
  /** what each of its runners takes of this machine */
  readonly amounts: Amounts;
  readonly walltime_s: number;
  readonly runners: readonly RunnerRecord[];
};

const processRecord = z.object({ pid: z.int().min(2), birth: z.number().min(0), boot: z.string() });
const texts = z.record(z.string(), z.string());
const record = z.object({
  tag: z.string().refine((tag) => parseTag(tag) !== null),
  owner: z.object({ name: z.string(), uid: z.int().min(0), gid: z.int().min(0), groups: z.array(z.int().min(0)) }).nullable(),
  argv: z.array(z.string()).min(1),
  env: texts,
  amounts: z.record(z.string(), z.number().min(0)),
  walltime_s: z.number().min(0),
  wish: z.object({ start_s: z.number().nullable(), priority: z.number() }),
  runners: z.array(z.object({ state: z.enum(["queued", "running", "ended"]), process: processRecord.nullable() })),
});

/** Reads the record of an order. Throws an error that says what is wrong with it. */
export function parseOrderRecord(text: string): OrderRecord {
  return record.parse(JSON.parse(text));
}

/** Returns the tag and the index of a runner in the environment of a process (/proc/PID/environ); null: the process is no runner. */
export function runnerOfEnviron(environ: string): { readonly tag: string; readonly index: number } | null {
  const values = new Map(environ.split("\0").map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)]));
  const [tag, index] = [values.get(RUNNER_ENV.TAG), values.get(RUNNER_ENV.INDEX)];
  if (tag === undefined || index === undefined || parseTag(tag) === null || !/^[0-9]{1,5}$/.test(index)) return null;
  return { tag, index: Number(index) };
}
