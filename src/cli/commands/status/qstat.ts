// qstat: lists jobs, queues and servers (docs/reference/commands.md 2). It prints jobs while the server's answer still
// arrives, and requests only the attributes that the layout shows.

import { type BriefItem, wholeItems } from "#protocol/brief-items.ts";
import { ServerUnreachable } from "#protocol/client.ts";
import type { StatusItem, StatusObject, StatusRequest } from "#protocol/messages.ts";
import { LIMITS } from "#protocol/wire/limits.ts";
import type { ErrorReply } from "#protocol/wire/reply.ts";
import { nth } from "#support/assert.ts";
import { PBS_VERSION } from "#support/version.ts";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex, cannotConnect, type Link, mustBeOurs, statusItems } from "../../complex.ts";
import { parseDestination } from "../../destinations.ts";
import { PBSE_HISTJOBID, PBSE_JOBHISTNOTSET, PBSE_UNKJOBID, PBSE_UNKQUE, refusalStatus } from "../../errors.ts";
import { compareJobIds, completeJobId } from "../../job-ids.ts";
import { dsvLine, type JsonDocument, jsonDocument, jsonWriter, longWriter } from "../../long-format.ts";
import { gatheredOutput, type Output } from "../../output.ts";
import { alternateAttributes, alternateHeader, alternateRow, compareStarts } from "../../qstat/alternate-table.ts";
import { parseQstatArguments, QSTAT_USAGE, type QstatOptions } from "../../qstat/arguments.ts";
import { isOwnedBy, type Job, scalar } from "../../qstat/job-row.ts";
import {
  LIMIT_ATTRIBUTES,
  limitsFooter,
  limitsHeader,
  limitsRow,
  QUEUE_ATTRIBUTES,
  QUEUE_HEADER,
  queueRow,
  SERVER_ATTRIBUTES,
  SERVER_HEADER,
  serverRow,
} from "../../qstat/queue-table.ts";
import { type ShortLayout, shortAttributes, shortHeader, shortRow } from "../../qstat/short-table.ts";

export const run: Command = asCommand("qstat", QSTAT_USAGE, qstat);

const USAGE_STATUS = 2;
const UNREACHABLE_STATUS = 255;
const SEQUENCE_ID_SHORT_MAX = 9_999_999;

/** One run of qstat. `status`: the exit status so far, which the last error has set. */
type Session = {
  readonly io: CommandIo;
  readonly complex: Complex;
  readonly link: Link;
  readonly options: QstatOptions;
  readonly output: Output;
  readonly printer: Printer;
  status: number;
};

export async function qstat(io: CommandIo, complex: Complex): Promise<number> {
  const parsed = parseQstatArguments(io.argv);
  if (!parsed.ok) {
    io.err(parsed.errors);
    return USAGE_STATUS;
  }
  const { options } = parsed;
  if (options.express && options.object === "jobs" && !options.operands.every(isJobOperand)) {
    io.err("qstat: Express option can only be used with job ids\n");
    return 1;
  }
  let link: Link;
  try {
    link = await complex.connect();
  } catch (error) {
    if (error instanceof ServerUnreachable) return unreachable(io, complex, error);
    throw error;
  }
  try {
    return await show({ io, complex, link, options });
  } catch (error) {
    if (error instanceof ServerUnreachable) return unreachable(io, complex, error);
    throw error;
  } finally {
    link.close();
  }
}

function unreachable(io: CommandIo, complex: Complex, error: ServerUnreachable): number {
  cannotConnect(io, "qstat", complex, error);
  return UNREACHABLE_STATUS;
}

async function show(world: Pick<Session, "io" | "complex" | "link" | "options">): Promise<number> {
  const output = gatheredOutput(world.io);
  const printer = await makePrinter(world, output);
  const session: Session = { ...world, output, printer, status: 0 };
  switch (world.options.object) {
    case "jobs":
      await showJobs(session);
      break;
    case "queues":
      await showQueues(session);
      break;
    case "servers":
      await showServers(session);
      break;
    default: {
      const impossible: never = world.options.object;
      return impossible;
    }
  }
  printer.end();
  output.flush();
  return session.status;
}

