// Reads the answers of OAR's commands (oarstat -J, oarnodes -J) and of its REST API. Pure.

import { z } from "zod";
import { isRecord } from "#support/guards.ts";
import type { Capacity, JobRef, JobSighting } from "../contract/cluster.ts";
import { BackendError, cleanText } from "../contract/fault.ts";
import { indexOf, RUNNING_STATES, WAITING_STATES } from "./request.ts";

/** A job as OAR describes it. index null: its command is not known, or it is no job of a batch. exit_status: what wait() returned. events: their types. */
export type OarJob = {
  readonly id: string;
  readonly array_id: number | null;
  readonly name: string;
  readonly owner: string;
  readonly state: string;
  readonly index: number | null;
  readonly exit_status: number | null;
  readonly start_s: number;
  readonly stop_s: number;
  readonly host: string | null;
  readonly message: string;
  readonly events: readonly string[];
  /** resources that the job has */
  readonly resources: number;
};

const event = z.object({ type: z.string() }).loose();
const number = z.coerce.number();

/** Fields that a whole description has by one name. */
const COMMON = {
  state: z.string(),
  owner: z.string(),
  name: z.string().nullish(),
  array_id: number.nullish(),
  command: z.string().nullish(),
  exit_code: number.nullish(),
  message: z.string().nullish(),
  events: z.array(event).nullish(),
};

const commandJob = z.object({
  ...COMMON,
  Job_Id: number,
  startTime: number.nullish(),
  stopTime: number.nullish(),
  assigned_network_address: z.array(z.string()).nullish(),
  assigned_resources: z.array(z.unknown()).nullish(),
});

const restJob = z.object({
  ...COMMON,
  id: number,
  start_time: number.nullish(),
  stop_time: number.nullish(),
  nodes: z.array(z.object({ network_address: z.string() }).loose()).nullish(),
  resources: z.array(z.unknown()).nullish(),
});

type Described = z.infer<z.ZodObject<typeof COMMON>>;
type Rest = Pick<OarJob, "id" | "start_s" | "stop_s" | "host" | "resources">;

function jobOf({ state, owner, name, array_id, command, exit_code, message, events }: Described, rest: Rest): OarJob {
  return {
    ...rest,
    array_id: array_id ?? null,
    name: name ?? "",
    owner,
    state,
    index: command === null || command === undefined ? null : indexOf(command),
    exit_status: exit_code ?? null,
    message: cleanText(message ?? ""),
    events: (events ?? []).map(({ type }) => type),
  };
}

/** Reads the output of `oarstat -J -f`, which is empty if there is no job. */
export function readOarstat(stdout: string): readonly OarJob[] {
  return Object.values(objectOf(stdout, "oarstat")).map((value) => {
    const job = understood(commandJob, value, "oarstat");
    return jobOf(job, {
      id: String(job.Job_Id),
      start_s: job.startTime ?? 0,
      stop_s: job.stopTime ?? 0,
      host: job.assigned_network_address?.[0] ?? null,
      resources: job.assigned_resources?.length ?? 0,
    });
  });
}

const page = z.object({ total: number, items: z.array(z.unknown()) });

/** Reads a page of jobs of the REST API. Throws if jobs are missing from the page, because a job that is missing would count as ended. */
export function readJobsPage(text: string): readonly OarJob[] {
  return wholePage(text).map((value) => {
    const job = understood(restJob, value, "the API");
    return jobOf(job, {
      id: String(job.id),
      start_s: job.start_time ?? 0,
      stop_s: job.stop_time ?? 0,
      host: job.nodes?.[0]?.network_address ?? null,
      resources: job.resources?.length ?? 0,
    });
  });
}

function wholePage(text: string): readonly unknown[] {
  const { total, items } = understood(page, objectOf(text, "the API"), "the API");
  if (items.length < total) throw new BackendError({ kind: "transient", text: `the API listed ${items.length} of ${total} items` });
  return items;
}

const resource = z.object({ state: z.string(), type: z.string().default("default") }).loose();

/** Counts the resources that can have jobs now, from `oarnodes -J` or from a page of the API. used: resources of running jobs. */
export function readCapacity(resources: readonly unknown[], used: number): Capacity {
  const total = resources.filter((value) => {
    const { state, type } = understood(resource, value, "the list of resources");
    return state === "Alive" && type === "default";
  }).length;
  return { total, free: Math.max(0, total - used) };
}

