// partita sim --live, --state, --save: shows what would happen to the present jobs (docs/sim.md). src/sim/what-if.ts
// computes that; this file handles the store, files, options and output.

import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { schedDirectories } from "#model/tables/sched-attributes.ts";
import { parseDuration, renderDuration } from "#model/values/duration.ts";
import type { AttrValueText, Request } from "#protocol/messages.ts";
import { splitRequests } from "#qmgr/language/line-reader.ts";
import { QmgrSession } from "#qmgr/session/session.ts";
import { type Colouring, chooseColouring } from "#replay/colouring.ts";
import { pictureOf } from "#replay/picture.ts";
import type { Clock } from "#replay/time-axis.ts";
import { ctimeText } from "#sched/shapes/local-time.ts";
import { MACHINE_TIME } from "#sched/shell/machine-time.ts";
import { readPrivate } from "#sched/shell/settings.ts";
import type { ClientFrame } from "#server/engine/batch.ts";
import type { Peer } from "#server/engine/identity.ts";
import { timeZone } from "#server/shell/time-zone.ts";
import { isRemote } from "#server/state/partitions.ts";
import {
  type ConfigChange,
  parseConfigChange,
  parseState,
  type SavedState,
  STATE_FORMAT,
  STATE_VERSION,
  StateError,
  savedRows,
  settingsWith,
  stateOf,
} from "#sim/saved-state.ts";
import { createStandIn, type StandIn } from "#sim/stand-in.ts";
import { ganttOf, type JobOutcome, namesOf, type Outcome, type OutcomeMetrics, watchJobs } from "#sim/what-if.ts";
import { messageOf } from "#support/caught.ts";
import { type Conf, shortHostName } from "#support/conf.ts";
import { PBS_VERSION } from "#support/version.ts";
import { AdminError, complexConf } from "../complex/complex-home.ts";
import { backup } from "../store/backup.ts";
import type { SimOptions } from "./sim-options.ts";

const UNTIL_DEFAULT_S = 30 * 86_400;

/**
 * Either saves the state of the complex, or simulates the complex twice, with and without the requested changes, and
 * compares the results. Returns the text to print.
 */
export async function whatIf(options: SimOptions): Promise<string> {
  if (options.live === true && options.state !== undefined) throw new AdminError("--live or --state, not both");
  const saved = options.state === undefined ? await saveLive(complexConf(options.home)) : readState(options.state);
  if (options.save !== undefined) {
    const file = resolve(options.save);
    writeNew(file, `${JSON.stringify(saved)}\n`);
    const { rows } = saved;
    const kept = `${rows.jobs.length} jobs, ${rows.objects.vnodes.length} vnodes`;
    if (options.live !== true && options.state === undefined) return `Saved to ${file}: ${kept}.`;
  }
  try {
    return await compare(saved, options);
  } catch (error) {
    if (error instanceof StateError) throw new AdminError(error.message);
    throw error;
  }
}

function writeNew(file: string, text: string): void {
  try {
    writeFileSync(file, text, { mode: 0o600, flag: "wx" });
  } catch (error) {
    throw new AdminError(`--save: ${messageOf(error)}`);
  }
}

