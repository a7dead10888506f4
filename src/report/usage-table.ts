// Adds up accounting records (docs/reference/files.md 4) in a table of usage, by user, group, project, account, queue, partition, host, month or day, or by several
// of them at once. Pure. Millions of records are read in one pass, and only the rows of the table are kept in memory.
//
// U1. Records E (a job has ended) count as jobs, records R (a job was requeued) only as reruns. The usage of a requeued run is counted, too.
// U2. Records of whole arrays and of reservations do not count: every subjob has records of its own.
// U3. A job on several hosts counts once in the row of each host. Its cpu time, and the seconds that it held cpus, are divided by the cpus on each host.
// U4. Efficiencies compare sums, so that long jobs weigh more than short ones. Only jobs that state both values count.

import { dateOf, eachRecord, idOf, itemReader, type RecordPlace, typeOf } from "#model/accounting/record-text.ts";
import { firstVnode } from "#model/request/exec-vnode.ts";
import { entryTexts } from "#model/request/host-entry.ts";
import { parseDuration } from "#model/values/duration.ts";
import { parseSize, sizeBytes } from "#model/values/size.ts";

/** What a report can be grouped by. */
export const GROUPINGS = ["user", "group", "project", "account", "queue", "partition", "host", "month", "day"] as const;
export type Grouping = (typeof GROUPINGS)[number];

/**
 * A row of the report. key: one value for each grouping. Times in seconds. An efficiency is the used share of the request. It can exceed 1, because
 * a job can use more than it requested;
 * null: no job states the values.
 */
export type UsageRow = {
  readonly key: readonly string[];
  readonly jobs: number;
  /** jobs with an exit status other than 0 */
  readonly failed: number;
  readonly reruns: number;
  /** cpus times run time */
  readonly cpu_s: number;
  /** from the time at which a job could start until its start; null: no job states it */
  readonly wait_mean_s: number | null;
  readonly wait_max_s: number | null;
  /** cput used / (cpus times run time) */
  readonly cpu_efficiency: number | null;
  /** run time / requested walltime */
  readonly walltime_efficiency: number | null;
  /** mem used / requested mem */
  readonly mem_efficiency: number | null;
};

type Share = { used: number; asked: number };
type Sums = {
  jobs: number;
  failed: number;
  reruns: number;
  cpu_s: number;
  waits: number;
  wait_s: number;
  wait_max_s: number;
  readonly cput: Share;
  readonly walltime: Share;
  readonly mem: Share;
};

/** What one record says. */
type Run = {
  readonly ended: boolean;
  readonly failed: boolean;
  readonly ncpus: number;
  readonly run_s: number;
  readonly wait_s: number | null;
  readonly cput_s: number | null;
  readonly asked_s: number | null;
  readonly mem_kb: number | null;
  readonly asked_kb: number | null;
};

const ITEMS = [
  "user",
  "group",
  "project",
  "account",
  "queue",
  "exec_host",
  "exec_vnode",
  "etime",
  "start",
  "end",
  "Exit_status",
  "Resource_List.ncpus",
  "Resource_List.walltime",
  "Resource_List.mem",
  "resources_used.cput",
  "resources_used.ncpus",
  "resources_used.walltime",
  "resources_used.mem",
] as const;
type Items = { readonly [name in (typeof ITEMS)[number]]: number };
const AT = Object.fromEntries(ITEMS.map((name, at) => [name, at])) as Items;
type Values = readonly (string | undefined)[];

/** Which records count. from, to: local days YYYY-MM-DD, both included; users: null means all. */
export type UsageFilter = { readonly from: string | null; readonly to: string | null; readonly users: ReadonlySet<string> | null };

export class UsageTable {
  readonly #by: readonly Grouping[];
  readonly #filter: UsageFilter;
  /** the partition of a vnode; used only when the report is grouped by partition */
  readonly #partitionOf: (vnode: string) => string;
  readonly #read = itemReader(ITEMS);
  readonly #rows = new Map<string, Sums>();
  records = 0;

  constructor(by: readonly Grouping[], filter: UsageFilter, partitionOf: (vnode: string) => string) {
    this.#by = by;
    this.#filter = filter;
    this.#partitionOf = partitionOf;
  }

  /** Counts the records of a piece of a file. Returns the position at which the next piece must begin (an unfinished line is read again). */
  add(text: string): number {
    return eachRecord(text, "ER", (place) => this.#count(text, place));
  }

  #count(text: string, place: RecordPlace): void {
    const id = idOf(text, place);
    if (id.includes("[]") || !isJobId(id)) return;
    const date = dateOf(text, place);
    const { from, to, users } = this.#filter;
    if ((from !== null && date < from) || (to !== null && date > to)) return;
    const values = this.#read(text, place);
    if (users !== null && !users.has(values[AT.user] ?? "")) return;
    this.records++;
    const run = runOf(values, typeOf(text, place) === "E");
    const keys = this.#by.map((grouping) => this.#keyOf(grouping, values, date));
    if (!this.#by.includes("host")) return addRun(this.#row(keys), run, 1);
    const hosts = cpusByHost(values[AT.exec_host]);
    const all = [...hosts.values()].reduce((sum, cpus) => sum + cpus, 0);
    for (const [host, cpus] of hosts) addRun(this.#row(keys.map((key, at) => (this.#by[at] === "host" ? host : key))), run, cpus / all);
  }

  #keyOf(grouping: Grouping, values: Values, date: string): string {
    if (grouping === "day") return date;
    if (grouping === "month") return date.slice(0, 7);
    if (grouping === "host") return "";
    if (grouping === "partition") return this.#partitionOf(firstVnode(values[AT.exec_vnode] ?? "") ?? "");
    return values[AT[grouping]] ?? "";
  }

  #row(keys: readonly string[]): Sums {
    const key = keys.join("\n");
    let row = this.#rows.get(key);
    if (row === undefined) {
      row = {
        jobs: 0,
        failed: 0,
        reruns: 0,
        cpu_s: 0,
        waits: 0,
        wait_s: 0,
        wait_max_s: 0,
        cput: { used: 0, asked: 0 },
        walltime: { used: 0, asked: 0 },
        mem: { used: 0, asked: 0 },
      };
      this.#rows.set(key, row);
    }
    return row;
  }