export const readOarnodes = (stdout: string): readonly unknown[] => Object.values(objectOf(stdout, "oarnodes"));
export const readResourcesPage = wholePage;

/** Returns the ids in the output of oarsub, in the order of the lines of parameters. If oarsub has refused the jobs, the result is empty. */
export const submittedIds = (text: string): readonly string[] =>
  [...text.matchAll(/^OAR_JOB_ID=([1-9][0-9]*)\s*$/gm)].map(([, id = ""]) => id);

const posted = z.object({ cmd_output: z.string() }).loose();
/** Returns what oarsub printed, from the answer to POST /jobs. */
export const readPosted = (text: string): string => understood(posted, objectOf(text, "the API"), "the API").cmd_output;

const fault = z.object({ title: z.string().default(""), message: z.string().default("") }).loose();

/** Returns the description of a failure in an answer of the API, in one line; "": the answer has none that can be read. */
export function failureText(text: string): string {
  const said = faultOf(text);
  if (said === null) return cleanText(text.replace(/<[^>]*>/g, " ").slice(0, 400));
  // The API repeats the whole command, with the parameters of the jobs.
  return cleanText(`${said.title}: ${said.message.replace(/\nCmd:[\s\S]*$/, "").replace(/\(Command was: [\s\S]*$/, "")}`);
}

/** Returns the message of a failure in an answer of the API, with its line breaks; "": the answer has none that can be read. */
export const failureMessage = (text: string): string => faultOf(text)?.message ?? "";

function faultOf(text: string): z.infer<typeof fault> | null {
  try {
    return fault.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

const version = z.object({ oar_version: z.string() }).loose();
export const readVersion = (text: string): string => cleanText(understood(version, objectOf(text, "the API"), "the API").oar_version);

/** Returns a job with its tag and index as the grid sees it. */
export function sightingOf(job: OarJob, index: number): JobSighting {
  const state = WAITING_STATES.has(job.state)
    ? "queued"
    : RUNNING_STATES.has(job.state)
      ? "running"
      : ENDED.has(job.state)
        ? "ended"
        : "unknown";
  return {
    tag: job.name,
    index,
    id: job.id,
    user: job.owner,
    state,
    reason: [job.state, job.message].filter((text) => text !== "").join(" "),
    host: job.host,
    ...(state === "ended" ? endingOf(job) : { exit_code: null, ending: null }),
    run_s: state === "ended" && job.start_s > 0 && job.stop_s >= job.start_s ? job.stop_s - job.start_s : null,
    mem_kb: null,
    fault: null,
  };
}

const ENDED: ReadonlySet<string> = new Set(["Terminated", "Error"]);

/** Terminated is the state of every program that ended by itself, whatever its exit code. In state Error, the events say who ended the job. */
function endingOf({ state, exit_status, events }: OarJob): Pick<JobSighting, "exit_code" | "ending"> {
  if (events.includes("WALLTIME")) return { ending: "walltime", exit_code: null };
  if (state !== "Terminated") return { ending: "killed", exit_code: null };
  if (exit_status === null) return { ending: "lost", exit_code: null };
  const signal = exit_status & 0x7f;
  return { ending: "exit", exit_code: signal > 0 ? 128 + signal : (exit_status >> 8) & 0xff };
}

/** Returns the sighting of a job that OAR does not know any more. */
export const lostJob = (ref: JobRef): JobSighting => ({
  ...ref,
  state: "ended",
  reason: "OAR does not know the job any more",
  host: null,
  exit_code: null,
  ending: "lost",
  run_s: null,
  mem_kb: null,
  fault: null,
});

function objectOf(text: string, who: string): Readonly<Record<string, unknown>> {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value)) return value;
  } catch {
    // Text that is no JSON is reported below.
  }
  throw new BackendError({ kind: "transient", text: `${who} gave no complete answer: ${cleanText(text.slice(-200))}` });
}

function understood<T>(shape: z.ZodType<T>, value: unknown, who: string): T {
  const parsed = shape.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new BackendError({
    kind: "transient",
    text: cleanText(`${who} answered in a form that is not understood: ${issue?.path.join(".")}: ${issue?.message}`),
  });
}