async function saveLive(conf: Conf): Promise<SavedState> {
  const place = mkdtempSync(join(tmpdir(), "partita-state-"));
  try {
    chmodSync(place, 0o700);
    const saved_s = Math.floor(Date.now() / 1000);
    await backup(conf, join(place, "store"));
    const { openSqliteStore } = await import("#store/sqlite/sqlite-store.ts");
    const store = await openSqliteStore(join(place, "store"));
    const rows = await store.load().finally(() => store.close());
    const scheds = rows.objects.scheds.map(({ name, data }) => {
      const attrs = data["attrs"] as { readonly sched_priv?: string; readonly sched_host?: string };
      const dir = attrs.sched_priv ?? schedDirectories(name, conf.home).sched_priv;
      if (isRemote({ name, attrs }, { host: shortHostName(conf.own_server) }))
        process.stderr.write(`partita: scheduler ${name} is on host ${attrs.sched_host}: its files are taken from ${dir} of this host\n`);
      return [name, readPrivate(dir)] as const;
    });
    return {
      format: STATE_FORMAT,
      version: STATE_VERSION,
      saved_s,
      server: rows.objects.server.find(({ name }) => !name.startsWith("."))?.name ?? "",
      own_user: conf.mode === "user" ? userInfo().username : null,
      rows: savedRows(rows),
      scheds: Object.fromEntries(scheds),
    };
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

function readState(file: string): SavedState {
  try {
    return parseState(readFileSync(file, "utf8"));
  } catch (error) {
    throw new AdminError(`${file}: ${messageOf(error)}`);
  }
}

type Changes = { readonly qmgr: readonly string[]; readonly config: readonly ConfigChange[]; readonly reserve: readonly string[] };

async function compare(saved: SavedState, options: SimOptions): Promise<string> {
  const changes: Changes = {
    qmgr: options.qmgr ?? [],
    config: (options.schedConfig ?? []).map(parseConfigChange),
    reserve: options.reserve ?? [],
  };
  const named = changes.config.flatMap(({ sched }) => sched ?? []).find((name) => !(name in saved.scheds));
  if (named !== undefined) throw new AdminError(`there is no scheduler ${named}`);
  const until_s = saved.saved_s + durationOf("--until", options.until ?? String(UNTIL_DEFAULT_S));
  const asItIs = open(saved, []);
  const before = watchJobs(asItIs)(until_s);
  const played = [{ title: "as it is", standIn: asItIs, outcome: before }];
  if (changes.qmgr.length + changes.config.length + changes.reserve.length === 0) {
    draw(saved, options, played);
    return told(saved, options, { before, after: null, changes });
  }
  const standIn = open(saved, changes.config);
  const watch = watchJobs(standIn);
  for (const line of changes.qmgr) await applyQmgr(standIn, saved, line);
  const resvs = changes.reserve.map((text) => reserve(standIn, saved, text));
  const after = watch(until_s);
  const denied = resvs.find((resv) => !after.resvs.some((one) => one.resv === resv));
  if (denied !== undefined) throw new AdminError(`--reserve ${changes.reserve[resvs.indexOf(denied)]}: no scheduler confirms it`);
  draw(saved, options, [
    { title: "before", standIn: asItIs, outcome: before },
    { title: "after", standIn, outcome: after },
  ]);
  return told(saved, options, { before, after, changes });
}

function open(saved: SavedState, changes: readonly ConfigChange[]): StandIn {
  const books = new Map<string, ReturnType<typeof settingsWith>["book"]>();
  const bookOf = (sched: string) => {
    const book = books.get(sched) ?? settingsWith(saved, sched, changes, MACHINE_TIME).book;
    books.set(sched, book);
    return book;
  };
  for (const sched of Object.keys(saved.scheds)) bookOf(sched);
  const config = {
    host: saved.server,
    home: "/",
    pbs_version: PBS_VERSION,
    own_user: saved.own_user,
    ctime: timeText,
    timeZone,
    userExists: () => true,
  };
  return createStandIn({ state: stateOf(saved), config, now_ms: saved.saved_s * 1000, bookOf });
}

const timeText = (epoch_s: number): string => ctimeText(MACHINE_TIME.civil(epoch_s));

const rootOf = (saved: SavedState): Peer => ({ user: "root", uid: 0, groups: ["root"], host: saved.server, root: true });

// --- changes that the options request

/** Applies a request of qmgr to the simulated server. qmgr's own grammar parses it. */
async function applyQmgr(standIn: StandIn, saved: SavedState, line: string): Promise<void> {
  const complaints: string[] = [];
  const answerTo = (request: Request) => standIn.ask(rootOf(saved), request);
  const refusal = (frame: ClientFrame | null) =>
    frame?.kind === "error"
      ? { ok: false as const, code: frame.code, text: frame.text }
      : { ok: false as const, code: 15010, text: "no answer" };
  const session = new QmgrSession(
    {
      out: (text) => void complaints.push(text.trimEnd()),
      err: (text) => void complaints.push(text.trimEnd()),
      connect: async () => ({
        async manage(request) {
          const answer = answerTo(request);
          return answer?.kind === "ok" ? { ok: true, ...(answer.text === undefined ? {} : { text: answer.text }) } : refusal(answer);
        },
        async status(request) {
          const answer = answerTo(request);
          return answer?.kind === "ok" ? { ok: true, items: standIn.partsOf(answer) as never } : refusal(answer);
        },
        importHook: async () => ({ ok: false, code: 15004, text: "hooks are not run here" }),
        exportHook: async () => ({ ok: false, code: 15004, text: "hooks are not run here" }),
      }),
      ctime: timeText,
      stdinIsTty: false,
      closedFormulaFile: () => null,
      history: () => [],
      hookFiles: { read: async () => ({ fault: "hooks are not run here" }), write: async () => ({ fault: "hooks are not run here" }) },
    },
    { abort: false, echo: false, parseOnly: false, silent: false },
    [],
  );
  for (const request of splitRequests(line)) {
    const { kind } = await session.run(request);
    if (kind !== "ok") throw new AdminError([`--qmgr ${line}`, ...complaints].join("\n"));
  }
}

/** Adds the reservation of --reserve: `start=+1:00:00,duration=2:00:00,select=2:ncpus=4[,place=scatter:excl]`. Returns its id. */
function reserve(standIn: StandIn, saved: SavedState, text: string): string {
  const wrong = (what: string): AdminError => new AdminError(`--reserve ${text}: ${what}`);
  const words = new Map(
    text.split(",").map((word) => {
      const at = word.indexOf("=");
      return [word.slice(0, at), word.slice(at + 1)] as const;
    }),
  );
  const { start, duration, select, ...others } = Object.fromEntries(words) as { readonly [name: string]: string | undefined };
  if (start === undefined || duration === undefined || select === undefined) throw wrong("it wants start=, duration= and select=");
  const unknown = Object.keys(others).find((name) => name !== "place" && name !== "partition");
  if (unknown !== undefined) throw wrong(`${unknown} is not known`);
  const start_s = start.startsWith("+")
    ? saved.saved_s + durationOf("start", start.slice(1))
    : Math.floor(new Date(start.includes("T") ? start : Number.NaN).getTime() / 1000);
  if (!(start_s >= saved.saved_s)) throw wrong("start is +DURATION or YYYY-MM-DDTHH:MM, and not over");
  const attrs: AttrValueText[] = [
    { name: "Reserve_Name", value: "what-if" },
    { name: "reserve_start", value: String(start_s) },
    { name: "Resource_List", resource: "walltime", value: String(durationOf("duration", duration)) },
    { name: "Resource_List", resource: "select", value: select },
    ...(others["place"] === undefined ? [] : [{ name: "Resource_List", resource: "place", value: others["place"] }]),
    ...(others["partition"] === undefined ? [] : [{ name: "partition", value: others["partition"] }]),
  ];
  const user = saved.own_user ?? "what-if";
  const answer = standIn.ask({ user, uid: 65_534, groups: [user], host: saved.server, root: false }, { kind: "submit-resv", attrs });
  if (answer?.kind !== "ok") throw wrong(answer?.kind === "error" ? (answer.text ?? `error ${answer.code}`) : "no answer");
  return (answer.value as { readonly id: string }).id;
}

function durationOf(name: string, text: string): number {
  const seconds = parseDuration(text);
  if (seconds === null) throw new AdminError(`${name} ${text}: not a duration (seconds, or HH:MM:SS)`);
  return seconds;
}

// --- output

type Compared = { readonly before: Outcome; readonly after: Outcome | null; readonly changes: Changes };

function told(saved: SavedState, options: SimOptions, { before, after, changes }: Compared): string {
  if (options.json) {
    const { qmgr, config, reserve: resvs } = changes;
    return JSON.stringify({ saved_s: saved.saved_s, changes: { qmgr, sched_config: config, reserve: resvs }, before, after }, null, 2);
  }
  return [
    ...heading(saved, before),
    "",
    ...metricsLines(before, after),
    "",
    ...jobLines(before, after),
    ...resvLines(after ?? before),
  ].join("\n");
}

function resvLines({ from_s, resvs }: Outcome): string[] {
  const at = (time_s: number): string => `${time_s < from_s ? "-" : "+"}${renderDuration(Math.abs(time_s - from_s))}`;
  const lines = resvs.map(({ resv, start_s, end_s, exec_vnode }) => `${resv}  ${at(start_s)} to ${at(end_s)}  ${exec_vnode}`);
  return lines.length === 0 ? [] : ["", "reservations", ...lines];
}

function heading({ saved_s, server }: SavedState, { jobs }: Outcome): string[] {
  const running = jobs.filter(({ ran }) => ran).length;
  return [`Complex ${server} as of ${timeText(saved_s)}: ${running} running, ${jobs.length - running} waiting`];
}

const ROWS: readonly (readonly [label: string, text: (metrics: OutcomeMetrics) => string])[] = [
  ["started", ({ started }) => String(started)],
  ["never started", ({ never_started }) => String(never_started)],
  ["mean wait", ({ wait_s_mean }) => renderDuration(Math.round(wait_s_mean))],
  ["median wait", ({ wait_s_median }) => renderDuration(Math.round(wait_s_median))],
  ["longest wait", ({ wait_s_max }) => renderDuration(Math.round(wait_s_max))],
  ["bounded slowdown", ({ bounded_slowdown_mean }) => bounded_slowdown_mean.toFixed(2)],
  ["utilisation", ({ utilisation }) => `${(100 * utilisation).toFixed(1)} %`],
  ["last end after", ({ makespan_s }) => renderDuration(makespan_s)],
];

function metricsLines(before: Outcome, after: Outcome | null): string[] {
  const line = (label: string, ...cells: readonly string[]): string =>
    `${label.padEnd(18)}${cells.map((cell) => cell.padStart(12)).join("")}`;
  return [
    line("", ...(after === null ? ["as it is"] : ["before", "after"])),
    ...ROWS.map(([label, text]) => line(label, text(before.metrics), ...(after === null ? [] : [text(after.metrics)]))),
  ];
}

/** Returns a line for each job that had not started, in the order of submission, with its start without and with the changes. */
function jobLines(before: Outcome, after: Outcome | null): string[] {
  const later = new Map(after?.jobs.map((job) => [job.job, job]));
  const rows = before.jobs.filter(({ ran }) => !ran).map((job) => [job, later.get(job.job)] as const);
  for (const job of after?.jobs ?? [])
    if (!job.ran && !before.jobs.some((one) => one.job === job.job)) rows.push([{ ...job, start_s: null }, job]);
  if (rows.length === 0) return ["No job waits."];
  const startText = (job: JobOutcome | undefined): string =>
    job === undefined || job.start_s === null ? "-" : `+${renderDuration(job.start_s - before.from_s)}`;
  const movedText = (a: JobOutcome, b: JobOutcome | undefined): string => {
    if (a.start_s === null || b === undefined || b.start_s === null || a.start_s === b.start_s) return "";
    return `${b.start_s < a.start_s ? "-" : "+"}${renderDuration(Math.abs(b.start_s - a.start_s))}`;
  };
  const width = Math.max(3, ...rows.map(([{ job }]) => job.length));
  const line = (id: string, user: string, queue: string, ...cells: readonly string[]): string =>
    `${id.padEnd(width)}  ${user.padEnd(10)}  ${queue.padEnd(10)}${cells.map((cell) => cell.padStart(12)).join("")}`.trimEnd();
  return [
    line("job", "user", "queue", ...(after === null ? ["starts"] : ["before", "after", "moves"])),
    ...rows.map(([a, b]) => line(a.job, a.user, a.queue, startText(a), ...(after === null ? [] : [startText(b), movedText(a, b)]))),
  ];
}

type Played = { readonly title: string; readonly standIn: StandIn; readonly outcome: Outcome };

/** Draws the simulations into one picture, with the same time axis and colours. --from and --to are times after the moment at which the state was saved. */
function draw({ server, saved_s }: SavedState, { picture, colour, from, to }: SimOptions, played: readonly Played[]): void {
  if (picture === undefined) return;
  const names = played.flatMap(({ standIn, outcome }) => outcome.jobs.map((job) => namesOf(standIn.core.state, job)));
  const colouring = (colour as Colouring | undefined) ?? chooseColouring(names);
  const gantts = played.map(({ title, standIn, outcome }) => ganttOf(title, standIn.core.state, outcome, colouring));
  const from_s = saved_s + (from ?? 0);
  const to_s = to === undefined ? Math.max(...played.map(({ outcome }) => outcome.to_s)) : saved_s + to;
  writeFileSync(picture, pictureOf(gantts, { title: `${server}, from ${timeText(saved_s)}`, from_s, to_s, clock, colouring }));
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"] as const;

/** Splits a time into the day and the time of day, in local time. */
const clock: Clock = (time_s) => {
  const { year, month, day, second_of_day } = MACHINE_TIME.civil(time_s);
  return { day: `${day} ${MONTHS[month - 1]} ${year}`, second_of_day };
};
