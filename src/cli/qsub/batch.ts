// qsub --batch: submits many jobs over one connection, one for each line (docs/commands/qsub-batch.md).
//
// B1. Ids are printed in the order of the lines, each as soon as all lines before it are answered.
// B2. A line that is wrong or refused is reported with its number, and the other lines are still submitted.

import { readFileSync } from "node:fs";
import { splitWords } from "#model/values/words.ts";
import { ServerUnreachable } from "#protocol/client.ts";
import type { QueueJobRequest } from "#protocol/messages.ts";
import { nth } from "#support/assert.ts";
import { messageOf } from "#support/caught.ts";
import type { CommandIo } from "../command.ts";
import { type Complex, cannotConnect, type Link, mustBeOurs } from "../complex.ts";
import { PBSE_NOSUP, refusalStatus } from "../errors.ts";
import { gatheredOutput } from "../output.ts";
import { destinationOf, type Job, makeJob, QSUB_USAGE, requestOf, SubmitError, type SubmitWorld, withServerDefaults } from "./job.ts";
import { defaultArguments, submitRefusal } from "./submit.ts";
import { WrLineError, wrJob } from "./wr-lines.ts";

/** Largest number of jobs and of characters in one frame. Both are well below what the server accepts. */
const FRAME_JOBS_MAX = 500;
const FRAME_CHARS_MAX = 4 << 20;
const FRAMES_IN_FLIGHT = 3;

type Line = { readonly number: number; readonly text: string };
/** The form of the lines: that of qsub, or that of wr (wr-lines.ts). */
type Format = "qsub" | "wr";
type Queued = { readonly line: number; readonly job: Omit<QueueJobRequest, "kind"> };
type Result = { readonly id: string } | { readonly code: number; readonly text: string | null };

/** Submits the jobs of a batch. argv[at] is `--batch`, and the word after it is the file. All other words are options of every job. */
export async function qsubBatch(io: CommandIo, complex: Complex, world: SubmitWorld, at: number): Promise<number> {
  const file = io.argv[at + 1];
  const { format, common } = readFormat([...io.argv.slice(0, at), ...io.argv.slice(at + 2)]);
  if (file === undefined || common.some((word) => word === "--")) {
    io.err(QSUB_USAGE);
    return 2;
  }
  if (format === null) {
    io.err("qsub: --batch-format must be qsub or wr\n");
    return 2;
  }
  let link: Link | null = null;
  try {
    const lines = await readLines(file, world);
    link = await complex.connect();
    return await submitLines(io, link, { lines, common, format }, await defaultArguments(link, complex), complex, world);
  } catch (error) {
    if (error instanceof SubmitError) {
      io.err(error.text);
      return error.status;
    }
    if (error instanceof ServerUnreachable) return cannotConnect(io, "qsub", complex, error);
    throw error;
  } finally {
    link?.close();
  }
}

/** Takes --batch-format out of the options. null: its value is unknown. */
function readFormat(words: readonly string[]): { readonly format: Format | null; readonly common: readonly string[] } {
  const at = words.indexOf("--batch-format");
  if (at < 0) return { format: "qsub", common: words };
  const format = words[at + 1];
  return { format: format === "qsub" || format === "wr" ? format : null, common: [...words.slice(0, at), ...words.slice(at + 2)] };
}

/** The lines of a batch, their form, and the options of all of them. */
type BatchWork = { readonly lines: readonly Line[]; readonly common: readonly string[]; readonly format: Format };

async function readLines(file: string, world: SubmitWorld): Promise<Line[]> {
  let text: string;
  try {
    text = (file === "-" ? await world.readStdin() : readFileSync(file.startsWith("/") ? file : `${world.cwd}/${file}`)).toString("utf8");
  } catch (error) {
    throw new SubmitError(`qsub: batch file: ${messageOf(error)}\n`, 1);
  }
  const lines = text.split("\n").map((line, index) => ({ number: index + 1, text: line.trim() }));
  return lines.filter((line) => line.text !== "" && !line.text.startsWith("#"));
}

async function submitLines(
  io: CommandIo,
  link: Link,
  { lines, common, format }: BatchWork,
  defaults: string,
  complex: Complex,
  world: SubmitWorld,
): Promise<number> {
  const progress = progressOf(io, lines.length);
  const output = gatheredOutput({ out: io.out, err: progress.aside });
  let status = 0;
  const fail = (line: number, text: string, exit: number): void => {
    output.error(text.replace(/^qsub:\s*/, `qsub: line ${line}: `));
    status = exit;
  };
  const inFlight: Promise<() => void>[] = [];
  let frame: Queued[] = [];
  let frame_chars = 0;
  /**
   * reports of the faults in lines that follow the jobs in `frame`; printed after the results of these jobs, so that all results come in the order of the lines
   */
  let told: (() => void)[] = [];
  let answered = 0;
  const send = (): void => {
    const [queued, after] = [frame, told];
    [frame, frame_chars, told] = [[], 0, []];
    if (queued.length === 0 && after.length === 0) return;
    const answer = queued.length === 0 ? Promise.resolve<Result[]>([]) : queueJobs(link, queued);
    const tell = answer.then((results) => () => {
      results.forEach((result, index) => {
        if ("id" in result) output.write(`${result.id}\n`);
        else fail(nth(queued, index).line, submitRefusal(result), refusalStatus(result.code));
      });
      for (const each of after) each();
      progress.show((answered += results.length + after.length));
    });
    tell.catch(() => undefined);
    inFlight.push(tell);
  };
  const lineWorld: SubmitWorld = { ...withoutTerminal(world), scripts: new Map(), readStdin: noScript };
  try {
    for (const line of lines) {
      try {
        const job = await jobOfLine(line, common, lineWorld, format);
        const request = await batchRequest(job, defaults, complex, world);
        frame.push({ line: line.number, job: request });
        frame_chars += (request.script?.length ?? 0) + job.variables.length + line.text.length + 500;
      } catch (error) {
        if (!(error instanceof SubmitError)) throw error;
        const text = error.text.endsWith(QSUB_USAGE) ? error.text.slice(0, -QSUB_USAGE.length) || "qsub: usage\n" : error.text;
        told.push(() => fail(line.number, text, error.status));
        send();
      }
      if (frame.length >= FRAME_JOBS_MAX || frame_chars >= FRAME_CHARS_MAX) send();
      while (inFlight.length >= FRAMES_IN_FLIGHT) (await (inFlight.shift() as Promise<() => void>))();
    }
    send();
    for (const tell of inFlight) (await tell)();
  } finally {
    progress.clear();
    output.flush();
  }
  return status;
}

