// A submission that is being put together from three sources: the command line, the directives of the script, and the
// server's default_qsub_arguments, in this order of precedence (docs/reference/commands.md 1). Pure.
//
// D1. If two sources set the same option, the source with the lower rank counts. Within one source, the last setting counts.
//     Each resource of -l is an option of its own in this sense.

import type { AttrValueText } from "#protocol/messages.ts";
import { optionFault, scanOptions } from "../getopt.ts";
import { type JobOptionWorld, keywordAttribute, readJobOption, readKeywords } from "../job-options.ts";
import { QSUB_LETTERS } from "../option-letters.ts";
import { completeDependencies } from "../value-lists.ts";

export const RANK = { command_line: 0, directive: 1, server: 2 } as const;
export type Rank = (typeof RANK)[keyof typeof RANK];

export type Draft = {
  readonly attrs: Map<string, { readonly attr: AttrValueText; readonly rank: Rank }>;
  /** options that are not attributes, by letter; "block" and "pwd" come from -W */
  readonly flags: Map<string, { readonly value: string; readonly rank: Rank }>;
};

export type DraftWorld = JobOptionWorld & {
  readonly server: string;
  /** whether DISPLAY is set */
  readonly display: boolean;
  /** whether standard input and output are terminals */
  readonly terminal: boolean;
};

/** The text of all faults in the words of one source. stop: qsub prints only this text, without the usage, and exits with 1. */
export type DraftFaults = { readonly text: string; readonly stop: boolean };

export type SourceWords = {
  readonly faults: DraftFaults | null;
  readonly operands: readonly string[];
  readonly literal_from: number | null;
};

export const emptyDraft = (): Draft => ({ attrs: new Map(), flags: new Map() });

export function copyDraft(draft: Draft): Draft {
  return { attrs: new Map(draft.attrs), flags: new Map(draft.flags) };
}

/** Adds the options of one source to the draft. */
export function addSource(draft: Draft, words: readonly string[], rank: Rank, world: DraftWorld): SourceWords {
  const scan = scanOptions(words, QSUB_LETTERS);
  let text = "";
  for (const event of scan.events) {
    const fault = optionFault("qsub", event) ?? (event.kind === "option" ? addOption(draft, event.letter, event.value, rank, world) : null);
    if (fault === null) continue;
    if (typeof fault !== "string") return { faults: fault, operands: scan.operands, literal_from: scan.literal_from };
    text += fault.endsWith("\n") ? fault : `${fault}\n`;
  }
  return { faults: text === "" ? null : { text, stop: false }, operands: scan.operands, literal_from: scan.literal_from };
}

function addOption(draft: Draft, letter: string, value: string, rank: Rank, world: DraftWorld): string | DraftFaults | null {
  switch (letter) {
    case "f":
      return null;
    case "h":
      setAttribute(draft, { name: "Hold_Types", value: "u" }, rank);
      return null;
    case "I":
      setFlag(draft, "I", "", rank);
      return world.terminal ? null : { text: NO_TERMINAL, stop: true };
    case "X":
      setFlag(draft, "X", "", rank);
      return world.display ? null : { text: "qsub: DISPLAY not set\n", stop: true };
    case "J":
      return addArray(draft, value, rank);
    case "W":
      return addKeywords(draft, value, rank, world);
    case "C":
    case "q":
    case "v":
    case "V":
    case "z":
      setFlag(draft, letter, value, rank);
      return null;
    default: {
      const result = readJobOption(letter, value, world);
      if (!result.ok) return result.text;
      for (const attr of result.attrs) setAttribute(draft, attr, rank);
      return null;
    }
  }
}

const NO_TERMINAL = "qsub:\tstandard input and output must be a terminal for\n\tinteractive job submission\n";

/** Adds the array of -J X-Y[:Z][%max]. Returns the message if the value is malformed. */
function addArray(draft: Draft, value: string, rank: Rank): string | null {
  const match = /^(\d{1,9})-(\d{1,9})(?::(\d{1,9}))?(?:%(\d{1,9}))?$/.exec(value);
  if (match === null || Number(match[1]) > Number(match[2]) || Number(match[3] ?? 1) < 1 || Number(match[4] ?? 1) < 1) {
    return "qsub: illegal -J value\n";
  }
  setAttribute(draft, { name: "array_indices_submitted", value: value.replace(/%.*/, "") }, rank);
  if (match[4] === undefined) return null;
  if (draft.attrs.get("max_run_subjobs")?.rank === rank) return "qsub: multiple max_run_subjobs values found\n";
  setAttribute(draft, { name: "max_run_subjobs", value: match[4] }, rank);
  return null;
}

function addKeywords(draft: Draft, text: string, rank: Rank, world: DraftWorld): string | DraftFaults | null {
  const illegal = "qsub: illegal -W value\n";
  const keywords = readKeywords(text);
  if (keywords === null) return illegal;
  for (const keyword of keywords) {
    const { name, value } = keyword;
    if (name === "block" || name === "pwd") setFlag(draft, name, value.toLowerCase(), rank);
    else if (name === "interactive") {
      if (value.toLowerCase() !== "true") continue;
      const fault = addOption(draft, "I", "", rank, world);
      if (fault !== null) return fault;
    } else if (name === "depend") {
      const depend = completeDependencies(value, world.server);
      if (depend === null) return illegal;
      setAttribute(draft, { name, value: depend }, rank);
    } else if (name === "max_run_subjobs" && draft.attrs.get(name)?.rank === rank) return "qsub: multiple max_run_subjobs values found\n";
    else setAttribute(draft, keywordAttribute(keyword), rank);
  }
  return null;
}

function setAttribute(draft: Draft, attr: AttrValueText, rank: Rank): void {
  const key = attr.resource === undefined ? attr.name : `${attr.name}.${attr.resource}`;
  if ((draft.attrs.get(key)?.rank ?? RANK.server) >= rank) draft.attrs.set(key, { attr, rank });
}

function setFlag(draft: Draft, name: string, value: string, rank: Rank): void {
  if ((draft.flags.get(name)?.rank ?? RANK.server) >= rank) draft.flags.set(name, { value, rank });
}

/** Returns the message about options that exclude each other; null: there are none. */
export function draftConflicts(draft: Draft): string | null {
  const attribute = (name: string): string | undefined => draft.attrs.get(name)?.attr.value;
  const array = draft.attrs.has("array_indices_submitted");
  let text = "";
  if (draft.flags.has("X") && !draft.flags.has("I")) text += "qsub: X11 Forwarding possible only for interactive jobs\n";
  if (array && draft.flags.has("I")) text += "qsub: interactive and array job submission cannot be used together\n";
  if (array && attribute("Rerunable") === "False") text += "qsub:  cannot submit non-rerunable Array Job\n";
  if (!array && attribute("Mail_Points")?.includes("j")) text += "qsub: mail option 'j' can not be used without array job\n";
  return text === "" ? null : text;
}

/** Returns warnings about options that are accepted, but have another effect than usual in an interactive job. */
export function draftWarnings(draft: Draft): string {
  if (!draft.flags.has("I")) return "";
  let text = "";
  if (draft.flags.get("block")?.value === "true")
    text += 'qsub (Warning) : setting "block" attribute as "true" for an interactive job will not return job\'s exit status\n';
  if (draft.attrs.get("Rerunable")?.attr.value === "True") text += "qsub (Warning): Interactive jobs will be treated as not rerunnable\n";
  return text;
}
