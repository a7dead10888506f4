// Reads what another PBS complex answers: the output of qsub and of qstat -f -F json. Pure.

import { z } from "zod";
import { isRecord } from "#support/guards.ts";
import type { RunnerSighting } from "../contract/backend.ts";
import { BackendError, cleanText, type Fault } from "../contract/fault.ts";
import { type Of, unreadable } from "../contract/sightings.ts";
import { isTagOf } from "../contract/tag.ts";

/** Returns the id of a job in the output of qsub: `12.server` or `12[].server`. null: none. */
export function submittedId(stdout: string): string | null {
  return /^([0-9]{1,12}(?:\[\])?\.[A-Za-z0-9_.-]{1,255})\s*$/m.exec(stdout)?.[1] ?? null;
}

/** Returns the id of the runner with this index of a job. */
export const runnerId = (job: string, index: number): string => job.replace("[]", `[${index}]`);

const job = z
  .object({
    Job_Name: z.coerce.string(),
    Job_Owner: z.string(),
    job_state: z.string(),
    comment: z.coerce.string().optional(),
    exec_host: z.string().optional(),
    Exit_status: z.coerce.number().optional(),
  })
  .partial({ Job_Owner: true });
const list = z.object({ Jobs: z.record(z.string(), z.unknown()).optional() }).loose();

/** Reads the list of qstat. Throws if it is not whole. */
export function readQstat(stdout: string, of: Of): readonly RunnerSighting[] {
  let jobs: Readonly<Record<string, unknown>>;
  try {
    jobs = stdout.trim() === "" ? {} : (list.parse(JSON.parse(stdout)).Jobs ?? {});
  } catch (error) {
    throw new BackendError(
      { kind: "transient", text: `qstat printed no complete list: ${cleanText(stdout.slice(-200))}` },
      { cause: error },
    );
  }
  return Object.entries(jobs).flatMap(([id, value]) => readJob(id, value, of));
}

function readJob(id: string, value: unknown, of: Of): readonly RunnerSighting[] {
  const parts = /^([0-9]{1,12})(?:\[([0-9]*)\])?\./.exec(id);
  const parsed = job.safeParse(value);
  // The entry of an array itself (`12[].server`) is no runner.
  if (parts === null || parts[2] === "") return [];
  if (!parsed.success) return unreadable(id, isRecord(value) ? value["Job_Name"] : null, of);
  const { Job_Name: name, Job_Owner: owner = "", job_state, comment = "", exec_host, Exit_status } = parsed.data;
  const tag = name.slice(of.prefix.length);
  if (!name.startsWith(of.prefix) || !isTagOf(tag, of)) return [];
  const state = STATES[job_state] ?? "unknown";
  return [
    {
      tag,
      index: Number(parts[2] ?? 0),
      id,
      state,
      reason: cleanText(comment === "" ? job_state : comment),
      user: owner.split("@")[0] ?? null,
      host: exec_host === undefined ? null : cleanText(exec_host.split("/")[0] ?? ""),
      ending: state === "ended" && Exit_status !== undefined ? (Exit_status === 0 ? "done" : "error") : null,
      fault: state === "queued" ? waitingFault(job_state, comment) : null,
    },
  ];
}

/** Letters of job_state: B is an array, X an ended subjob, M a job that was moved to another server. */
const STATES: Readonly<Record<string, RunnerSighting["state"]>> = {
  Q: "queued",
  H: "queued",
  W: "queued",
  T: "queued",
  R: "running",
  E: "running",
  S: "running",
  U: "running",
  X: "ended",
  F: "ended",
};

function waitingFault(state: string, comment: string): Fault | null {
  if (/^Can Never Run/i.test(comment)) return { kind: "impossible", text: cleanText(comment) };
  if (state === "H") return { kind: "configuration", text: cleanText(comment === "" ? "the job is held" : comment) };
  return null;
}

/** Returns the lines of qdel that report a real failure. That a job does not exist, or has finished, is no failure. */
export function qdelFailures(stderr: string): string {
  const lines = stderr.split("\n").map((line) => line.trim());
  return lines
    .filter((line) => line !== "" && !/Unknown Job Id|has finished|finished job|Request invalid for state of job/i.test(line))
    .join(" ");
}