  /** Returns the rows, ordered by their keys. */
  rows(): UsageRow[] {
    const keys = [...this.#rows.keys()].sort();
    return keys.flatMap((key) => {
      const sums = this.#rows.get(key);
      return sums === undefined ? [] : [rowOf(key.split("\n"), sums)];
    });
  }
}

/** Ids of jobs begin with a digit, ids of reservations with a letter (U2). */
const isJobId = (id: string): boolean => id.charCodeAt(0) >= 48 && id.charCodeAt(0) <= 57;

function number(text: string | undefined): number | null {
  const value = text === undefined || text === "" ? Number.NaN : Number(text);
  return Number.isNaN(value) ? null : value;
}

/** The number of texts of durations and sizes whose values are remembered, because most texts occur many times. When the memory is full, it is emptied. */
const MEMORY_TEXTS = 20_000;

function remembered(parse: (text: string) => number | null): (text: string | undefined) => number | null {
  const known = new Map<string, number | null>();
  return (text) => {
    if (text === undefined) return null;
    let value = known.get(text);
    if (value === undefined) {
      value = parse(text);
      if (known.size >= MEMORY_TEXTS) known.clear();
      known.set(text, value);
    }
    return value;
  };
}

const duration = remembered(parseDuration);
const kilobytes = remembered((text) => {
  const size = parseSize(text);
  return size === null ? null : sizeBytes(size) / 1024;
});

function runOf(values: Values, ended: boolean): Run {
  const start = number(values[AT.start]) ?? 0;
  const end = number(values[AT.end]);
  const etime = number(values[AT.etime]) ?? 0;
  const between = end !== null && start > 0 ? Math.max(0, end - start) : 0;
  return {
    ended,
    failed: (number(values[AT.Exit_status]) ?? 0) !== 0,
    ncpus: number(values[AT["resources_used.ncpus"]]) ?? number(values[AT["Resource_List.ncpus"]]) ?? 1,
    run_s: duration(values[AT["resources_used.walltime"]]) ?? between,
    wait_s: etime > 0 && start > 0 ? Math.max(0, start - etime) : null,
    cput_s: duration(values[AT["resources_used.cput"]]),
    asked_s: duration(values[AT["Resource_List.walltime"]]),
    mem_kb: kilobytes(values[AT["resources_used.mem"]]),
    asked_kb: kilobytes(values[AT["Resource_List.mem"]]),
  };
}

/** Adds a run to a row. share: the part of the job's cpus that belongs to the row (U3). */
function addRun(sums: Sums, run: Run, share: number): void {
  if (run.ended) sums.jobs++;
  else sums.reruns++;
  if (run.ended && run.failed) sums.failed++;
  const cpu_s = run.ncpus * run.run_s * share;
  sums.cpu_s += cpu_s;
  if (run.ended && run.wait_s !== null) {
    sums.waits++;
    sums.wait_s += run.wait_s;
    sums.wait_max_s = Math.max(sums.wait_max_s, run.wait_s);
  }
  if (run.cput_s !== null) addShare(sums.cput, run.cput_s * share, cpu_s);
  if (run.asked_s !== null) addShare(sums.walltime, run.run_s, run.asked_s);
  if (run.mem_kb !== null && run.asked_kb !== null) addShare(sums.mem, run.mem_kb, run.asked_kb);
}

function addShare(share: Share, used: number, asked: number): void {
  share.used += used;
  share.asked += asked;
}

/** A chunk without cpus, for example one that asks for memory only, still belongs to its host. */
const ALMOST_NO_CPU = 1e-9;

/** Reads the cpus on each host from an exec_host such as `h1/0*4+h2/1`. An entry without `*` has one cpu. */
function cpusByHost(exec_host: string | undefined): Map<string, number> {
  const hosts = new Map<string, number>();
  for (const entry of exec_host === undefined ? [] : entryTexts(exec_host)) {
    const slash = entry.indexOf("/");
    const star = entry.indexOf("*", slash);
    const host = slash < 0 ? entry : entry.slice(0, slash);
    const cpus = star < 0 ? 1 : (number(entry.slice(star + 1)) ?? 1);
    hosts.set(host, (hosts.get(host) ?? 0) + Math.max(cpus, ALMOST_NO_CPU));
  }
  return hosts;
}

const shareOf = ({ used, asked }: Share): number | null => (asked > 0 ? used / asked : null);

function rowOf(key: readonly string[], sums: Sums): UsageRow {
  return {
    key,
    jobs: sums.jobs,
    failed: sums.failed,
    reruns: sums.reruns,
    cpu_s: sums.cpu_s,
    wait_mean_s: sums.waits === 0 ? null : sums.wait_s / sums.waits,
    wait_max_s: sums.waits === 0 ? null : sums.wait_max_s,
    cpu_efficiency: shareOf(sums.cput),
    walltime_efficiency: shareOf(sums.walltime),
    mem_efficiency: shareOf(sums.mem),
  };
}
