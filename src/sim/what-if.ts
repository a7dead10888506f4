// Continues the same saved complex twice, unchanged and with changes, and compares what happens to its jobs.
//
// I1. Both continue from the same instant with the same jobs. A change is a request to the real server, which may refuse it.
// I2. A job's wait is counted from the time it was queued.

import { listOf } from "#model/attribute-reader.ts";
import { parseExecVnode } from "#model/request/exec-vnode.ts";
import type { Colouring, JobNames } from "#replay/colouring.ts";
import type { Gantt, GanttBar } from "#replay/gantt.ts";
import type { ServerState } from "#server/state/state.ts";
import type { StandIn } from "./stand-in.ts";

export type JobOutcome = {
  readonly job: string;
  readonly user: string;
  readonly queue: string;
  readonly ncpus: number;
  readonly queued_s: number;
  /** when the job started; null: it did not */
  readonly start_s: number | null;
  /** when the job ended; null: it did not */
  readonly end_s: number | null;
  readonly exec_vnode: string | null;
  /** true: the job was running when the state was saved */
  readonly ran: boolean;
};
export type ResvOutcome = {
  readonly resv: string;
  readonly name: string;
  readonly start_s: number;
  readonly end_s: number;
  readonly exec_vnode: string;
};
export type Outcome = {
  readonly from_s: number;
  /** the time of the last start or end of a job */
  readonly to_s: number;
  readonly jobs: readonly JobOutcome[];
  readonly resvs: readonly ResvOutcome[];
  readonly metrics: OutcomeMetrics;
};
export type OutcomeMetrics = {
  /** started: number of jobs that started after the state was saved; never_started: number of jobs that did not start */
  readonly started: number;
  readonly never_started: number;
  readonly wait_s_mean: number;
  readonly wait_s_median: number;
  readonly wait_s_max: number;
  readonly bounded_slowdown_mean: number;
  /** cpu seconds that were used, divided by those that were available until to_s */
  readonly utilisation: number;
  readonly makespan_s: number;
};

type Known = Pick<JobOutcome, "user" | "queue" | "ncpus" | "queued_s">;

/** Observes the jobs of a complex. Must be called before the complex continues. Returns a function that returns what happened until a time. */
export function watchJobs(standIn: StandIn): (until_s: number) => Outcome {
  const { state } = standIn.core;
  const from_s = standIn.now_s;
  const known = new Map<string, Known>();
  const ran = new Map<string, JobOutcome>();
  for (const job of state.jobs.values()) {
    const { euser, queue, Resource_List, qtime, ctime, job_state, stime, exec_vnode } = job.attrs;
    const queued_s = Number(qtime ?? ctime ?? from_s);
    const one = { user: String(euser ?? ""), queue, ncpus: Number(Resource_List["ncpus"] ?? 0), queued_s };
    known.set(job.id, one);
    if (!"RESU".includes(job_state)) continue;
    ran.set(job.id, { job: job.id, ...one, start_s: Number(stime ?? from_s), end_s: null, exec_vnode: exec_vnode ?? null, ran: true });
  }
  return (until_s) => {
    const resvs = resvsOf(state);
    standIn.run(until_s);
    const jobs = new Map(ran);
    for (const { job, start_s, exec_vnode } of standIn.starts) {
      const one = known.get(job) ?? known.get(arrayOf(job));
      if (one !== undefined && !ran.has(job)) jobs.set(job, { job, ...one, start_s, end_s: null, exec_vnode, ran: false });
    }
    for (const { job, end_s } of standIn.ends) {
      const one = jobs.get(job);
      if (one !== undefined) jobs.set(job, { ...one, end_s });
    }
    for (const [job, one] of known) {
      const waits = state.jobs.get(job);
      if (waits === undefined || jobs.has(job) || waits.subjobs !== undefined) continue;
      jobs.set(job, { job, ...one, start_s: null, end_s: null, exec_vnode: null, ran: false });
    }
    const all = [...jobs.values()].sort((a, b) => a.queued_s - b.queued_s || compareIds(a.job, b.job));
    const times = all.flatMap(({ start_s, end_s }) => [start_s ?? from_s, end_s ?? from_s]);
    const to_s = times.reduce((last, at_s) => Math.max(last, at_s), from_s);
    return {
      from_s,
      to_s,
      jobs: all,
      resvs: mergeResvs(resvs, resvsOf(state)),
      metrics: metricsOf(all, { from_s, to_s, cpus: cpusOf(state) }),
    };
  };
}

const arrayOf = (subjob: string): string => subjob.replace(/\[\d+\]/, "[]");
const compareIds = (a: string, b: string): number => Number.parseInt(a, 10) - Number.parseInt(b, 10) || (a < b ? -1 : 1);

