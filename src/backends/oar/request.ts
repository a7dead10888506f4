// Makes the requests to OAR: what a batch of jobs becomes as an array of OAR. Pure.
//
// O1. The command of an array is the same fixed text for all jobs. The program of a job is in its line of parameters, as base64 in single quotes: OAR's API passes the
//     command through two shells, but not the parameters. The shell of the node runs the command followed by the line.
// O2. The last word of the line is the index of the job, which OAR's lists show with the command.
// O3. Texts of users that are options of oarsub have no character that a shell reads inside double quotes.

import type { JobBatch, JobText } from "../contract/cluster.ts";
import { BackendError } from "../contract/fault.ts";
import { jobScript } from "../contract/job-script.ts";

/** The largest number of jobs in one array. It is limited because OAR stores the text of each job. */
export const ARRAY_MAX = 200;
/** The longest line of parameters. The kernel limits one argument of the node's shell to 128 KiB. */
const LINE_MAX = 100_000;

/** What every job of an array runs, before its line of parameters. */
const COMMAND = "/bin/sh -c";

/** An array for OAR. options: those of oarsub by their long names; several values of one option are a list; the value true is an option without a value. */
export type OarArray = {
  readonly options: Readonly<Record<string, string | true | readonly string[]>>;
  readonly command: string;
  readonly param_file: string;
};

/** Returns the array of held jobs for a batch. queue: the queue that the cluster's options name; null: OAR's default queue. */
export function arrayOf(batch: JobBatch, queue: string | null): OarArray {
  const { tag, jobs, resources, walltime_s, best_effort, job_type, project, properties } = batch;
  if (resources.kind !== "hierarchy") throw impossible("OAR takes resources as a hierarchy only");
  const types = [
    ...(best_effort ? ["besteffort"] : []),
    ...(job_type === null || job_type === "besteffort" ? [] : [word("cluster_job_type", job_type)]),
  ];
  const chosen = batch.queue ?? queue;
  return {
    options: {
      hold: true,
      name: tag,
      directory: "/",
      stdout: "/dev/null",
      stderr: "/dev/null",
      resource: `${word("resources", resources.resources)},walltime=${walltimeText(walltime_s)}`,
      ...(types.length === 0 ? {} : { type: types }),
      ...(chosen === null ? {} : { queue: word("queue", chosen) }),
      ...(project === null ? {} : { project: word("project", project) }),
      ...(properties === null ? {} : { property: word("properties", properties) }),
    },
    command: COMMAND,
    param_file: jobs.map((job, index) => `${lineOf(job, index)}\n`).join(""),
  };
}

function lineOf(job: JobText, index: number): string {
  const script = jobScript({ jobs: [job], index: "0", node_file: ['CIGRI_NODE_FILE="$OAR_NODE_FILE"'] });
  const line = `'eval "$(printf %s ${base64(script)} | base64 -d)"' ${index}`;
  if (line.length > LINE_MAX) throw impossible(`the words and variables of job ${index} have more than ${LINE_MAX} characters together`);
  return line;
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Returns the index of a job from its command as OAR lists it; null: the command is none of arrayOf. */
export function indexOf(command: string): number | null {
  const [, digits] = /^\/bin\/sh -c 'eval .*' ([0-9]{1,6})\s*$/s.exec(command) ?? [];
  return digits === undefined ? null : Number(digits);
}

const walltimeText = (seconds: number): string => {
  const whole = Math.max(1, Math.ceil(seconds));
  return [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60].join(":");
};

function word(name: string, text: string): string {
  if (/^[^\p{Cc}"`$\\]{1,4096}$/u.test(text)) return text;
  throw impossible(`${name}: quotes ", backquotes, $, backslashes and line ends cannot be handed to OAR`);
}

const impossible = (text: string): BackendError => new BackendError({ kind: "impossible", text });

/** Returns the words after `oarsub`. param_file: the file with the lines of parameters. */
export function oarsubArgs({ options, command }: OarArray, param_file: string): readonly string[] {
  const words = Object.entries(options).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : [value].flat().map((each) => `--${name}=${each}`),
  );
  return [...words, `--array-param-file=${param_file}`, command];
}

/** Returns the body of POST /jobs. */
export function jobsBody({ options, command, param_file }: OarArray): Readonly<Record<string, unknown>> {
  const texts = Object.fromEntries(Object.entries(options).map(([name, value]) => [name, value === true ? "1" : value]));
  return { ...texts, command, param_file };
}

/** States of jobs that have not ended. */
const WAITING = ["Waiting", "Hold", "toAckReservation"] as const;
const RUNNING = ["toLaunch", "Launching", "Running", "Resuming", "Suspended", "Finishing"] as const;
export const LIVE_STATES: readonly string[] = [...WAITING, ...RUNNING];
export const WAITING_STATES: ReadonlySet<string> = new Set(WAITING);
export const RUNNING_STATES: ReadonlySet<string> = new Set(RUNNING);

const listed = (values: readonly string[]): string => values.map((value) => `'${value}'`).join(",");

/** Conditions of SQL on OAR's table of jobs, for oarstat. Names of grids and clusters and ids have no quotes (tag.ts). */
export const liveSql = (grid: string, cluster: string): string =>
  `job_name LIKE '${grid}.${cluster}.%' AND state IN (${listed(LIVE_STATES)})`;
export const runningSql = (): string => `state IN (${listed([...RUNNING_STATES])})`;
export const idsSql = (ids: readonly string[]): string => `job_id IN (${ids.map(checkedId).join(",")})`;

/** Returns the id of a job as it stands in conditions and addresses. Anything but digits is a programmer's error. */
export function checkedId(id: string): string {
  if (!/^[1-9][0-9]{0,15}$/.test(id)) throw new RangeError(`no id of a job: ${JSON.stringify(id)}`);
  return id;
}
