// qselect: prints the ids of the jobs that meet all criteria (docs/reference/commands.md 3).

import { ServerUnreachable } from "#protocol/client.ts";
import type { SelectJobsRequest } from "#protocol/messages.ts";
import { nth } from "#support/assert.ts";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex, cannotConnect, mustBeOurs } from "../../complex.ts";
import { parseTimeArgument } from "../../dates.ts";
import { parseDestination } from "../../destinations.ts";
import { PBSE_UNKQUE, refusalStatus } from "../../errors.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { isHoldList } from "../../holds.ts";
import { isJobName } from "../../job-options.ts";
import { isAtList, splitUnquoted } from "../../value-lists.ts";

const USAGE = `usage: qselect [-a [op]date_time] [-A account_string] [-c [op]interval]
	[-h hold_list] [-H] [-J] [-l resource_list] [-N name] [-p [op]priority]
	[-q destination] [-r y|n] [-s states] [-t subopt[op]date_time] [-T] [-P project_name]
	[-x] [-u user_name]
       qselect --version
`;
const LETTERS = "a:A:c:h:HJl:N:p:q:r:s:t:TP:xu:";
const STATES = /^[BEFHMQRSTUWX]+$/;

export const run: Command = asCommand("qselect", USAGE, qselect);

type Criterion = SelectJobsRequest["criteria"][number];
type Operator = Criterion["op"];

export async function qselect(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, LETTERS);
  const criteria: Criterion[] = [];
  let request: Omit<SelectJobsRequest, "criteria"> = { kind: "select-jobs" };
  let faults = "";
  for (const event of scan.events) {
    const fault = optionFault("qselect", event);
    if (fault !== null) faults += `${fault}\n`;
    if (event.kind !== "option") continue;
    const found = readCriterion(event.letter, event.value, complex.now_ms());
    if (typeof found === "string") faults += found;
    else if (Array.isArray(found)) criteria.push(...found);
    else request = { ...request, ...(found as Partial<SelectJobsRequest>) };
  }
  if (faults !== "" || scan.operands.length > 0) {
    io.err(faults + USAGE);
    return 2;
  }
  const destination = parseDestination(request.destination ?? "");
  if (destination === null) {
    io.err(`qselect: illegally formed destination: ${request.destination}\n`);
    return 2;
  }
  return select(io, complex, { ...request, criteria }, destination.server);
}

async function select(io: CommandIo, complex: Complex, request: SelectJobsRequest, server: string | null): Promise<number> {
  try {
    await mustBeOurs(complex, server);
    const link = await complex.connect();
    const reply = await link.request(request);
    link.close();
    if (reply.ok) {
      const ids = reply.value as readonly string[];
      if (ids.length > 0) io.out(`${ids.join("\n")}\n`);
      return 0;
    }
    if (reply.code === PBSE_UNKQUE) io.err("qselect: Unknown queue destination\n");
    else io.err(`qselect: ${reply.text ?? `Server returned error ${reply.code}`}\n`);
    return refusalStatus(reply.code);
  } catch (error) {
    if (error instanceof ServerUnreachable) return cannotConnect(io, "qselect", complex, error);
    throw error;
  }
}

/** Returns the criteria or the request fields of an option, or the message about its fault. */
function readCriterion(letter: string, value: string, now_ms: number): readonly Criterion[] | Partial<SelectJobsRequest> | string {
  const illegal = `qselect: illegal -${letter} value\n`;
  const equal = (name: string, fits = true, text = value): readonly Criterion[] | string =>
    fits ? [{ name, op: "eq", value: text }] : illegal;
  switch (letter) {
    case "a":
      return compared("Execution_Time", value, (text) => timeText(text, now_ms)) ?? illegal;
    case "A":
      return equal("Account_Name");
    case "c":
      return compared("Checkpoint", value, (text) => (/^(?:n|s|u|[cw](?:=\d+)?)$/.test(text) ? text : null)) ?? illegal;
    case "h":
      return equal("Hold_Types", isHoldList(value));
    case "H":
      return { history: "only" };
    case "J":
      return { arraysOnly: true };
    case "l":
      return resourceCriteria(value) ?? `${illegal}resource_list: ${value}\n`;
    case "N":
      return equal("Job_Name", isJobName(value));
    case "p":
      return compared("Priority", value, (text) => text) ?? illegal;
    case "P":
      return equal("project");
    case "q":
      return { destination: value };
    case "r":
      return equal("Rerunable", value === "y" || value === "n", value === "y" ? "True" : "False");
    case "s":
      return STATES.test(value) ? { states: value } : illegal;
    case "t":
      return timeCriterion(value, now_ms) ?? illegal;
    case "T":
      return { subjobs: true };
    case "u":
      return equal("User_List", isAtList(value));
    case "x":
      return { history: "with" };
    default:
      return illegal;
  }
}

const OPERATOR = /^\.(eq|ne|ge|gt|le|lt)\.\s*(.*)$/s;

/** Parses `[op]value`. Without an operator, .eq is meant. Returns null if the value is malformed. */
function compared(name: string, text: string, read: (value: string) => string | null): readonly Criterion[] | null {
  const match = OPERATOR.exec(text.trim());
  const value = read(match === null ? text.trim() : nth(match, 2));
  return value === null || value === "" ? null : [{ name, op: (match?.[1] ?? "eq") as Operator, value }];
}

function timeText(text: string, now_ms: number): string | null {
  const epoch_s = parseTimeArgument(text, now_ms);
  return epoch_s === null ? null : String(epoch_s);
}

const TIMES: Readonly<Record<string, readonly [name: string, resource?: string]>> = {
  a: ["Execution_Time"],
  c: ["ctime"],
  e: ["etime"],
  g: ["eligible_time"],
  m: ["mtime"],
  q: ["qtime"],
  s: ["stime"],
  t: ["estimated", "start_time"],
};

/** Parses the value of -t: a letter that selects which time is compared, then `[op]date_time`. For eligible time, a duration takes the place of date_time. */
function timeCriterion(text: string, now_ms: number): readonly Criterion[] | null {
  const [name, resource] = TIMES[text[0] ?? ""] ?? [null];
  if (name === null) return null;
  const read = name === "eligible_time" ? durationText : (value: string) => timeText(value, now_ms);
  const criteria = compared(name, text.slice(1), read);
  return criteria?.map((criterion) => (resource === undefined ? criterion : { ...criterion, resource })) ?? null;
}

const durationText = (text: string): string | null => (/^(?:\d+:){0,2}\d+(?:\.\d+)?$/.test(text) ? text : null);

/** Parses `name.op.value[,...]`. Returns null if the text is malformed. */
function resourceCriteria(text: string): readonly Criterion[] | null {
  const parts = splitUnquoted(text, ",") ?? [];
  const criteria = parts.map((part) => /^\s*([A-Za-z_][\w-]*)\s*\.(eq|ne|ge|gt|le|lt)\.\s*(.+)$/s.exec(part));
  if (criteria.length === 0 || criteria.includes(null)) return null;
  return criteria.map((match) => {
    const [, resource = "", op, value = ""] = match ?? [];
    return { name: "Resource_List", resource, op: op as Operator, value: value.trim() };
  });
}
