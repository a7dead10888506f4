// Options of qsub and qalter that set job attributes (docs/reference/commands.md 1 and 3): the form of each value and the
// attribute that it sets. Pure: facts about the environment are parameters.

import type { AttrValueText } from "#protocol/messages.ts";
import { parseTimeArgument } from "./dates.ts";
import { isAtList, isStageList, type NamedValue, parseNamedValues, parseResources } from "./value-lists.ts";

export type JobOptionWorld = {
  readonly command: string;
  readonly now_ms: number;
  /** completes the path of `-o` or `-e` to host:/absolute/path. Returns null if the text is not a path */
  readonly outputPath: (text: string) => string | null;
};

export type OptionResult = { readonly ok: true; readonly attrs: readonly AttrValueText[] } | { readonly ok: false; readonly text: string };

const NAME_MAX = 230;
const PRIORITY_MAX = 1023;

/** Returns the attributes that an option sets, or the message about its fault. (For -W see readKeywords.) */
export function readJobOption(letter: string, value: string, world: JobOptionWorld): OptionResult {
  const illegal: OptionResult = { ok: false, text: `${world.command}: illegal -${letter} value\n` };
  const set = (name: string, text = value): OptionResult => ({ ok: true, attrs: [{ name, value: text }] });
  const check = (fits: boolean, name: string, text = value): OptionResult => (fits ? set(name, text) : illegal);
  switch (letter) {
    case "a": {
      const epoch_s = parseTimeArgument(value, world.now_ms);
      return epoch_s === null ? illegal : set("Execution_Time", String(epoch_s));
    }
    case "A":
      return set("Account_Name");
    case "c":
      return check(/^(?:n|s|[cw](?:=\d+)?)$/.test(value), "Checkpoint");
    case "e":
    case "o": {
      const path = world.outputPath(value);
      return path === null ? illegal : set(letter === "e" ? "Error_Path" : "Output_Path", path);
    }
    case "j":
      return check(/^(?:oe|eo|n)$/.test(value), "Join_Path");
    case "k":
      return check(value === "n" || (/^[oed]+$/.test(value) && /[oe]/.test(value)), "Keep_Files");
    case "l":
      return readResources(value, world);
    case "m":
      return check(value === "n" || /^[abej]+$/.test(value), "Mail_Points");
    case "M":
      return check(isAtList(value), "Mail_Users");
    case "N":
      return readName(value, world, illegal);
    case "p":
      return check(/^[+-]?\d+$/.test(value) && Math.abs(Number(value) + 0.5) <= PRIORITY_MAX + 0.5, "Priority", value.replace(/^\+/, ""));
    case "P":
      return set("project");
    case "r":
      return check(value === "y" || value === "n", "Rerunable", value === "y" ? "True" : "False");
    case "R":
      return check(/^(?:o|e|oe|eo)$/.test(value), "Remove_Files");
    case "S":
      return check(isAtList(value, { onePerHost: true, absolute: true }), "Shell_Path_List");
    case "u":
      return check(isAtList(value, { onePerHost: true }), "User_List");
    default:
      return illegal;
  }
}

/** Whether a text is a legal job name: 1 to 230 printable characters without blank and `/`. */
export function isJobName(text: string): boolean {
  return text.length <= NAME_MAX && /^[^\s/\p{Cc}]+$/u.test(text);
}

function readName(value: string, world: JobOptionWorld, illegal: OptionResult): OptionResult {
  if (value.length > NAME_MAX) return { ok: false, text: `${world.command}: Job name is too long \n` };
  return isJobName(value) ? { ok: true, attrs: [{ name: "Job_Name", value }] } : illegal;
}

function readResources(value: string, world: JobOptionWorld): OptionResult {
  const resources = parseResources(value);
  if (Array.isArray(resources)) {
    return { ok: true, attrs: resources.map(({ name, value: amount }) => ({ name: "Resource_List", resource: name, value: amount })) };
  }
  const { at } = resources as { readonly at: number };
  return { ok: false, text: `${world.command}: illegal -l value\n${value}\n${" ".repeat(at)}^\n` };
}

/** Parses the keywords of -W. Returns null if the text is malformed, or if a value is one that the command itself refuses. */
export function readKeywords(value: string): readonly NamedValue[] | null {
  const keywords = parseNamedValues(value);
  if (keywords === null) return null;
  const fits = ({ name, value: text }: NamedValue): boolean => {
    switch (name) {
      case "sandbox":
        return ["HOME", "O_WORKDIR", "PRIVATE"].includes(text.toUpperCase());
      case "block":
      case "interactive":
        return /^(?:true|false)$/i.test(text);
      case "stagein":
      case "stageout":
        return isStageList(text);
      case "group_list":
        return isAtList(text, { onePerHost: true });
      default:
        return true;
    }
  };
  return keywords.every(fits) ? keywords : null;
}

/** Returns the attribute that a keyword `name` or `name.resource` sets. */
export function keywordAttribute({ name, value }: NamedValue): AttrValueText {
  const dot = name.indexOf(".");
  if (dot > 0) return { name: name.slice(0, dot), resource: name.slice(dot + 1), value };
  return { name, value: name === "sandbox" ? value.toUpperCase() : value };
}
