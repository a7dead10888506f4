// Parses lists inside option values: name=value lists, lists of names with hosts, resource lists, dependencies, lists of files to stage
// (docs/reference/commands.md 1). Pure.

import { splitOutsideBrackets } from "#model/split-ids.ts";
import { parseStageItem } from "#model/values/stage-item.ts";
import { nth } from "#support/assert.ts";
import { parseJobId } from "./job-ids.ts";

/** Splits at separators that are neither quoted nor escaped. Quotes and backslashes stay. Returns null if a quote is not closed. */
export function splitUnquoted(text: string, separator: string): string[] | null {
  const parts: string[] = [];
  let [start, quote] = [0, ""];
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === "\\") at++;
    else if (quote !== "") {
      if (char === quote) quote = "";
    } else if (char === '"' || char === "'") quote = char;
    else if (char === separator) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  if (quote !== "") return null;
  parts.push(text.slice(start));
  return parts;
}

const unquote = (text: string): string => (/^(["']).*\1$/s.test(text) && text.length >= 2 ? text.slice(1, -1) : text);

export type NamedValue = { readonly name: string; readonly value: string };

/**
 * Parses `name=value[,name=value...]` of -W. Blanks around names, `=` and commas are ignored. A part that does not begin with `name=` belongs to the value
 * before it, so that depend=a:1,b:2 and group_list=x,y need no quotes. A quote has its meaning only at the beginning of a value: comment=can't is one word.
 * Returns null if the text is malformed.
 */
export function parseNamedValues(text: string): NamedValue[] | null {
  const entries: NamedValue[] = [];
  for (let rest = text.trim(); rest !== "" || entries.length === 0; ) {
    const name = /^([A-Za-z_][\w.-]*)\s*=\s*/.exec(rest);
    if (name === null) return null;
    rest = rest.slice(name[0].length);
    const quote = /^["']/.exec(rest)?.[0];
    if (quote !== undefined && !rest.includes(quote, 1)) return null;
    const value = QUOTED_VALUE.exec(rest) ?? (UNTIL_NEXT_NAME.exec(rest) as RegExpExecArray);
    if (value[0].length === rest.length && rest.endsWith(",")) return null;
    entries.push({ name: nth(name, 1), value: nth(value, 2) });
    rest = rest.slice(value[0].length).trimStart();
  }
  return entries;
}

const QUOTED_VALUE = /^(["'])(.*?)\1\s*(?:,|$)/s;
const UNTIL_NEXT_NAME = /^()((?:\\.|[^\\]|\\$)*?)\s*(?:,(?=\s*[A-Za-z_][\w.-]*\s*=)|$)/s;

export type ResourceFault = { readonly at: number };

/**
 * Parses `name[=value][,...]` of -l. Returns a fault with its position if the text is malformed. Quotes inside select and place stay, because the server parses
 * these. preempt_targets may have several targets (`queue=a,queue=b`, `queue=a,b`): all of them belong to its value.
 */
export function parseResources(text: string): NamedValue[] | ResourceFault {
  const parts = splitUnquoted(text, ",");
  if (parts === null) return { at: Math.max(text.lastIndexOf('"'), text.lastIndexOf("'")) };
  const resources: NamedValue[] = [];
  let at = 0;
  for (const part of parts) {
    const before = resources.at(-1);
    if (before?.name === TARGETS && before.value !== "" && IS_TARGET.test(part)) {
      resources[resources.length - 1] = { name: TARGETS, value: `${before.value},${unquote(part.trim())}` };
      at += part.length + 1;
      continue;
    }
    const match = /^(\s*)([A-Za-z_][\w-]*)\s*(?:=(.*))?$/s.exec(part);
    if (match === null) return { at: at + (/^\s*/.exec(part)?.[0].length ?? 0) };
    const value = (match[3] ?? "").trim();
    resources.push({ name: nth(match, 2), value: unquote(value) });
    at += part.length + 1;
  }
  return resources;
}

const TARGETS = "preempt_targets";
/** Matches a part of the value of preempt_targets: `queue=Q`, `Resource_List.R=V`, or a further value for the target before it. */
const IS_TARGET = /^\s*(?:(?:queue|Resource_List\.[\w-]+)\s*=|[^=\s]+\s*$)/i;

/**
 * Whether a text has the form `name[@host][,name[@host]...]`. onePerHost: only one entry for each host and only one without a host are allowed. absolute: names
 * must be absolute paths.
 */
export function isAtList(text: string, options: { readonly onePerHost?: boolean; readonly absolute?: boolean } = {}): boolean {
  const hosts = new Set<string>();
  for (const item of text.split(",")) {
    const [name, host, ...more] = item.trim().split("@");
    if (!name || host === "" || more.length > 0 || /\s/.test(item.trim())) return false;
    if (options.absolute && !name.startsWith("/")) return false;
    if (options.onePerHost && hosts.has(host ?? "")) return false;
    hosts.add(host ?? "");
  }
  return true;
}

/** Whether a text has the form `path@host:path[,...]` of stagein and stageout. */
export function isStageList(text: string): boolean {
  return (splitUnquoted(text, ",") ?? [""]).every((part) => parseStageItem(part) !== null);
}

const JOB_DEPENDENCIES = new Set([
  "after",
  "afterok",
  "afternotok",
  "afterany",
  "before",
  "beforeok",
  "beforenotok",
  "beforeany",
  "runone",
]);

/** Completes the job ids of a dependency list (`afterok:1` -> `afterok:1.svr@svr`). Returns null if the list is malformed. */
export function completeDependencies(text: string, server: string): string | null {
  const dependencies: string[] = [];
  for (const item of text.split(",")) {
    const [type = "", ...args] = splitOutsideBrackets(item.trim());
    if (args.length === 0 || args.some((arg) => arg === "")) return null;
    if (type === "on") {
      dependencies.push(item.trim());
      continue;
    }
    if (!JOB_DEPENDENCIES.has(type)) return null;
    const ids: string[] = [];
    for (const arg of args) {
      const parsed = parseJobId(arg);
      if (parsed === null) return null;
      ids.push(`${parsed.seq}.${parsed.server ?? server}@${parsed.at ?? server}`);
    }
    dependencies.push(`${type}:${ids.join(":")}`);
  }
  return dependencies.join(",");
}