// --- printing of objects

type Printer = {
  /** attributes to request; undefined: all */
  readonly attrs: readonly string[] | undefined;
  readonly print: (object: Job) => void;
  /** called after all objects of one operand have been printed */
  readonly endOperand?: () => void;
  readonly end: () => void;
};

async function makePrinter(world: Pick<Session, "complex" | "link" | "options">, output: Output): Promise<Printer> {
  const { options, complex } = world;
  if (options.layout === "long") return longPrinter(options, complex, output);
  if (options.object === "queues") return options.layout === "limits" ? limitsPrinter(options, complex, output) : queuePrinter(output);
  if (options.object === "servers") return tablePrinter(SERVER_ATTRIBUTES, SERVER_HEADER, serverRow, output);
  const about = await aboutServer(world.link);
  const jobs =
    options.layout === "alternate" ? alternatePrinter(options, complex, about.comment, output) : shortPrinter(options, about, output);
  if (!options.arrays_only) return jobs;
  return { ...jobs, print: (job) => isOfArray(job, options) && jobs.print(job) };
}

/** Whether -J selects the job: it selects arrays, with -t also their subjobs, and with -t and without operands only subjobs. */
function isOfArray({ id }: Job, { subjobs, operands }: QstatOptions): boolean {
  return subjobs && operands.length === 0 ? /\[\d+\]/.test(id) : id.includes("[");
}

const SECTION = { jobs: ["Job Id", "Jobs"], queues: ["Queue", "Queue"], servers: ["Server", "Server"] } as const;

function longPrinter(options: QstatOptions, complex: Complex, output: Output): Printer {
  const [tag, section] = SECTION[options.object];
  const shown = (object: Job): boolean => !options.arrays_only || isOfArray(object, options);
  switch (options.format) {
    case "text": {
      const textOf = longWriter(options.wide);
      return {
        attrs: undefined,
        print: (object) => shown(object) && output.write(textOf(tag, object.id, object.attrs)),
        end() {},
      };
    }
    case "dsv":
      return {
        attrs: undefined,
        print: (object) => shown(object) && output.write(dsvLine(`${tag}: `, object.id, object.attrs, options.delimiter)),
        end() {},
      };
    case "json": {
      const about = { now_s: Math.floor(complex.now_ms() / 1000), version: PBS_VERSION, server: complex.conf().server };
      const document: JsonDocument = jsonDocument(section, about);
      const attrsOf = jsonWriter(2);
      return {
        attrs: undefined,
        print: (object) => shown(object) && output.write(document.object(object.id, attrsOf(object.attrs))),
        end: () => output.write(document.end()),
      };
    }
    default: {
      const impossible: never = options.format;
      return impossible;
    }
  }
}

function tablePrinter(attrs: readonly string[], header: string, row: (object: Job) => string, output: Output): Printer {
  let first = true;
  return {
    attrs,
    print(object) {
      output.write(first ? header + row(object) : row(object));
      first = false;
    },
    end() {},
  };
}

const queuePrinter = (output: Output): Printer => tablePrinter(QUEUE_ATTRIBUTES, QUEUE_HEADER, queueRow, output);

/** Prints the table of -q, which ends with sums. Each operand has its own table, so endOperand ends a table. */
function limitsPrinter(options: QstatOptions, complex: Complex, output: Output): Printer {
  let queues: Job[] = [];
  const end = (): void => {
    if (queues.length > 0) output.write(limitsFooter(queues));
    queues = [];
  };
  return {
    attrs: LIMIT_ATTRIBUTES,
    print(queue) {
      output.write((queues.length === 0 ? limitsHeader(complex.conf().server) : "") + limitsRow(queue, options.size));
      queues.push(queue);
    },
    endOperand: end,
    end,
  };
}

type AboutServer = { readonly comment: string; readonly long_ids: boolean };

/**
 * Requests what the listing needs to know about the server: its comment, printed above the tables, and whether job ids are long, which decides the width of
 * columns.
 */
