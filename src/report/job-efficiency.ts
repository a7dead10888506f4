// Compares what one job has used with what it requested (`partita seff`). Pure.

import { parseDuration, renderDuration } from "#model/values/duration.ts";
import { parseSize, sizeBytes } from "#model/values/size.ts";

/** A job's attributes as qstat -f shows them: resources and usage as names with texts. */
export type JobFacts = {
  readonly id: string;
  readonly name: string;
  readonly owner: string;
  readonly queue: string;
  /** the letter of the state, for example `F` */
  readonly state: string;
  readonly exit_status: number | null;
  readonly hosts: readonly string[];
  readonly asked: Readonly<Record<string, string>>;
  readonly used: Readonly<Record<string, string>>;
};

/** Shares from 0 to 1; null: the job does not state the values. Times in seconds, memory in bytes. */
export type JobEfficiency = {
  readonly job: string;
  readonly name: string;
  readonly owner: string;
  readonly queue: string;
  readonly state: string;
  readonly exit_status: number | null;
  readonly hosts: readonly string[];
  readonly ncpus: number;
  readonly cput_s: number | null;
  readonly walltime_s: number | null;
  readonly walltime_asked_s: number | null;
  readonly mem_bytes: number | null;
  readonly mem_asked_bytes: number | null;
  readonly cpu_efficiency: number | null;
  readonly walltime_efficiency: number | null;
  readonly mem_efficiency: number | null;
};

/** Computes the efficiency of a job that runs or has run. */
export function jobEfficiency(facts: JobFacts): JobEfficiency {
  const { id, name, owner, queue, state, exit_status, hosts, asked, used } = facts;
  const ncpus = Number(used["ncpus"] ?? asked["ncpus"] ?? 1) || 1;
  const cput_s = seconds(used["cput"]);
  const walltime_s = seconds(used["walltime"]);
  const walltime_asked_s = seconds(asked["walltime"]);
  const mem_bytes = bytes(used["mem"]);
  const mem_asked_bytes = bytes(asked["mem"]);
  return {
    job: id,
    name,
    owner,
    queue,
    state,
    exit_status,
    hosts,
    ncpus,
    cput_s,
    walltime_s,
    walltime_asked_s,
    mem_bytes,
    mem_asked_bytes,
    cpu_efficiency: share(cput_s, walltime_s === null ? null : walltime_s * ncpus),
    walltime_efficiency: share(walltime_s, walltime_asked_s),
    mem_efficiency: share(mem_bytes, mem_asked_bytes),
  };
}

const seconds = (text: string | undefined): number | null => (text === undefined ? null : parseDuration(text));

function bytes(text: string | undefined): number | null {
  const size = text === undefined ? null : parseSize(text);
  return size === null ? null : sizeBytes(size);
}

const share = (used: number | null, of: number | null): number | null => (used === null || of === null || of === 0 ? null : used / of);

/** Returns the efficiency as text for people, with one fact in each line. */
export function efficiencyText(job: JobEfficiency): string {
  const line = (name: string, text: string): string => `${`${name}:`.padEnd(18)}${text}\n`;
  const ended = job.exit_status === null ? "" : `, exit status ${job.exit_status}`;
  return [
    line("Job", `${job.job} (${job.name})`),
    line("Owner, queue", `${job.owner}, ${job.queue}`),
    line("State", `${job.state}${ended}`),
    line("Hosts", job.hosts.length === 0 ? "-" : job.hosts.join(" ")),
    line("Cpus", String(job.ncpus)),
    line("Cpu time", `${time(job.cput_s)}${of(job.cpu_efficiency, `${time(job.walltime_s)} on ${job.ncpus} cpus`)}`),
    line("Run time", `${time(job.walltime_s)}${of(job.walltime_efficiency, `the requested ${time(job.walltime_asked_s)}`)}`),
    line("Memory", `${memory(job.mem_bytes)}${of(job.mem_efficiency, `the requested ${memory(job.mem_asked_bytes)}`)}`),
  ].join("");
}

const of = (efficiency: number | null, whole: string): string =>
  efficiency === null ? "" : `, ${(100 * efficiency).toFixed(1)} % of ${whole}`;
const time = (value_s: number | null): string => (value_s === null ? "unknown" : renderDuration(value_s));

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"] as const;

function memory(value: number | null): string {
  if (value === null) return "unknown";
  const unit = Math.min(UNITS.length - 1, value < 1 ? 0 : Math.floor(Math.log2(value) / 10));
  return `${(value / 1024 ** unit).toFixed(unit === 0 ? 0 : 1)} ${UNITS[unit] ?? ""}`;
}
