// tracejob: shows what the logs of the last days say about a job (docs/reference/commands.md 6).

import { readdirSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { codeOf } from "#support/caught.ts";
import { logPieces } from "#support/log-pieces.ts";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex } from "../../complex.ts";
import { two } from "../../dates.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { completeJobId } from "../../job-ids.ts";
import { EVENT_NAMES, inOrder, type LogRecord, layOut, recordsOf, type Source, withoutExcess } from "../../tracejob/records.ts";

const usage = (home: string): string => `USAGE: tracejob [-a|s|l|m|v] [-w size] [-p path] [-n days] [-f filter_type] job_identifier...
   -p : path to PBS_HOME
   -w : number of columns of your terminal
   -n : number of days in the past to look for job(s) [default 1]
   -f : filter out types of log entries, multiple -f's can be specified
        error, system, admin, job, job_usage, security, sched, debug, 
        debug2, resv, debug3, debug4, force or absolute numberic equiv
   -z : toggle filtering excessive messages
   -c : what message count is considered excessive
   -a : don't use accounting log files
   -s : don't use server log files
   -l : don't use scheduler log files
   -m : don't use mom log files
   -v : verbose mode - show more error messages

       tracejob --version
   --version : display version only

default prefix path = ${home}
filter_excessive: ON
`;

const EXCESS_DEFAULT = 15;
const COLUMNS_DEFAULT = 80;
const FAILED = 1;
const DAY_MS = 86_400_000;

export const run: Command = asCommand("tracejob", usage("PBS_HOME"), tracejob);

type Options = {
  readonly home: string;
  readonly columns: number;
  readonly days: number;
  readonly hidden_events: number;
  readonly excess_max: number;
  readonly sources: readonly Source[];
  readonly verbose: boolean;
};

export async function tracejob(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "amslvzw:p:n:f:c:");
  const faults = scan.events.flatMap((event) => optionFault("tracejob", event) ?? []);
  const options = faults.length === 0 ? readOptions(scan.events, io, complex.conf().home) : null;
  if (options === null || scan.operands.length === 0) {
    io.err(faults.map((fault) => `${fault}\n`).join("") + usage(complex.conf().home));
    return FAILED;
  }
  let status = 0;
  for (const operand of scan.operands) {
    const id = await completeJobId(complex, operand);
    if (id.kind !== "id") {
      io.err(`tracejob: illegally formed job identifier: ${operand}\n`);
      status = FAILED;
    } else if (!trace(io, id.id, options, complex)) status = FAILED;
  }
  return status;
}

/** Reads the options. Returns null if the value of one is malformed. */
function readOptions(events: ReturnType<typeof scanOptions>["events"], io: CommandIo, home: string): Options | null {
  let sources: Source[] = ["S", "L", "M", "A"];
  let options: Options = {
    home,
    columns: Number(io.env["COLUMNS"]) || COLUMNS_DEFAULT,
    days: 1,
    hidden_events: 0,
    excess_max: EXCESS_DEFAULT,
    sources,
    verbose: false,
  };
  for (const event of events) {
    if (event.kind !== "option") return null;
    const { letter, value } = event;
    const number = /^(?:\d+|0x[0-9a-f]+)$/i.test(value) ? Number(value) : Number.NaN;
    if ("wnc".includes(letter) && Number.isNaN(number)) return null;
    if ("aslm".includes(letter)) sources = sources.filter((source) => source.toLowerCase() !== letter);
    else if (letter === "v") options = { ...options, verbose: true };
    else if (letter === "z") options = { ...options, excess_max: Number.POSITIVE_INFINITY };
    else if (letter === "w") options = { ...options, columns: number };
    else if (letter === "n") options = { ...options, days: Math.max(1, number) };
    else if (letter === "c") options = { ...options, excess_max: number };
    else if (letter === "p") options = { ...options, home: value };
    else if (letter === "f") {
      const bits = Number.isNaN(number) ? EVENT_NAMES[value.toLowerCase()] : number;
      if (bits === undefined) return null;
      options = { ...options, hidden_events: options.hidden_events | bits };
    }
  }
  return { ...options, sources };
}

/** Shows the records about a job. Returns whether any was found. */
function trace(io: CommandIo, id: string, options: Options, complex: Complex): boolean {
  const found = options.sources.flatMap((source) => recordsFrom(source, id, options, complex.now_ms(), io));
  const shown = withoutExcess(inOrder(found.filter((record) => (record.event & options.hidden_events) === 0)), options.excess_max);
  if (found.length === 0) {
    io.out(`\ntracejob: Couldn't find Job Id ${id} in logs of past ${options.days} day${options.days === 1 ? "" : "s"}\n\n`);
    return false;
  }
  const highres = complex.conf().log_highres || shown.some((record) => record.date.includes("."));
  io.out(`\nJob: ${id}\n\n${shown.map((record) => layOut(record, options.columns, highres)).join("")}`);
  return true;
}

function recordsFrom(source: Source, id: string, options: Options, now_ms: number, io: CommandIo): LogRecord[] {
  const records: LogRecord[] = [];
  for (const directory of directoriesOf(source, options.home)) {
    for (const name of filesOfDays(directory, options.days, now_ms)) {
      const file = `${directory}/${name}`;
      try {
        const bytes = readFileSync(file);
        records.push(...recordsOf(file.endsWith(".gz") ? gunzipSync(bytes) : bytes, source, id));
      } catch (error) {
        const code = codeOf(error);
        // A user who may not read the server's log is told so, because the records shown are then incomplete.
        if (options.verbose || (code === "EACCES" && source === "S"))
          io.err(`${file}: ${code === "ENOENT" ? "No such file or directory" : code === "EACCES" ? "Permission denied" : code}\n`);
      }
    }
  }
  return records;
}

/**
 * Returns the names of the log files of the last days, oldest first: for each day its file, and its rotated or compressed pieces. For a day without files, the
 * usual name of the day's file is returned.
 */
function filesOfDays(directory: string, days: number, now_ms: number): readonly string[] {
  let names: readonly string[] = [];
  try {
    names = readdirSync(directory);
  } catch {
    // The error is reported later, when each file of the directory is opened.
  }
  const pieces = logPieces(names);
  return Array.from({ length: days }, (_, at) => dayName(now_ms - (days - 1 - at) * DAY_MS)).flatMap((wanted) => {
    const found = pieces.filter(({ day }) => day === wanted).map(({ name }) => name);
    return found.length === 0 ? [wanted] : found;
  });
}

/** Returns the log directories of a source. Each scheduler is assumed to use the default name of its directory. */
function directoriesOf(source: Source, home: string): readonly string[] {
  switch (source) {
    case "S":
      return [`${home}/server_logs`];
    case "M":
      return [`${home}/mom_logs`];
    case "A":
      return [`${home}/server_priv/accounting`];
    case "L":
      return schedulerLogs(home);
    default: {
      const unreachable: never = source;
      return unreachable;
    }
  }
}

function schedulerLogs(home: string): readonly string[] {
  try {
    return readdirSync(home)
      .filter((name) => name === "sched_logs" || name.startsWith("sched_logs_"))
      .sort()
      .map((name) => `${home}/${name}`);
  } catch {
    return [`${home}/sched_logs`];
  }
}

function dayName(time_ms: number): string {
  const date = new Date(time_ms);
  return `${date.getFullYear()}${two(date.getMonth() + 1)}${two(date.getDate())}`;
}
