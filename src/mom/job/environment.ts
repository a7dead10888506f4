// The environment of a job (docs/reference/files.md 6): it has only the variables that are set here, and none of the mom's own environment. Pure.

import { chunkHosts } from "#model/request/host-entry.ts";
import type { MomJob } from "#protocol/mom-link.ts";
import { chunksOf, isInteractive, jobNumbers, listOf, textOf } from "./attrs.ts";

export type JobPlaces = { readonly home: string; readonly jobdir: string; readonly tmpdir: string; readonly nodefile: string };

export type EnvironmentFacts = JobPlaces & {
  readonly user: string;
  readonly shell: string;
  /** PBS_MOMPORT */
  readonly port: number;
  /** variables of the file pbs_environment */
  readonly site: readonly (readonly [name: string, value: string])[];
  /** variables that name the devices of a runner's allocation; absent: the mom is not a runner */
  readonly devices?: readonly (readonly [name: string, value: string])[];
};

/** Variables by which cluster managers tell a job its devices. */
const DEVICE_VARIABLES = ["CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"];

/** Returns the devices that the environment of a runner names. The runner gives them to its jobs; it has one job at a time, so that each device has one. */
export const deviceVariables = (own: { readonly [name: string]: string | undefined }): readonly (readonly [string, string])[] =>
  DEVICE_VARIABLES.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]] as const]));

/**
 * node: the number of the host among the job's hosts; the mother superior is 0. task: the number of the task on that host; the job's script is task 1 of the
 * mother superior.
 */
export type TaskNumbers = { readonly node: number; readonly task: number };
const FIRST_TASK: TaskNumbers = { node: 0, task: 1 };

const PATH_DEFAULT = "/usr/local/bin:/usr/bin:/bin";

/** Returns `NAME=value` entries. If a name occurs several times, PBS's own variable counts, else that of the devices, else the user's variable (-v, -V), else the variable of the site's file. */
export function jobEnvironment(job: MomJob, facts: EnvironmentFacts, task: TaskNumbers = FIRST_TASK): string[] {
  const env = new Map<string, string>([["PATH", PATH_DEFAULT]]);
  for (const [name, value] of facts.site) env.set(name, value);
  for (const [name, value] of variableList(listOf(job.attrs, "Variable_List"))) env.set(name, value);
  for (const [name, value] of facts.devices ?? []) env.set(name, value);
  const threads = String(threadsOf(job));
  const set: { readonly [name: string]: string | null } = {
    HOME: facts.home,
    LOGNAME: facts.user,
    USER: facts.user,
    SHELL: facts.shell,
    PBS_JOBNAME: textOf(job.attrs, "Job_Name") ?? "",
    PBS_JOBID: job.id,
    PBS_QUEUE: job.queue,
    PBS_JOBCOOKIE: job.cookie,
    PBS_NODENUM: String(task.node),
    PBS_TASKNUM: String(task.task),
    PBS_MOMPORT: String(facts.port),
    PBS_NODEFILE: facts.nodefile,
    NCPUS: threads,
    OMP_NUM_THREADS: threads,
    PBS_JOBDIR: facts.jobdir,
    TMPDIR: facts.tmpdir,
    PBS_ENVIRONMENT: isInteractive(job.attrs) ? "PBS_INTERACTIVE" : "PBS_BATCH",
    ENVIRONMENT: "BATCH",
    PBS_ACCOUNT: textOf(job.attrs, "Account_Name"),
    PBS_ARRAY_INDEX: jobNumbers(job.id).index,
    PBS_ARRAY_ID: jobNumbers(job.id).index === null ? null : job.id.replace(/\[\d+\]/, "[]"),
  };
  for (const [name, value] of Object.entries(set)) {
    if (value !== null) env.set(name, value);
  }
  return [...env].filter(([name, value]) => name !== "" && !`${name}${value}`.includes("\0")).map(([name, value]) => `${name}=${value}`);
}

/** Reads elements `NAME=value`. In them, a backslash protects a comma, a quote or a backslash. An element without `=` is a variable with an empty value. */
export function variableList(elements: readonly string[]): [string, string][] {
  return elements.map((element) => {
    const plain = element.replaceAll(/\\([,\\'"])/g, "$1");
    const equals = plain.indexOf("=");
    return equals < 0 ? [plain, ""] : [plain.slice(0, equals), plain.slice(equals + 1)];
  });
}

/** Returns ompthreads of the job's first chunk, else its ncpus, else 1. */
function threadsOf(job: MomJob): number {
  const [chunk = {}] = chunksOf(job.attrs);
  const stated = Number(chunk["ompthreads"] ?? chunk["ncpus"] ?? 1);
  return Number.isInteger(stated) && stated > 0 ? stated : 1;
}

/** Returns the text of PBS_NODEFILE. It has the host of each chunk as often as the chunk's mpiprocs says (default 1). */
export function nodefileText(job: MomJob): string {
  const chunks = chunksOf(job.attrs);
  const lines = chunkHosts(job.exec_host).flatMap((host, at) => {
    const stated = Number(chunks[at]?.["mpiprocs"] ?? 1);
    return Array.from({ length: Number.isInteger(stated) && stated >= 0 ? stated : 1 }, () => `${host}\n`);
  });
  return lines.join("");
}

/** Reads the text of pbs_environment. A line is `NAME=value`, or a NAME alone: its value then comes from the daemon's own environment. `#` begins a comment. */
export function siteEnvironment(text: string, own: { readonly [name: string]: string | undefined }): [string, string][] {
  const found: [string, string][] = [];
  for (const raw of text.split("\n")) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) continue;
    const equals = line.indexOf("=");
    if (equals > 0) found.push([line.slice(0, equals).trim(), line.slice(equals + 1)]);
    else if (equals < 0 && own[line] !== undefined) found.push([line, own[line]]);
  }
  return found;
}
