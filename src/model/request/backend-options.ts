// The options of a job for its backend: qsub -W backend_opts="...". Each type of backend has a list of the options that it takes. Other options are refused:
// Partita submits runners with the rights of the job's owner, and decides itself about the number of runners, their names, outputs and dependencies.
//
// X1. The result has one value for each option, by its long name. A value never begins with `-`, and contains no control character.

import { PBSE, Reject } from "../pbse.ts";

type Check = (value: string) => boolean;
type Option = readonly [long: string, short: string | null, check: Check];

const TEXT: Check = (value) => value !== "" && value.length <= 1024 && !value.startsWith("-");
const COUNT: Check = (value) => /^[1-9][0-9]{0,8}$/.test(value);
const MEMORY: Check = (value) => /^[0-9]{1,12}[KMGTkmgt]?$/.test(value);
const PRIORITY: Check = (value) => /^-?[0-9]{1,4}$/.test(value);

const SLURM: readonly Option[] = [
  ["cpus-per-task", "c", COUNT],
  ["mem", null, MEMORY],
  ["tmp", null, MEMORY],
  ["constraint", "C", TEXT],
  ["exclude", "x", TEXT],
  ["gres", null, TEXT],
  ["licenses", "L", TEXT],
  ["nodelist", "w", TEXT],
  ["partition", "p", TEXT],
  ["qos", "q", TEXT],
  ["reservation", null, TEXT],
  ["wckey", null, TEXT],
  ["account", "A", TEXT],
];

const LSF: readonly Option[] = [
  ["R", "R", TEXT],
  ["q", "q", TEXT],
  ["m", "m", TEXT],
  ["P", "P", TEXT],
  ["G", "G", TEXT],
  ["g", "g", TEXT],
  ["app", null, TEXT],
  ["sla", null, TEXT],
  ["U", "U", TEXT],
  ["gpu", null, TEXT],
  ["sp", null, COUNT],
];

const PBS: readonly Option[] = [
  ["q", "q", TEXT],
  ["A", "A", TEXT],
  ["P", "P", TEXT],
  ["p", "p", PRIORITY],
];

const OPENSTACK: readonly Option[] = [
  ["flavor", null, TEXT],
  ["image", null, TEXT],
];

/** The options of each type, as in open-lmake's option -b. local ignores everything; gridengine takes no options but one number, the priority. */
const OPTIONS: Readonly<Record<string, readonly Option[]>> = {
  local: [],
  slurm: SLURM,
  gridengine: [],
  lsf: LSF,
  openstack: OPENSTACK,
  pbs: PBS,
};

const TEXT_MAX = 4096;

/** Reads the options for a backend of a type. Refuses with 15014 and a text that says what is allowed. */
export function parseBackendOptions(type: string, text: string): Readonly<Record<string, string>> {
  if (text.length > TEXT_MAX) throw refused(`longer than ${TEXT_MAX} characters`);
  const options = OPTIONS[type];
  if (options === undefined) throw refused(`no backend of type ${type} has options`);
  const words = wordsOf(text);
  if (type === "local" || words.length === 0) return {};
  if (type === "gridengine") return { p: priorityOf(words) };
  const found: Record<string, string> = {};
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word === "-h" || word === "--help") throw refused(usageOf(options));
    const option = options.find((each) => startsWith(word, each));
    if (option === undefined) throw refused(`unknown option ${word}; ${usageOf(options)}`);
    const [long, , check] = option;
    const attached = valueIn(word, option);
    const value = attached ?? words[++at] ?? "";
    if (!check(value)) throw refused(`bad value ${JSON.stringify(value)} of option ${long}`);
    found[long] = value;
  }
  return found;
}

/**
 * Reads the options that a job gives to a backend. allowed: the long names of the options that the site admits (backend_opts_allowed); undefined: all of the type's. Refuses
 * like parseBackendOptions.
 */
export function jobOptions(type: string, allowed: readonly string[] | undefined, text: string): Readonly<Record<string, string>> {
  const found = parseBackendOptions(type, text);
  const refusedNames = Object.keys(found).filter((name) => allowed !== undefined && !allowed.includes(name));
  if (refusedNames.length === 0) return found;
  const admitted = (allowed ?? []).filter((name) => name !== NO_OPTIONS);
  const rest = admitted.length === 0 ? "jobs may give no options here" : `jobs may give ${admitted.join(", ")}`;
  throw refused(`option ${refusedNames.join(", ")} is not admitted by the site; ${rest}`);
}

/** The value of backend_opts_allowed that admits no option. */
const NO_OPTIONS = "none";

function priorityOf(words: readonly string[]): string {
  const [priority = ""] = words;
  if (words.length !== 1 || !PRIORITY(priority)) throw refused("gridengine takes one number: the priority, as in qsub -p");
  return priority;
}

/** Whether a word begins with this option: `--long`, `--long=value`, `-s`, `-svalue`; LSF's long options have one dash. */
function startsWith(word: string, [long, short]: Option): boolean {
  return (
    word === `--${long}` ||
    word.startsWith(`--${long}=`) ||
    word === `-${long}` ||
    (short !== null && word.startsWith(`-${short}`) && !word.startsWith("--"))
  );
}

function valueIn(word: string, [long, short]: Option): string | undefined {
  if (word.startsWith(`--${long}=`)) return word.slice(long.length + 3);
  if (word === `--${long}` || word === `-${long}` || short === null) return undefined;
  return word.length > 2 ? word.slice(2) : undefined;
}

const usageOf = (options: readonly Option[]): string =>
  `options: ${options.map(([long, short]) => (short === null || short === long ? (short === null ? `--${long}` : `-${short}`) : `-${short}|--${long}`)).join(" ")}`;

/** Splits a text into words at blanks. Blanks in single or double quotes belong to the word, and so do quotes of the other kind. */
function wordsOf(text: string): readonly string[] {
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  for (const each of text) {
    if (each < " " || each === "\u007f") throw refused("control characters are not allowed");
    if (quote !== "") {
      if (each === quote) quote = "";
      else word += each;
    } else if (each === '"' || each === "'") {
      quote = each;
      word ??= "";
    } else if (each === " ") {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? "") + each;
  }
  if (quote !== "") throw refused(`the quote ${quote} is not closed`);
  return word === null ? words : [...words, word];
}

const refused = (why: string): Reject => new Reject(PBSE.BADATVAL, `Illegal attribute or resource value: backend_opts: ${why}`);
