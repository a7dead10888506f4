// Rows that need a complex: a user-mode one of our own, started for the run and removed after it. As root it is a system-mode one as well, whose jobs run as
// pbsuser1 when that user exists. What is timed is what a user sees: commands started as processes, jobs until their last record.

import { spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Complex, startComplex } from "../test/live/complex.ts";
import { ROOT } from "../test/live/shared.ts";
import { untilRecorded } from "./accounting-records.ts";
import { removeAtEnd } from "./leftovers.ts";
import { median, type Row } from "./row.ts";

export type LiveOptions = { readonly jobs_large: boolean; readonly say: (text: string) => void };

const SHELLS = 500;

/**
 * What this machine does without us. The budgets were set on one where an empty program of our Node took 21 ms and a shell that does nothing ran 750 to 870
 * times a second: a row is to be read in that proportion.
 */
export function machineRows(): Row[] {
  const repeat = (count: number, program: string, args: readonly string[]): readonly number[] =>
    Array.from({ length: count }, () => {
      const begin = performance.now();
      spawnSync(program, args, { stdio: "ignore" });
      return performance.now() - begin;
    });
  const [shells_ms = 0] = repeat(1, "/bin/sh", ["-c", `i=0; while [ $i -lt ${SHELLS} ]; do sh -c true; i=$((i + 1)); done`]);
  return [
    {
      work: "this machine: an empty program of our Node (budgets: 21 ms)",
      value: median(repeat(31, process.execPath, ["-e", "0"])),
      unit: "ms",
      limit: null,
    },
    {
      work: "this machine: sh -c true, one after another (budgets: 750 to 870/s)",
      value: (SHELLS / shells_ms) * 1000,
      unit: "/s",
      limit: null,
    },
  ];
}

export async function liveRows({ jobs_large, say }: LiveOptions): Promise<Row[]> {
  const rows: Row[] = [];
  const complex = await startComplex({ mode: "user" });
  try {
    say("submissions");
    rows.push(submissionRow(complex));
    say("listings of 10,000 jobs");
    rows.push(...listingRows(complex));
    say("single commands");
    rows.push(...commandRows(complex));
    rows.push(...(await residentRows(complex)));
    say("restart with 10,000 queued jobs");
    rows.push(await restartRow(complex, 10_000, 0.5));
    if (jobs_large) {
      say("memory and restart with 100,000 queued jobs");
      rows.push(...(await largeRows(complex)));
    }
  } finally {
    await complex.stop();
  }
  say("1,000 short jobs");
  rows.push(await shortJobs("user"));
  if (process.geteuid?.() === 0) rows.push(await shortJobs("system"));
  return rows;
}

const SUBMITTED = 10_000;

/** Jobs stay queued: the row measures acceptance. Each job is written durably before its id is printed. */
export function submissionRow(complex: Complex): Row {
  complex.must("qmgr", ["-c", "set server scheduling=False"]);
  const value = SUBMITTED / batch(complex, SUBMITTED);
  return { work: "durable submissions over one connection, qsub --batch", value, unit: "/s", limit: 5000 };
}

/** @returns wall seconds of one `qsub --batch` with this number of `/bin/true` */
export function batch(complex: Complex, jobs: number, as?: string): number {
  const input = "-l select=1:ncpus=1 -- /bin/true\n".repeat(jobs);
  const begin = performance.now();
  complex.must("qsub", ["--batch", "-"], { input, ...(as === undefined ? {} : { as }) });
  return (performance.now() - begin) / 1000;
}

/** limits null: a process of its own, which is what a user's first command has; the next ones go through the resident, and the budgets are for those. */
function listingRows(
  complex: Complex,
  how = byItself(complex),
  way = ", a process of its own",
  limits: ListingLimits | null = null,
): Row[] {
  const row = (work: string, args: readonly string[], limit: number | null): Row => ({
    work: `${work}, 10,000 jobs${way}`,
    value: median(Array.from({ length: 5 }, () => wall(complex, "qstat", args, how))),
    unit: "s",
    limit,
  });
  return [
    row("qstat -f", ["-f"], limits?.full_s ?? null),
    row("qstat -f -F json", ["-f", "-F", "json"], limits?.full_s ?? null),
    row("qstat", [], limits?.plain_s ?? null),
  ];
}