async function aboutServer(link: Link): Promise<AboutServer> {
  const { items } = await statusItems(link, { kind: "status", object: "server", ids: [], attrs: ["comment", "max_job_sequence_id"] });
  const server = items.find((item): item is Job => "attrs" in item);
  if (server === undefined) return { comment: "", long_ids: false };
  return { comment: scalar(server, "comment"), long_ids: Number(scalar(server, "max_job_sequence_id")) > SEQUENCE_ID_SHORT_MAX };
}

function shortPrinter(options: QstatOptions, about: AboutServer, output: Output): Printer {
  const layout: ShortLayout = { wide: options.wide, percent: options.percent, long_ids: about.long_ids };
  const comment = about.comment === "" ? "" : `${about.comment}\n`;
  return tablePrinter(shortAttributes(layout), comment + shortHeader(layout), (job) => shortRow(job, layout), output);
}

function alternatePrinter(options: QstatOptions, complex: Complex, comment: string, output: Output): Printer {
  const now_ms = complex.now_ms();
  const header = alternateHeader(complex.conf().server, comment, options);
  const table = tablePrinter(alternateAttributes(options), header, (job) => alternateRow(job, options, now_ms), output);
  if (!options.estimates) return table;
  const jobs: Job[] = [];
  return { attrs: table.attrs, print: (job) => jobs.push(job), end: () => jobs.sort(compareStarts(now_ms)).forEach(table.print) };
}

// --- jobs

const isJobOperand = (operand: string): boolean => /^\d/.test(operand);

async function showJobs(session: Session): Promise<void> {
  const { options } = session;
  if (options.operands.length === 0) return showQueueOfJobs(session, null, "");
  let ids: string[] = [];
  const showGathered = async (): Promise<void> => {
    const gathered = ids;
    ids = [];
    if (gathered.length > 0) await showNamedJobs(session, gathered);
  };
  for (const operand of options.operands) {
    if (isJobOperand(operand)) {
      const id = await completeJobId(session.complex, operand);
      if (id.kind === "id") {
        ids.push(id.id);
        continue;
      }
      await showGathered();
      if (id.kind === "malformed") fail(session, `qstat: illegally formed job identifier: ${operand}\n`, 1);
      else await isReachable(session, id.server);
      continue;
    }
    await showGathered();
    const destination = parseDestination(operand);
    if (destination === null) fail(session, `qstat: illegally formed destination: ${operand}\n`, 1);
    else if (await isReachable(session, destination.server)) await showQueueOfJobs(session, destination.queue || null, destination.queue);
  }
  await showGathered();
}

function fail(session: Session, text: string, status: number): void {
  session.output.error(text);
  session.status = status;
}

/** Whether an operand names the server of our complex. If it names another server, the user is told. */
async function isReachable(session: Session, server: string | null): Promise<boolean> {
  try {
    await mustBeOurs(session.complex, server);
    return true;
  } catch (error) {
    if (!(error instanceof ServerUnreachable)) throw error;
    session.output.flush();
    session.status = unreachable(session.io, session.complex, error);
    return false;
  }
}

function jobRequest(session: Session, what: Pick<StatusRequest, "ids" | "queue" | "brief">): StatusRequest {
  const { options, printer } = session;
  const filter = options.users.length > 0 || options.states !== null ? ["Job_Owner", "job_state"] : [];
  return {
    kind: "status",
    object: "job",
    ...what,
    ...(printer.attrs === undefined ? {} : { attrs: [...new Set([...printer.attrs, ...filter])] }),
    // Jobs that are named as operands are shown in any state. For them -H only means that finished jobs are included.
    ...(options.history === null ? {} : { history: what.ids.length > 0 ? "with" : options.history }),
    ...(options.subjobs ? { subjobs: true } : {}),
  };
}

