// Reads what LSF answers: the output of bsub, bjobs -json, bqueues and bkill, as IBM's reference of LSF 10.1 documents it. Pure.

import { z } from "zod";
import { isRecord } from "#support/guards.ts";
import type { RunnerSighting } from "../contract/backend.ts";
import { BackendError, cleanText, type Fault } from "../contract/fault.ts";
import { type Of, unreadable } from "../contract/sightings.ts";
import { isTagOf } from "../contract/tag.ts";
import { pendingFault } from "./faults.ts";

/** Returns the id of a job in the output of bsub: `Job <12> is submitted to queue <normal>.` null: none. */
export function submittedJob(stdout: string): string | null {
  return /^Job <([1-9][0-9]{0,11})> is submitted to /m.exec(stdout)?.[1] ?? null;
}

const text = z.coerce.string();
const record = z.object({
  JOBID: text,
  JOBINDEX: text.default(""),
  STAT: text,
  USER: text.default(""),
  EXEC_HOST: text.default(""),
  PEND_REASON: text.default(""),
  EXIT_REASON: text.default(""),
  JOB_NAME: text,
});
const list = z.object({ COMMAND: z.literal("bjobs"), JOBS: z.number(), RECORDS: z.array(z.unknown()) });

/** Reads the list of bjobs. Throws if it is not whole. If there are no jobs, bjobs prints nothing here, and `No job found` on stderr. */
export function readBjobs(stdout: string, of: Of): readonly RunnerSighting[] {
  if (stdout.trim() === "") return [];
  try {
    const { JOBS, RECORDS } = list.parse(JSON.parse(stdout));
    if (JOBS !== RECORDS.length) throw new Error(`${RECORDS.length} of ${JOBS} jobs`);
    return RECORDS.flatMap((each) => readJob(each, of));
  } catch (error) {
    throw new BackendError(
      { kind: "transient", text: `bjobs printed no complete list: ${cleanText(stdout.slice(-200))}` },
      { cause: error },
    );
  }
}

function readJob(value: unknown, of: Of): readonly RunnerSighting[] {
  const parsed = record.safeParse(value);
  if (!parsed.success) {
    const name = isRecord(value) ? value["JOB_NAME"] : null;
    return unreadable("a job", typeof name === "string" ? name.replace(/\[[0-9]+\]$/, "") : null, of);
  }
  const { JOBID, JOBINDEX, STAT, USER, EXEC_HOST, PEND_REASON, EXIT_REASON, JOB_NAME } = parsed.data;
  const job = /^([1-9][0-9]{0,11})(?:\[([0-9]{1,5})\])?$/.exec(JOBID);
  const named = /^(.*?)(?:\[([0-9]{1,5})\])?$/s.exec(JOB_NAME);
  const name = named?.[1] ?? "";
  const tag = name.slice(of.prefix.length);
  const index = Number(job?.[2] ?? named?.[2] ?? JOBINDEX);
  if (job === null || !name.startsWith(of.prefix) || !isTagOf(tag, of) || !Number.isInteger(index) || index < 1) return [];
  const state = STATES[STAT] ?? "unknown";
  const why = state === "queued" ? PEND_REASON : state === "ended" ? EXIT_REASON : "";
  const host = /^(?:[0-9]+\*)?([^:*]*)/.exec(EXEC_HOST)?.[1] ?? "";
  return [
    {
      tag,
      index: index - 1,
      id: `${job[1]}[${index}]`,
      state,
      reason: cleanText([STAT, why].filter((each) => each !== "" && each !== "-").join(" ")),
      user: USER,
      host: host === "" || host === "-" ? null : cleanText(host),
      ending: STAT === "DONE" ? "done" : STAT === "EXIT" ? (RETRY.test(EXIT_REASON) ? "retry" : "error") : null,
      fault: state === "queued" ? waitingFault(STAT, PEND_REASON) : null,
    },
  ];
}

/** Reasons for the end of a runner that have nothing to do with the runner itself. */
const RETRY =
  /TERM_(?:PREEMPT|REQUEUE|ADMIN|OWNER|FORCE|LOAD|WINDOW|DEADLINE|ZOMBIE|BUCKET)|preempt|host (?:down|failure)|killed by (?:owner|admin)/i;

const STATES: Readonly<Record<string, RunnerSighting["state"]>> = {
  PEND: "queued",
  PSUSP: "queued",
  WAIT: "queued",
  PROV: "running",
  RUN: "running",
  USUSP: "running",
  SSUSP: "running",
  DONE: "ended",
  EXIT: "ended",
  UNKWN: "unknown",
  ZOMBI: "unknown",
};

function waitingFault(stat: string, reason: string): Fault | null {
  if (stat === "PSUSP") return { kind: "configuration", text: "PSUSP: the job was suspended before its start" };
  return pendingFault(cleanText(reason));
}

export type Queue = { readonly name: string; readonly status: string };

/** Returns the queues in the output of bqueues: columns QUEUE_NAME PRIO STATUS ... */
export function readBqueues(stdout: string): readonly Queue[] {
  const [head = "", ...lines] = stdout.split("\n");
  if (!/^QUEUE_NAME\s+PRIO\s+STATUS\b/.test(head))
    throw new BackendError({ kind: "transient", text: `bqueues printed no list: ${cleanText(stdout.slice(0, 200))}` });
  return lines.flatMap((line) => {
    const [name, , status] = line.trim().split(/\s+/);
    return name === undefined || status === undefined ? [] : [{ name, status }];
  });
}

/** Returns the lines of bkill that report a real failure. That a job has ended is no failure. */
export function bkillFailures(stdout: string, stderr: string): string {
  const lines = `${stdout}\n${stderr}`.split("\n").map((line) => line.trim());
  return lines
    .filter((line) => line !== "" && !/is being terminated|already finished|No matching job found|being signaled/i.test(line))
    .join(" ");
}