/** From this number of lines on, progress is shown. */
const PROGRESS_LINES_MIN = 1000;
const CLEAR_LINE = "\r\u001b[K";

/**
 * Shows on a terminal how many lines were answered, on stderr, if the ids go elsewhere. aside: writes to stderr without disturbing it. clear: removes the line.
 */
function progressOf(io: CommandIo, lines: number) {
  const shows = io.stderrIsTty && !io.stdoutIsTty && lines >= PROGRESS_LINES_MIN;
  let is_shown = false;
  const clear = (): void => {
    if (is_shown) io.err(CLEAR_LINE);
    is_shown = false;
  };
  return {
    clear,
    aside(text: string): void {
      clear();
      io.err(text);
    },
    show(answered: number): void {
      if (!shows) return;
      is_shown = true;
      io.err(`${CLEAR_LINE}qsub: ${answered} of ${lines} jobs (${Math.floor((100 * answered) / lines)} %)`);
    },
  };
}

async function queueJobs(link: Link, queued: readonly Queued[]): Promise<readonly Result[]> {
  const reply = await link.request({ kind: "queue-jobs", jobs: queued.map(({ job }) => job) });
  if (!reply.ok) return queued.map(() => ({ code: reply.code, text: reply.text }));
  return (reply.value as { readonly results: readonly Result[] }).results;
}

async function batchRequest(job: Job, defaults: string, complex: Complex, world: SubmitWorld): Promise<Omit<QueueJobRequest, "kind">> {
  const draft = withServerDefaults(job, defaults, world);
  if (draft.flags.has("I") || draft.flags.get("block")?.value === "true") {
    throw new SubmitError("qsub: No support for requested service\n", refusalStatus(PBSE_NOSUP));
  }
  try {
    await mustBeOurs(complex, destinationOf(draft).server);
  } catch (error) {
    if (error instanceof ServerUnreachable) throw new SubmitError(`qsub: ${error.line}\n`, error.pbse % 256);
    throw error;
  }
  const { kind: _, ...request } = requestOf(job, draft);
  return request;
}

// --- one line of a batch

async function jobOfLine(line: Line, common: readonly string[], world: SubmitWorld, format: Format): Promise<Job> {
  if (format === "wr") return jobOfWr(line.text, common, world);
  if (line.text.startsWith("{")) return jobOfJson(line.text, common, world);
  const words = splitWords(line.text);
  if (words === null) throw new SubmitError("qsub: a quote is not closed\n", 2);
  return makeJob([...common, ...(words[0] === "qsub" ? words.slice(1) : words)], world);
}

function jobOfWr(text: string, common: readonly string[], world: SubmitWorld): Promise<Job> {
  try {
    const { assumed, args, command } = wrJob(text);
    return makeJob([...assumed, ...common, ...args, "--", ...command], world);
  } catch (error) {
    if (error instanceof WrLineError) throw new SubmitError(`qsub: ${error.message}\n`, 2);
    throw error;
  }
}

const noScript = (): Promise<never> => Promise.reject(new SubmitError("qsub: a batch line needs a script or a program\n", 1));

function withoutTerminal(world: SubmitWorld): SubmitWorld {
  const { terminal: _, ...rest } = world;
  return { ...rest, terminal: false };
}

const JSON_KEYS = ["args", "command", "script", "script_file"];

/** Parses a line that is JSON: {"args": ["-N", "x"], "command": ["/bin/true"]}; in place of `command`, "script": TEXT or "script_file": PATH. */
function jobOfJson(text: string, common: readonly string[], world: SubmitWorld): Promise<Job> {
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new SubmitError(`qsub: not JSON: ${messageOf(error)}\n`, 2);
  }
  const unknown = Object.keys(value).find((key) => !JSON_KEYS.includes(key));
  if (unknown !== undefined) throw new SubmitError(`qsub: unknown key ${JSON.stringify(unknown)}\n`, 2);
  const args = stringList(value["args"] ?? [], "args");
  const { script, script_file } = value;
  const words = [...common, ...args];
  if (value["command"] !== undefined) return makeJob([...words, "--", ...stringList(value["command"], "command")], world);
  if (typeof script_file === "string") return makeJob([...words, script_file], world);
  if (typeof script === "string") return makeJob(words, world, { script });
  throw new SubmitError('qsub: one of "command", "script" and "script_file" is needed\n', 2);
}

function stringList(value: unknown, key: string): readonly string[] {
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
  throw new SubmitError(`qsub: "${key}" is not a list of strings\n`, 2);
}
