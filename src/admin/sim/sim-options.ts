// The options of partita sim as a table. yargs parses them (sim-command.ts). If the command line is simple enough, this file
// parses it itself, because loading yargs takes a fifth of the time in which a year is replayed.

import type { Options } from "yargs";
import { COLOURINGS } from "#replay/colouring.ts";
import { nth } from "#support/assert.ts";

export type SimOptions = {
  readonly home?: string | undefined;
  readonly trace?: string | undefined;
  readonly procs?: number | undefined;
  readonly partition?: readonly string[] | undefined;
  readonly algo: string;
  readonly engine: "pool" | "cycle";
  readonly reservations?: string | undefined;
  readonly out?: string | undefined;
  readonly picture?: string | undefined;
  readonly colour?: string | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly json: boolean;
  readonly live?: boolean | undefined;
  readonly state?: string | undefined;
  readonly save?: string | undefined;
  readonly qmgr?: readonly string[] | undefined;
  readonly schedConfig?: readonly string[] | undefined;
  readonly reserve?: readonly string[] | undefined;
  readonly until?: string | undefined;
  readonly grid?: string | undefined;
  readonly predictor?: string | undefined;
  readonly strategy?: string | undefined;
  readonly workload?: readonly string[] | undefined;
};

export const SIM_OPTIONS = {
  procs: { type: "number", describe: "processors of the machine" },
  partition: { type: "string", array: true, describe: "instead of --procs, once a partition: its NUMBER in the trace=PROCS" },
  algo: {
    type: "string",
    default: "easy",
    describe: "fcfs, easy, sjbf, log, depthN, depthinf or cons; several with commas between them are compared",
  },
  engine: {
    type: "string",
    choices: ["pool", "cycle"],
    default: "pool",
    describe: "pool: passes over a pool of slots; cycle: the scheduler's own cycles on a vnode of as many cpus, slower (not for cons)",
  },
  reservations: { type: "string", describe: "file with lines start_s,duration_s,procs" },
  out: { type: "string", describe: "where the starts go: CSV job,start" },
  picture: { type: "string", describe: "where a picture goes: SVG; of several --algo, and of before and after, in one" },
  colour: {
    type: "string",
    choices: COLOURINGS,
    describe: "with --picture: what colours mean (default: user, queue or partition, the first that tells jobs apart)",
  },
  from: {
    type: "number",
    describe: "with --picture: the first second shown (of the trace; with --live, --state: from the moment of saving)",
  },
  to: { type: "number", describe: "with --picture: the last second shown" },
  live: { type: "boolean", describe: "instead of a trace: the jobs of the complex as it is now" },
  state: { type: "string", describe: "instead of a trace: the jobs of a complex that was saved in this file" },
  save: { type: "string", describe: "save the complex as it is now in this file" },
  qmgr: { type: "string", array: true, nargs: 1, describe: 'what if: a line of qmgr, as "set queue workq max_run=[u:PBS_GENERIC=2]"' },
  "sched-config": {
    type: "string",
    array: true,
    nargs: 1,
    describe:
      "what if: [SCHEDULER:]KEY=VALUE in sched_config; for a trace, in place of --algo: the scheduler's own cycles with these lines",
  },
  reserve: {
    type: "string",
    array: true,
    nargs: 1,
    describe: "what if: a reservation, start=+HH:MM:SS,duration=HH:MM:SS,select=...[,place=...][,partition=...]",
  },
  until: { type: "string", describe: "with --live, --state: how long it goes on (default 30 days)" },
  grid: { type: "string", describe: "instead of a trace: a file of clusters with local users, and of campaigns that run over them" },
  predictor: {
    type: "string",
    describe:
      "with --grid: slow-start, two-way, exponential-up, simple or tap; several with commas between them are compared (default two-way)",
  },
  strategy: {
    type: "string",
    describe: "with --grid: fifo, affinity or fairshare; several with commas between them are compared (default fairshare)",
  },
  workload: { type: "string", array: true, nargs: 1, describe: "with --grid: NAME=FILE, the trace that clusters of the file call NAME" },
  json: { type: "boolean", default: false, describe: "metrics as JSON" },
} as const satisfies Record<string, Options>;

