// Parses the arguments of qstat: options, their conflicts, and what is shown (docs/reference/commands.md 2). Pure.

import { optionFault, scanOptions } from "../getopt.ts";

export const QSTAT_USAGE = `usage: 
qstat [-f] [-J] [-p] [-t] [-x] [-E] [-F format | -w] [-D delim] [ job_identifier... | destination... ]
qstat [-a|-i|-r|-H|-T] [-J] [-t] [-u user] [-n] [-s] [-G|-M] [-1] [-w]
	[ job_identifier... | destination... ]
qstat -Q [-f] [-F format] [-D delim] [ destination... ]
qstat -q [-G|-M] [ destination... ]
qstat -B [-f] [-F format] [-D delim] [ server_name... ]
qstat --version
`;

const LETTERS = "ainpqrstwxu:fGHJMQEBW:T1F:D:";
/** options each of which selects the alternate layout */
const ALTERNATE = "airHTunsGM";
/** at most one of these options may be given */
const EXCLUSIVE = "airqH";

export type QstatFormat = "text" | "dsv" | "json";

export type QstatOptions = {
  readonly object: "jobs" | "queues" | "servers";
  /** short and alternate: tables of jobs. long: -f. limits: -q */
  readonly layout: "short" | "alternate" | "long" | "limits";
  readonly format: QstatFormat;
  readonly delimiter: string;
  readonly wide: boolean;
  readonly percent: boolean;
  readonly nodes: boolean;
  readonly comments: boolean;
  readonly one_line: boolean;
  readonly estimates: boolean;
  readonly size: "short" | "G" | "M";
  /** states of the jobs that are shown if no job is named; null: all states */
  readonly states: "idle" | "running" | null;
  readonly history: "with" | "only" | null;
  readonly subjobs: boolean;
  readonly arrays_only: boolean;
  readonly express: boolean;
  /** users in the form user[@host] */
  readonly users: readonly string[];
  readonly operands: readonly string[];
};

export type QstatArguments = { readonly ok: true; readonly options: QstatOptions } | { readonly ok: false; readonly errors: string };

export function parseQstatArguments(argv: readonly string[]): QstatArguments {
  const scan = scanOptions(argv, LETTERS);
  const given = new Set<string>();
  let conflict = false;
  let [errors, users, format, delimiter] = ["", "", null as string | null, null as string | null];
  let faulty = false;
  for (const event of scan.events) {
    const fault = optionFault("qstat", event);
    if (fault !== null) {
      errors += `${fault}\n`;
      faulty = true;
    } else if (event.kind === "option") {
      conflict ||= conflictsWithEarlier(event.letter, given);
      given.add(event.letter);
      if (event.letter === "u") users = event.value;
      if (event.letter === "F") format = event.value;
      if (event.letter === "D") delimiter = event.value;
      if (event.letter === "W") faulty = true;
    }
  }
  if (!faulty && (conflict || hasConflict(given))) {
    errors += "qstat: conflicting options.\n";
    faulty = true;
  }
  if (given.has("w") && given.has("F")) {
    errors += "qstat: option w cannot be used with -F\n";
    faulty = true;
  }
  if (format !== null && !isFormat(format)) faulty = true;
  if (delimiter !== null && (format?.toLowerCase() !== "dsv" || delimiter === "")) faulty = true;
  if (users === "" && given.has("u")) faulty = true;
  if (faulty) return { ok: false, errors: errors + QSTAT_USAGE };
  return { ok: true, options: makeOptions(given, { users, format, delimiter, operands: scan.operands }) };
}

const isFormat = (text: string): boolean => ["json", "dsv"].includes(text.toLowerCase());

/** Whether -B or -Q conflicts with an earlier option, because both select what is listed: jobs, queues or servers. Options that come later are not checked. */
function conflictsWithEarlier(letter: string, given: ReadonlySet<string>): boolean {
  if (letter !== "B" && letter !== "Q") return false;
  if (given.has(letter === "B" ? "Q" : "B")) return true;
  return !given.has("w") && [...`${ALTERNATE}q1`].some((each) => given.has(each));
}

function hasConflict(given: ReadonlySet<string>): boolean {
  const any = (letters: string): boolean => [...letters].some((letter) => given.has(letter));
  const count = (letters: string): number => [...letters].filter((letter) => given.has(letter)).length;
  if (count(EXCLUSIVE) > 1) return true;
  if (given.has("G") && given.has("M")) return true;
  if (given.has("1") && !any("ns")) return true;
  if (given.has("q") && given.has("f")) return true;
  return given.has("F") && (!given.has("f") || any(`${ALTERNATE}q1w`));
}

type Values = {
  readonly users: string;
  readonly format: string | null;
  readonly delimiter: string | null;
  readonly operands: readonly string[];
};

function makeOptions(given: ReadonlySet<string>, values: Values): QstatOptions {
  const has = (letter: string): boolean => given.has(letter);
  const object = has("Q") || has("q") ? "queues" : has("B") ? "servers" : "jobs";
  const alternate = object === "jobs" && [...ALTERNATE].some(has);
  return {
    object,
    layout: has("q") ? "limits" : has("f") ? "long" : alternate ? "alternate" : "short",
    format: values.format === null ? "text" : (values.format.toLowerCase() as QstatFormat),
    delimiter: values.delimiter ?? "|",
    wide: has("w"),
    percent: has("p"),
    nodes: has("n"),
    comments: has("s"),
    one_line: has("1"),
    estimates: has("T"),
    size: has("G") ? "G" : has("M") ? "M" : "short",
    states: has("i") ? "idle" : has("r") ? "running" : null,
    history: has("H") ? "only" : has("x") ? "with" : null,
    subjobs: has("t"),
    arrays_only: has("J"),
    express: has("E"),
    users: values.users === "" ? [] : values.users.split(",").filter((user) => user !== ""),
    operands: values.operands,
  };
}
