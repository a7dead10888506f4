// Reads the answers of a PBS complex about jobs of campaigns: qstat -f -F json, pbsnodes -av -F json and qstat -Qf -F json. Pure.

import { z } from "zod";
import { JOB_EXEC } from "#model/exit-status.ts";
import { isRecord } from "#support/guards.ts";
import type { Capacity, JobSighting } from "../contract/cluster.ts";
import { BackendError, cleanText, type Fault } from "../contract/fault.ts";
import { isTagOf } from "../contract/tag.ts";

const job = z.object({
  Job_Name: z.coerce.string(),
  Job_Owner: z.string().default(""),
  job_state: z.string(),
  comment: z.coerce.string().default(""),
  exec_host: z.string().optional(),
  Exit_status: z.coerce.number().optional(),
  substate: z.coerce.number().optional(),
  resources_used: z.object({ walltime: z.string().optional(), mem: z.coerce.string().optional() }).loose().optional(),
});

/** of: the key of the grid and the name of the cluster in tags. */
type Of = { readonly complex: string; readonly backend: string };

/** Reads the jobs of the grid in the output of qstat. Throws if the output is not complete, because a job that is missing would count as ended. */
export function readJobs(stdout: string, of: Of): readonly JobSighting[] {
  return Object.entries(section(stdout, "Jobs", "qstat")).flatMap(([id, value]) => readJob(id, value, of));
}

function readJob(id: string, value: unknown, of: Of): readonly JobSighting[] {
  const parts = /^([0-9]{1,12})(?:\[([0-9]*)\])?\./.exec(id);
  const name = isRecord(value) ? String(value["Job_Name"]) : "";
  // The entry of an array itself (`12[].server`) is no job of a campaign.
  if (parts === null || parts[2] === "" || !isTagOf(name, of)) return [];
  const parsed = job.safeParse(value);
  if (!parsed.success) throw new BackendError({ kind: "transient", text: cleanText(`${id} is listed in a form that is not understood`) });
  const { Job_Owner, job_state, comment, exec_host, Exit_status, substate, resources_used } = parsed.data;
  const state = STATES[job_state] ?? "unknown";
  // The record of a subjob that has just ended may not be written yet. The grid then asks again how the job ended.
  const is_early = Exit_status === undefined && substate !== undefined && HAS_RUN.has(substate);
  const how = state === "ended" && !is_early ? endingOf(Exit_status) : { ending: null, exit_code: null };
  return [
    {
      tag: name,
      index: Number(parts[2] ?? 0),
      id,
      user: Job_Owner.split("@")[0] ?? null,
      state,
      reason: cleanText(comment === "" ? job_state : comment),
      host: exec_host === undefined ? null : cleanText(exec_host.split("/")[0] ?? ""),
      ...how,
      run_s: secondsOf(resources_used?.walltime),
      mem_kb: kilobytesOf(resources_used?.mem),
      fault: state === "queued" ? waitingFault(comment) : null,
    },
  ];
}

/** Substates of jobs that have run and ended: 92 successful, 93 failed. */
const HAS_RUN: ReadonlySet<number> = new Set([92, 93]);

/** Letters of job_state: X is an ended subjob, M a job that was moved to another server. */
const STATES: Readonly<Record<string, JobSighting["state"]>> = {
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

/** PBS adds this to the number of the signal that ended a job. */
const SIGNALLED = 256;
/** SIGKILL and SIGTERM come from qdel, from a preemption or from an administrator. Other signals are faults of the program. */
const FROM_OUTSIDE: ReadonlySet<number> = new Set([9, 15]);

function endingOf(status: number | undefined): Pick<JobSighting, "ending" | "exit_code"> {
  if (status === undefined) return { ending: "killed", exit_code: null };
  if (status === JOB_EXEC.KILL_WALLTIME) return { ending: "walltime", exit_code: null };
  const signal = status - SIGNALLED;
  if (status < 0 || FROM_OUTSIDE.has(signal)) return { ending: "killed", exit_code: null };
  return { ending: "exit", exit_code: signal > 0 ? 128 + signal : status };
}

function secondsOf(text: string | undefined): number | null {
  const match = /^(\d+):(\d\d):(\d\d)$/.exec(text ?? "");
  return match === null ? null : Number(match[1]) * 3600 + Number(match[2]) * 60 + Number(match[3]);
}

const kilobytesOf = (text: string | undefined): number | null => {
  const match = /^(\d+)kb$/.exec(text ?? "");
  return match === null ? null : Number(match[1]);
};

const waitingFault = (comment: string): Fault | null =>
  /^Can Never Run/i.test(comment) ? { kind: "impossible", text: cleanText(comment) } : null;

const node = z.object({
  state: z.string(),
  partition: z.string().optional(),
  resources_available: z
    .object({ ncpus: z.coerce.number().default(0) })
    .loose()
    .optional(),
  resources_assigned: z
    .object({ ncpus: z.coerce.number().default(0) })
    .loose()
    .optional(),
});

/** Counts the cpus of the vnodes of a partition; null: of the vnodes without a partition. Vnodes that take no jobs have no free cpus, and those that are down have none. */
export function readCapacity(stdout: string, partition: string | null): Capacity {
  let [total, free] = [0, 0];
  for (const [name, value] of Object.entries(section(stdout, "nodes", "pbsnodes"))) {
    const parsed = node.safeParse(value);
    if (!parsed.success)
      throw new BackendError({ kind: "transient", text: cleanText(`vnode ${name} is listed in a form that is not understood`) });
    const { state, resources_available, resources_assigned } = parsed.data;
    if ((parsed.data.partition ?? null) !== partition || /down|unknown|offline|stale|provisioning/.test(state)) continue;
    const cpus = resources_available?.ncpus ?? 0;
    total += cpus;
    free += Math.max(0, cpus - (resources_assigned?.ncpus ?? 0));
  }
  return { total, free };
}

const queue = z.object({
  queue_type: z.string().optional(),
  enabled: z.string().optional(),
  started: z.string().optional(),
  partition: z.string().optional(),
});

/** Returns the first queue of a partition that takes and starts jobs; null: there is none. */
export function queueOfPartition(stdout: string, partition: string): string | null {
  const found = Object.entries(section(stdout, "Queue", "qstat -Q")).find(([, value]) => {
    const { data } = queue.safeParse(value);
    return data?.partition === partition && data.queue_type === "Execution" && data.enabled === "True" && data.started === "True";
  });
  return found?.[0] ?? null;
}

function section(stdout: string, name: string, program: string): Readonly<Record<string, unknown>> {
  if (stdout.trim() === "") return {};
  try {
    const whole: unknown = JSON.parse(stdout);
    const part = isRecord(whole) ? (whole[name] ?? {}) : null;
    if (isRecord(part)) return part;
  } catch {
    // Text that is no JSON is reported below.
  }
  throw new BackendError({ kind: "transient", text: `${program} printed no complete list: ${cleanText(stdout.slice(-200))}` });
}