const ROWS = new Map<string, Options>(Object.entries(SIM_OPTIONS));

/**
 * Parses the options if the command line is simple: one trace, and full option names from the table, each at most once and with its value as a separate word.
 * The result is the same as that of yargs. Returns null for any other command line; yargs then parses or refuses it.
 */
export function plainOptions(words: readonly string[]): SimOptions | null {
  const options: Record<string, unknown> = {};
  for (const [name, row] of ROWS) if (row.default !== undefined) options[name] = row.default;
  const said = new Set<string>();
  for (let at = 0; at < words.length; at++) {
    const word = nth(words, at);
    const name = word.startsWith("--") ? word.slice(2) : "trace";
    const row = name === "trace" ? TRACE : ROWS.get(name);
    if (row === undefined || row.array === true || said.has(name)) return null;
    const value = row.type === "boolean" ? true : plainValue(row, name === "trace" ? word : words[++at]);
    if (value === null) return null;
    said.add(name);
    options[name] = value;
  }
  return said.has("trace") ? (options as SimOptions) : null;
}
const TRACE: Options = { type: "string" };

function plainValue({ type, choices }: Options, word: string | undefined): string | number | null {
  if (word === undefined || !/^[\w./][\w./,+-]*$/.test(word) || choices?.includes(word) === false) return null;
  if (type === "number") return /^(0|[1-9]\d{0,14})$/.test(word) ? Number(word) : null;
  return word;
}

/** Checks which options are given together: an option without effect is refused. Returns the text of the fault, or null. */
export function optionsFault(options: SimOptions): string | null {
  if (options.grid !== undefined) {
    const other = OF_TRACES.concat(OF_COMPLEXES, OF_PICTURES, ["live", "state", "save", "schedConfig"])
      .map((name) => givenText(options, name))
      .find(Boolean);
    return other === undefined ? null : `${other} does not go with --grid`;
  }
  const ofGrid = OF_GRIDS.map((name) => givenText(options, name)).find(Boolean);
  if (ofGrid !== undefined) return `${ofGrid} goes with --grid`;
  const plays = options.live === true || options.state !== undefined;
  const given = (names: readonly (keyof SimOptions)[]): string | undefined => names.map((name) => givenText(options, name)).find(Boolean);
  const ofTrace = plays || options.save !== undefined ? given(OF_TRACES) : undefined;
  if (ofTrace !== undefined) return `${ofTrace} goes with a trace, not with --live, --state or --save`;
  const ofComplex = plays ? undefined : given(OF_COMPLEXES);
  if (ofComplex !== undefined) return `${ofComplex} goes with --live or --state: a trace has no server whose settings could change`;
  const config = !plays && options.save !== undefined ? given(["schedConfig"]) : undefined;
  if (config !== undefined) return `${config} goes with a trace, --live or --state`;
  const drawn = !plays && options.save !== undefined ? given(["picture", "json"]) : undefined;
  if (drawn !== undefined) return `${drawn} goes with a trace, --live or --state`;
  const ofPicture = options.picture === undefined ? given(OF_PICTURES) : undefined;
  return ofPicture === undefined ? null : `${ofPicture} goes with --picture`;
}

type Names = readonly (keyof SimOptions)[];
const OF_TRACES: Names = ["trace", "procs", "partition", "algo", "engine", "reservations", "out"];
const OF_COMPLEXES: Names = ["qmgr", "reserve", "until"];
const OF_PICTURES: Names = ["colour", "from", "to"];
const OF_GRIDS: Names = ["predictor", "strategy", "workload"];

/** Returns an option in the form of the command line if its value is not the default. */
function givenText(options: SimOptions, name: keyof SimOptions): string | undefined {
  const value = options[name];
  const written = name === "schedConfig" ? "sched-config" : name;
  if (value === undefined || value === ROWS.get(written)?.default || (Array.isArray(value) && value.length === 0)) return undefined;
  return name === "trace" ? `the trace ${value}` : `--${written}`;
}