/** Shows jobs by id, whatever their state and owner. */
async function showNamedJobs(session: Session, ids: string[]): Promise<void> {
  if (session.options.express) ids.sort(compareJobIds);
  const each = (item: StatusItem): void => {
    if ("attrs" in item) session.printer.print(item);
    else if (!session.options.express) tellJob(session, item);
  };
  for (let at = 0; at < ids.length; at += LIMITS.job_ids_max) {
    const some = ids.slice(at, at + LIMITS.job_ids_max);
    const reply = await session.link.request(jobRequest(session, { ids: some }), {
      onPart: (items) => (items as StatusItem[]).forEach(each),
    });
    if (reply.ok) continue;
    tellJob(session, { ...reply, id: reply.code === PBSE_JOBHISTNOTSET ? nth(ids, 0) : ids.join(" ") });
    break;
  }
}

function tellJob(session: Session, refused: { readonly id: string; readonly code: number; readonly text: string | null }): void {
  const { code, id } = refused;
  if (code === PBSE_HISTJOBID) {
    return fail(session, `qstat: ${id} Job has finished, use -x or -H to obtain historical job information\n`, refusalStatus(code));
  }
  if (code === PBSE_JOBHISTNOTSET) return session.output.error(`qstat: ${refused.text} ${id}\n`);
  fail(
    session,
    refused.text === null ? `qstat: Server returned error ${code} for job ${id}\n` : `qstat: ${refused.text} ${id}\n`,
    refusalStatus(code),
  );
}

/** Shows the jobs that the options select: the jobs of a queue, or all jobs. */
async function showQueueOfJobs(session: Session, queue: string | null, destination: string): Promise<void> {
  const { options, printer } = session;
  const whole = wholeItems();
  const each = (brief: BriefItem): void => {
    const item = whole(brief);
    if ("attrs" in item && isSelected(item, options)) printer.print(item);
  };
  const request = jobRequest(session, { ids: [], brief: true, ...(queue === null ? {} : { queue }) });
  const reply = await session.link.request(request, { onPart: (items) => (items as BriefItem[]).forEach(each) });
  if (!reply.ok) tellDestination(session, reply, destination);
}

function isSelected(job: Job, options: QstatOptions): boolean {
  if (options.users.length > 0 && !isOwnedBy(job, options.users)) return false;
  if (options.states === null) return true;
  return (options.states === "idle" ? "EHQTW" : "RS").includes(scalar(job, "job_state"));
}

function tellDestination(session: Session, reply: ErrorReply, destination: string): void {
  const { code, text } = reply;
  if (code === PBSE_UNKQUE) return fail(session, `qstat: Unknown queue destination ${destination}\n`, refusalStatus(code));
  if (code === PBSE_UNKJOBID) return;
  if (code === PBSE_JOBHISTNOTSET) return session.output.error(`qstat: ${text} ${destination}\n`);
  fail(session, text === null ? `qstat: Error ${code}\n` : `qstat: ${text} ${destination}\n`, refusalStatus(code));
}

// --- queues and servers

async function showQueues(session: Session): Promise<void> {
  const { operands } = session.options;
  if (operands.length === 0) return showObjects(session, "queue", []);
  for (const operand of operands) {
    const destination = parseDestination(operand);
    if (destination === null) fail(session, `qstat: illegal 'destination' value\n`, 1);
    else if (await isReachable(session, destination.server))
      await showObjects(session, "queue", destination.queue === "" ? [] : [destination.queue]);
    session.printer.endOperand?.();
  }
}

async function showServers(session: Session): Promise<void> {
  const { operands } = session.options;
  if (operands.length === 0) return showObjects(session, "server", []);
  for (const operand of operands) if (await isReachable(session, operand)) await showObjects(session, "server", []);
}

async function showObjects(session: Session, object: StatusObject, ids: readonly string[]): Promise<void> {
  const { attrs } = session.printer;
  const { reply, items } = await statusItems(session.link, { kind: "status", object, ids, ...(attrs === undefined ? {} : { attrs }) });
  for (const item of items) {
    if ("attrs" in item) session.printer.print(item);
    else fail(session, `qstat: ${item.text ?? `Error ${item.code}`} ${item.id}\n`, refusalStatus(item.code));
  }
  if (!reply.ok)
    fail(session, `qstat: ${reply.text ?? `Error ${reply.code}`} ${ids.join(" ")}\n`.replace(" \n", "\n"), refusalStatus(reply.code));
}
