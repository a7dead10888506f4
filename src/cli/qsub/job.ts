// Makes one submission from the words of a command line: script or program, directives, variables, and the request for the
// server (docs/reference/commands.md 1).

import { isUtf8 } from "node:buffer";
import { closeSync, fstatSync, openSync, readFileSync, statSync } from "node:fs";
import { basename } from "node:path";
import { isMarkedScript, markedScript, scriptCharacters } from "#model/script-text.ts";
import { splitWords } from "#model/values/words.ts";
import type { AttrValueText, QueueJobRequest } from "#protocol/messages.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import { type Destination, parseDestination } from "../destinations.ts";
import { isJobName } from "../job-options.ts";
import { addSource, copyDraft, type Draft, type DraftWorld, draftConflicts, emptyDraft, RANK } from "./draft.ts";
import { hasDosLineEnd, readDirectives } from "./script.ts";
import { allVariables, type Env, joinVariables, namedVariables, originVariables } from "./variables.ts";

export const QSUB_USAGE = `usage: qsub [-a date_time] [-A account_string] [-c interval]
	[-C directive_prefix] [-e path] [-f ] [-h ] [-I [-X]] [-j oe|eo] [-J X-Y[:Z]]
	[-k keep] [-l resource_list] [-m mail_options] [-M user_list]
	[-N jobname] [-o path] [-p priority] [-P project] [-q queue] [-r y|n]
	[-R o|e|oe] [-S path] [-u user_list] [-W otherattributes=value...]
	[-v variable_list] [-V ] [-z] [script | -- command [arg1 ...]]
       qsub --version
`;

/** Text that --help adds to the usage. The usage itself is that of PBS, word for word. */
export const QSUB_HELP = `${QSUB_USAGE}
  -J X-Y:Z%max   an array, at most max of whose subjobs run at a time
  --batch FILE   many jobs over one connection, a line of FILE each (-: standard input); the other options are those of all of them
  --batch-format wr   the lines of FILE are those of wr add: a command, a tab and JSON
`;

const USAGE_STATUS = 2;
const FAILED = 1;
const CANNOT_OPEN = 8;
const NAME_MAX = 230;

/** The error for a submission with a fault. It has the text to print and the exit status. */
export class SubmitError extends Error {
  readonly text: string;
  readonly status: number;
  constructor(text: string, status: number) {
    super(text);
    this.text = text;
    this.status = status;
  }
}

export type SubmitWorld = DraftWorld & {
  readonly env: Env;
  /** directory: the working directory as the user knows it. cwd: where scripts are searched for */
  readonly directory: string;
  readonly cwd: string;
  readonly conf_values: Readonly<Record<string, string>>;
  /** reads the script from standard input. Throws SubmitError if there is none */
  readonly readStdin: () => Promise<Buffer>;
  /** the texts of script files read so far, by path: many lines of a batch name the same file */
  readonly scripts?: Map<string, string>;
};

/** A job to submit. Only the server's default arguments are still to be added. */
export type Job = {
  readonly draft: Draft;
  readonly script: string | null;
  readonly default_name: string;
  readonly program: readonly string[];
  readonly words: readonly string[];
  readonly variables: string;
};

/** Makes a job of the words of a command line. Throws SubmitError. */
export async function makeJob(words: readonly string[], world: SubmitWorld, given?: { readonly script?: string }): Promise<Job> {
  const draft = emptyDraft();
  const source = addSource(draft, words, RANK.command_line, world);
  if (source.faults !== null)
    throw new SubmitError(source.faults.text + (source.faults.stop ? "" : QSUB_USAGE), source.faults.stop ? FAILED : USAGE_STATUS);
  const { operands, literal_from } = source;
  if (literal_from !== null) {
    if (literal_from > 0 || operands.length === 0) throw new SubmitError(QSUB_USAGE, USAGE_STATUS);
    mustAgree(draft);
    return { draft, script: null, default_name: "STDIN", program: operands, words, variables: variableList(draft, world) };
  }
  if (operands.length > 1) throw new SubmitError(QSUB_USAGE, USAGE_STATUS);
  mustAgree(draft);
  // This interactive job has no script: its commands are those that the user will type.
  if (operands.length === 0 && draft.flags.has("I") && given === undefined)
    return { draft, script: null, default_name: "STDIN", program: [], words, variables: variableList(draft, world) };
  const [file = "-"] = operands;
  const script = addDirectives(draft, given?.script ?? (await readScript(file, world)), world);
  mustAgree(draft);
  const default_name = file === "-" ? "STDIN" : basename(file);
  return { draft, script, default_name, program: [], words, variables: variableList(draft, world) };
}

function mustAgree(draft: Draft): void {
  const conflicts = draftConflicts(draft);
  if (conflicts !== null) throw new SubmitError(conflicts + QSUB_USAGE, USAGE_STATUS);
}

/** Adds the directives of a script to the draft. Returns the script in the form in which it is sent. */
function addDirectives(draft: Draft, text: string, world: SubmitWorld): string {
  const characters = scriptCharacters(text);
  if (hasDosLineEnd(characters)) throw new SubmitError("qsub: script contains cr, lf\n", FAILED);
  const prefix = draft.flags.get("C")?.value ?? world.env["PBS_DPREFIX"] ?? "#PBS";
  const { directives, script } = readDirectives(characters, prefix);
  for (const directive of directives) {
    const fault = directiveFault(draft, directive, world);
    if (fault !== null) throw new SubmitError(`${fault}qsub: directive error: ${directive} \n`, FAILED);
  }
  return isMarkedScript(text) ? markedScript(script) : script;
}