type ListingLimits = { readonly full_s: number; readonly plain_s: number };
const LISTING_LIMITS: ListingLimits = { full_s: 0.3, plain_s: 0.08 };

/** Output goes to a file, as in a script that keeps it. how: starts the command, in its environment. */
export function wall(complex: Complex, command: string, args: readonly string[], how: Starter = byItself(complex)): number {
  const file = join(complex.home, "bench.out");
  const out = openSync(file, "w");
  const [program = "", ...words] = how.words(command);
  const begin = performance.now();
  const { status } = spawnSync(program, [...words, ...args], { env: how.env, stdio: ["ignore", out, "inherit"] });
  closeSync(out);
  const seconds = (performance.now() - begin) / 1000;
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}`);
  return seconds;
}

/** Single commands alone, over a complex of 10,000 jobs: `npm run bench -- --only commands`. */
export async function singleCommandRows(): Promise<Row[]> {
  const complex = await startComplex({ mode: "user" });
  try {
    submissionRow(complex);
    return [...commandRows(complex), ...(await residentRows(complex))];
  } finally {
    await complex.stop();
  }
}

export type Starter = { readonly words: (command: string) => readonly string[]; readonly env: NodeJS.ProcessEnv };

/** A process of its own for each command. */
function byItself(complex: Complex): Starter {
  return { words: (command) => [complex.command(command)], env: { ...complex.env(), PARTITA_RESIDENT: "no" } };
}

function commandRows(
  complex: Complex,
  how = byItself(complex),
  way = "a process of its own",
  limits: typeof COMMAND_LIMITS | null = null,
): Row[] {
  const one = complex.must("qsub", ["-h", "--", "/bin/true"]).trim();
  const row = (work: string, command: string, args: readonly string[], limit: number | null): Row => ({
    work: `${work}, ${way}`,
    value: median(Array.from({ length: 31 }, () => wall(complex, command, args, how) * 1000)),
    unit: "ms",
    limit,
  });
  return [
    row("one qsub", "qsub", ["-h", "--", "/bin/true"], limits?.short ?? null),
    row("one qstat of one job", "qstat", [one], limits?.short ?? null),
    row('one qmgr -c "p s"', "qmgr", ["-c", "p s"], limits?.qmgr ?? null),
  ];
}

/** Limits in milliseconds for one command; the next goal is 3 or less for all of them. */
const COMMAND_LIMITS = { short: 35, qmgr: 60 } as const;

/** The same through a resident: by the program that stands in PBS_EXEC/bin, and by the scripts of a checkout, which cost a shell's start more. */
async function residentRows(complex: Complex): Promise<Row[]> {
  const rows = await throughResident(complex, (installed, checkout) => {
    commandRows(complex, installed); // frequent code is compiled
    return [
      ...commandRows(complex, installed, "through the resident", COMMAND_LIMITS),
      ...commandRows(complex, checkout, "through the resident, scripts of a checkout", COMMAND_LIMITS),
      ...listingRows(complex, installed, ", through the resident", LISTING_LIMITS),
    ];
  });
  return (
    rows ?? [
      { work: "single commands through a resident: not measured, there is no C compiler", value: Number.NaN, unit: "ms", limit: null },
    ]
  );
}

/**
 * Runs the work with a resident, in the two ways in which commands reach it. Returns null without a C compiler, because there
 * is no resident then.
 */
export async function throughResident<T>(complex: Complex, work: (installed: Starter, checkout: Starter) => T): Promise<T | null> {
  const launcher = join(ROOT, "dist", "pbs_launcher");
  if (!existsSync(launcher)) return null;
  const runtime = mkdtempSync(join(tmpdir(), "partita-bench-"));
  const env = { ...complex.env(), PARTITA_RESIDENT: "yes", XDG_RUNTIME_DIR: runtime };
  const installed: Starter = { words: (command) => [launcher, command], env };
  const folder = (): readonly string[] => readdirSync(join(runtime, "partita"));
  try {
    do {
      wall(complex, "qstat", ["--version"], installed);
      await sleep(50);
    } while (!folder().some((name) => name.endsWith(".sock")));
    return work(installed, { words: (command) => [complex.command(command)], env });
  } finally {
    for (const mark of folder().filter((name) => name.endsWith(".mark"))) endResident(join(runtime, "partita", mark));
    rmSync(runtime, { recursive: true, force: true });
  }
}

function endResident(mark: string): void {
  const pid = Number.parseInt(readFileSync(mark, "utf8"), 10);
  if (!(pid > 1)) return;
  try {
    process.kill(pid, "SIGTERM");
  } catch {
    // The resident has ended by itself.
  }
}

/** kill -9 of the server; from the start of the new process to the first answer of qstat -B, asked through the resident where there is one. */
export async function restartRow(complex: Complex, jobs: number, limit: number): Promise<Row> {
  const rounds = (how: Starter): readonly number[] => [1, 2, 3].map(() => restart_s(complex, how));
  const values = (await throughResident(complex, rounds)) ?? rounds(byItself(complex));
  return {
    work: `restart after kill -9 with ${jobs.toLocaleString("en")} queued jobs, start to first answer`,
    value: median(values),
    unit: "s",
    limit,
  };
}

function restart_s(complex: Complex, { words, env }: Starter): number {
  const [program = "", ...args] = words("qstat");
  const pid = complex.pid("server") as number;
  process.kill(pid, "SIGKILL");
  while (existsSync(`/proc/${pid}/exe`)) pause(5);
  const begin = performance.now();
  spawn(complex.command("pbs_server"), [], { env: complex.env(), stdio: "ignore" });
  while (spawnSync(program, [...args, "-B"], { env, stdio: "ignore" }).status !== 0) pause(5);
  return (performance.now() - begin) / 1000;
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

async function largeRows(complex: Complex): Promise<Row[]> {
  const pid = Number(readFileSync(join(complex.pbsHome, "server_priv", "server.lock"), "utf8").trim());
  const before = await residentAfterCollection(pid);
  for (let part = 0; part < 9; part++) batch(complex, 10_000);
  const per_job = ((await residentAfterCollection(pid)) - before) / 90_000;
  return [
    { work: "server memory per queued job (90,000 jobs more, after a forced collection)", value: per_job, unit: "kB", limit: 3 },
    await restartRow(complex, 100_000, 3),
  ];
}

/** The server collects garbage on SIGUSR2. @returns resident kB after it has settled */
export async function residentAfterCollection(pid: number): Promise<number> {
  for (let round = 0; round < 3; round++) {
    process.kill(pid, "SIGUSR2");
    await sleep(1500);
  }
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

export const SHORT_JOBS = 1000;
/** cpus of the vnode after `partita reset` */
export const CPUS = 16;

/** 1,000 /bin/true from the start of qsub --batch to the last end record, with all output files in place. */
export async function shortJobs(mode: "user" | "system"): Promise<Row> {
  const complex = await startComplex({ mode });
  const as = mode === "system" ? "pbsuser1" : undefined;
  const place = mkdtempSync(join(tmpdir(), "partita-bench-"));
  try {
    if (as !== undefined && spawnSync("id", [as]).status !== 0)
      return {
        work: "1,000 /bin/true in system mode: not measured, there is no user pbsuser1",
        value: Number.NaN,
        unit: "/s",
        limit: null,
      };
    if (as !== undefined) spawnSync("chown", [as, place]);
    writeFileSync(join(complex.home, "jobs"), `-o ${place}/ -e ${place}/ -l select=1:ncpus=1 -- /bin/true\n`.repeat(SHORT_JOBS), {
      mode: 0o644,
    });
    complex.must("qmgr", ["-c", `set node @default resources_available.ncpus=${CPUS}`]);
    const begin = performance.now();
    complex.must("qsub", ["--batch", "-"], {
      input: readFileSync(join(complex.home, "jobs"), "utf8"),
      ...(as === undefined ? {} : { as, cwd: "/" }),
    });
    await untilRecorded(complex.pbsHome, "E", SHORT_JOBS);
    const seconds = (performance.now() - begin) / 1000;
    const files = readdirSync(place).length;
    if (files !== 2 * SHORT_JOBS) throw new Error(`${files} output files instead of ${2 * SHORT_JOBS}`);
    return {
      work: `1,000 /bin/true in ${mode} mode, submission to last end, output delivered`,
      value: SHORT_JOBS / seconds,
      unit: "/s",
      limit: mode === "user" ? 300 : 200,
    };
  } finally {
    await complex.stop();
    removeAtEnd(place);
  }
}