function cpusOf(state: ServerState): number {
  let cpus = 0;
  for (const { attrs } of state.vnodes.values()) {
    const words = listOf(attrs, "state");
    const there = (attrs["resources_available"] as { readonly ncpus?: number } | undefined)?.ncpus ?? 0;
    if (!words.includes("down") && !words.includes("offline")) cpus += there;
  }
  return cpus;
}

/** Returns the promised occurrences of reservations, by reservation and start. */
function resvsOf(state: ServerState): Map<string, ResvOutcome> {
  const found = new Map<string, ResvOutcome>();
  for (const { id, attrs } of state.resvs.values())
    for (const { start_s, end_s, place } of attrs.promised?.occurrences ?? []) {
      const exec_vnode = attrs.promised?.places[place];
      if (exec_vnode === undefined) continue;
      found.set(`${id} ${start_s}`, { resv: id, name: String(attrs["Reserve_Name"] ?? ""), start_s, end_s, exec_vnode });
    }
  return found;
}

const mergeResvs = (a: ReadonlyMap<string, ResvOutcome>, b: ReadonlyMap<string, ResvOutcome>): ResvOutcome[] => [
  ...new Map([...a, ...b]).values(),
];

const SHORT_S = 10;

type Span = { readonly from_s: number; readonly to_s: number; readonly cpus: number };

function metricsOf(jobs: readonly JobOutcome[], { from_s, to_s, cpus }: Span): OutcomeMetrics {
  const started = jobs.filter(({ ran, start_s }) => !ran && start_s !== null);
  const waits = started.map(({ queued_s, start_s }) => (start_s as number) - queued_s).sort((a, b) => a - b);
  const slowdowns = started.flatMap(({ queued_s, start_s, end_s }) => {
    if (end_s === null) return [];
    const run_s = end_s - (start_s as number);
    return [Math.max(1, ((start_s as number) - queued_s + run_s) / Math.max(run_s, SHORT_S))];
  });
  const used = jobs.reduce(
    (sum, { ncpus, start_s, end_s }) => (start_s === null ? sum : sum + ncpus * Math.max(0, (end_s ?? to_s) - Math.max(start_s, from_s))),
    0,
  );
  return {
    started: started.length,
    never_started: jobs.filter(({ start_s }) => start_s === null).length,
    wait_s_mean: mean(waits),
    wait_s_median: waits[Math.floor((waits.length - 1) / 2)] ?? 0,
    wait_s_max: waits.at(-1) ?? 0,
    bounded_slowdown_mean: mean(slowdowns),
    utilisation: to_s === from_s || cpus === 0 ? 0 : used / (cpus * (to_s - from_s)),
    makespan_s: to_s - from_s,
  };
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

/** Returns the names (of user, queue and partition) that can decide the colour of a job in a chart. */
export function namesOf(state: ServerState, { user, queue }: Pick<JobOutcome, "user" | "queue">): JobNames {
  return { user, queue, partition: String(state.queues.get(queue)?.attrs["partition"] ?? "pbs-default") };
}

/** Converts a schedule to bars: one row for each vnode, with the vnodes of a partition together. Suspended jobs are drawn as if they had continued. */
export function ganttOf(title: string, state: ServerState, { jobs, resvs, to_s }: Outcome, colouring: Colouring): Gantt {
  const vnodes = [...state.vnodes.values()];
  const rowOf = new Map(vnodes.map(({ name }, row) => [name, row]));
  const rows = vnodes.map(({ name, attrs }) => ({
    name,
    group: String(attrs["partition"] ?? ""),
    slots: (attrs["resources_available"] as { readonly ncpus?: number } | undefined)?.ncpus ?? 0,
  }));
  const bars: GanttBar[] = [];
  const add = (exec_vnode: string, bar: Omit<GanttBar, "row" | "slots">): void => {
    const slots = new Map<number, number>();
    for (const { vnode, pairs } of parseExecVnode(exec_vnode).flat()) {
      const row = rowOf.get(vnode);
      if (row === undefined) continue;
      slots.set(row, (slots.get(row) ?? 0) + Number(pairs.find(({ name }) => name === "ncpus")?.text ?? 0));
    }
    for (const [row, count] of slots) if (count > 0) bars.push({ ...bar, row, slots: count });
  };
  for (const { resv, start_s, end_s, exec_vnode } of resvs)
    add(exec_vnode, { id: resv, kind: "reservation", from_s: start_s, to_s: end_s, colour: "" });
  for (const one of jobs) {
    const { job, queued_s, start_s, end_s, exec_vnode } = one;
    if (start_s !== null && exec_vnode !== null)
      add(exec_vnode, {
        id: job,
        kind: "job",
        from_s: start_s,
        to_s: Math.max(end_s ?? to_s, start_s + 1),
        submit_s: queued_s,
        colour: colouring === "job" ? job : namesOf(state, one)[colouring],
      });
  }
  const never_started_s = jobs.flatMap(({ start_s, queued_s }) => (start_s === null ? [queued_s] : []));
  return { title, rows, bars, never_started_s };
}