/**
 * Returns the lines to print before a faulty directive ("": nothing is printed before it), or null if the directive has no fault. A word that does not belong
 * to an option is a fault.
 */
function directiveFault(draft: Draft, directive: string, world: SubmitWorld): string | null {
  const words = splitWords(directive);
  if (words === null) return "";
  const { faults, operands, literal_from } = addSource(draft, words, RANK.directive, world);
  if (faults !== null) return faults.text;
  return operands.length > 0 || literal_from !== null ? "" : null;
}

async function readScript(file: string, world: SubmitWorld): Promise<string> {
  const known = world.scripts?.get(file);
  if (known !== undefined) return known;
  const bytes = file === "-" ? await world.readStdin() : readFile(file.startsWith("/") ? file : `${world.cwd}/${file}`);
  if (bytes.includes(0)) throw new SubmitError("qsub: script is not a text\n", FAILED);
  const text = isUtf8(bytes) ? bytes.toString("utf8") : null;
  const script = text === null || isMarkedScript(text) ? markedScript(bytes.toString("latin1")) : text;
  world.scripts?.set(file, script);
  return script;
}

function readFile(path: string): Buffer {
  try {
    if (!statSync(path).isFile()) throw new SubmitError("qsub: script not a file\n", FAILED);
  } catch (error) {
    if (error instanceof SubmitError) throw error;
    throw new SubmitError(`qsub: script file:: ${reason(error)}\n`, FAILED);
  }
  try {
    const fd = openSync(path, "r");
    try {
      if (!fstatSync(fd).isFile()) throw new SubmitError("qsub: script not a file\n", FAILED);
      return readFileSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (error instanceof SubmitError) throw error;
    throw new SubmitError(`qsub: opening script file:: ${reason(error)}\n`, CANNOT_OPEN);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "No such file or directory",
  EACCES: "Permission denied",
  ENOTDIR: "Not a directory",
  ELOOP: "Too many levels of symbolic links",
  ENAMETOOLONG: "File name too long",
};

const reason = (error: unknown): string => REASONS[codeOf(error) ?? ""] ?? messageOf(error);

function variableList(draft: Draft, world: SubmitWorld): string {
  const list = draft.flags.get("v")?.value;
  const named = list === undefined ? [] : namedVariables(list, world.env);
  if (named === null) throw new SubmitError("qsub: cannot send environment with the job\n", FAILED);
  const all = draft.flags.has("V") ? allVariables(world.env) : [];
  return joinVariables(originVariables(world.env, world.directory, world.conf_values), all, named);
}

/** Returns the destination in the form in which the user gave it. Throws SubmitError if it is malformed. */
export function destinationOf(draft: Draft): Destination {
  const text = draft.flags.get("q")?.value ?? "";
  const destination = parseDestination(text);
  if (destination === null) throw new SubmitError(`qsub: illegally formed destination: ${text}\n`, USAGE_STATUS);
  return destination;
}

/** Returns the job's draft with the server's default_qsub_arguments added at the lowest precedence. Malformed defaults are left out. */
export function withServerDefaults(job: Job, default_arguments: string, world: SubmitWorld): Draft {
  const words = splitWords(default_arguments) ?? [];
  if (words.length === 0) return job.draft;
  const draft = copyDraft(job.draft);
  const source = addSource(draft, words, RANK.server, world);
  if (source.faults !== null) return job.draft;
  mustAgree(draft);
  return draft;
}

/** Makes the request for the server. */
export function requestOf(job: Job, draft: Draft): QueueJobRequest {
  const attrs: AttrValueText[] = [...draft.attrs.values()].map(({ attr }) => attr);
  if (!draft.attrs.has("Job_Name")) attrs.unshift({ name: "Job_Name", value: nameOfScript(job.default_name) });
  attrs.push({ name: "Variable_List", value: job.variables });
  if (job.words.length > 0) attrs.push({ name: "Submit_arguments", value: job.words.filter((word) => word !== "").join(" ") });
  const [executable, ...rest] = job.program;
  if (executable !== undefined) attrs.push({ name: "executable", value: jsdl("Executable", executable) });
  if (rest.length > 0) attrs.push({ name: "argument_list", value: rest.map((word) => jsdl("Argument", word)).join("") });
  if (!draft.flags.has("I")) return { kind: "queue-job", destination: destinationOf(draft).queue, attrs, script: job.script };
  // Of the script of an interactive job, only the directives are used.
  attrs.push({ name: "interactive", value: "True" });
  return { kind: "queue-job", destination: destinationOf(draft).queue, attrs, script: null };
}

/** Makes a job name of a file name: characters that are not allowed become `_`. */
function nameOfScript(name: string): string {
  return isJobName(name) ? name : name.replace(/[\s/\p{Cc}]/gu, "_").slice(0, NAME_MAX) || "STDIN";
}

const XML: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Writes a word in the form in which PBS stores it: <jsdl-hpcpa:Argument>a &amp; b</jsdl-hpcpa:Argument>. */
function jsdl(tag: "Executable" | "Argument", text: string): string {
  return `<jsdl-hpcpa:${tag}>${text.replace(/[&<>"]/g, (char) => XML[char] ?? char)}</jsdl-hpcpa:${tag}>`;
}
