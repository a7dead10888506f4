// What may come next in a request that is being typed: candidates for the word under the cursor, and one line of help about it. The admin shell shows both.
// Everything comes from the attribute tables and the names the server knows. Pure.

import type { AttributeDef } from "#model/attribute.ts";
import { BUILTIN_RESOURCES, RESOURCE_TYPES } from "#model/resource-table.ts";
import type { ManagedObject } from "#protocol/messages.ts";
import { helpLine } from "./help.ts";
import { tableOf } from "./print.ts";
import { VERBS } from "./request.ts";
import { findObject, findVerb } from "./scanner.ts";

/** Names the server knows, by object type; fetched by the shell. */
export type KnownNames = { readonly [type in ManagedObject]?: readonly string[] };
export type Completion = {
  /** where the word under the cursor begins */
  readonly start: number;
  /** whole words that may stand there, sorted as the tables have them */
  readonly candidates: readonly string[];
  /** what may be typed here, in one line */
  readonly help: string;
};

const OBJECTS_OF: { readonly [verb: string]: readonly string[] } = {
  create: ["queue", "node", "resource", "sched", "hook"],
  delete: ["queue", "node", "resource", "sched", "hook"],
  active: ["server", "queue", "node", "sched"],
  import: ["hook", "pbshook"],
  export: ["hook", "pbshook"],
};
const ALL_OBJECTS = ["server", "queue", "node", "resource", "sched", "hook", "pbshook"];
const RESOURCE_ATTRIBUTES = ["type", "flag"];

/** Candidates for the word that ends at the cursor. */
export function complete(line: string, cursor: number, known: KnownNames): Completion {
  const before = line.slice(0, cursor);
  const words = before.trimStart().split(/\s+/);
  const verb_word = words[0] ?? "";
  if (words.length <= 1)
    return offer(
      before,
      /\S*$/,
      VERBS.filter((verb) => verb !== "?"),
      "verb: create, delete, set, unset, list, print, active, help, quit",
    );
  const verb = findVerb(verb_word);
  if (verb === undefined) return { start: cursor, candidates: [], help: `unknown verb ${verb_word}` };
  if (words.length === 2) return offer(before, /\S*$/, OBJECTS_OF[verb] ?? ALL_OBJECTS, helpLine(verb));
  const object = findObject(words[1] ?? "");
  if (object === undefined) return { start: cursor, candidates: [], help: `unknown object type ${words[1]}` };
  const rest = before.slice(headLength(before));
  const named = /^\s*\S*$/.test(rest) && !/[=,.]/.test(rest.trim().split(",").at(-1) ?? "");
  if (named) {
    const names = known[object] ?? [];
    const attributes = object === "server" || (object === "sched" && verb !== "create") ? attributeNames(object, verb) : [];
    return offer(
      before,
      /[^\s,]*$/,
      [...(verb === "create" ? [] : names), ...attributes],
      object === "server" ? "attribute of the server" : `name of a ${object}`,
    );
  }
  return completeTerm(before, object, verb, known);
}

/** Inside the attribute list: an attribute, its resource, or its value. */
function completeTerm(before: string, object: ManagedObject, verb: string, known: KnownNames): Completion {
  const value = /([\w]+)(?:\.([\w]+))?\s*(?:\+=|-=|=)\s*([^\s,]*)$/.exec(before);
  if (value !== null) {
    const [, name = "", , typed = ""] = value;
    const def = tableOf(object)?.byName(name);
    return {
      start: before.length - typed.length,
      candidates: matching(values(object, name, def, known), typed),
      help: def === undefined ? "" : describe(def),
    };
  }
  const resource = /([\w]+)\.([\w]*)$/.exec(before);
  if (resource !== null) {
    const [, name = "", typed = ""] = resource;
    const def = tableOf(object)?.byName(name);
    const takesResource = def?.type === "resource_list" || def?.type === "entity_limit_res";
    const names = takesResource ? [...BUILTIN_RESOURCES.map((row) => row.name), ...(known.resource ?? [])] : [];
    return {
      start: before.length - typed.length,
      candidates: matching([...new Set(names)], typed),
      help: def === undefined ? "" : describe(def),
    };
  }
  const typed = /[^\s,]*$/.exec(before)?.[0] ?? "";
  const candidates = matching(attributeNames(object, verb), typed);
  const def = tableOf(object)?.byName(typed);
  return { start: before.length - typed.length, candidates, help: def === undefined ? `attribute of the ${object}` : describe(def) };
}

function values(object: ManagedObject, name: string, def: AttributeDef | undefined, known: KnownNames): readonly string[] {
  if (object === "resource") return name === "type" ? RESOURCE_TYPES : [];
  if (def?.type === "boolean") return ["True", "False"];
  if (def?.keywords !== undefined) return def.keywords;
  if (def?.type === "entity_limit" || def?.type === "entity_limit_res")
    return ["[u:PBS_GENERIC=", "[o:PBS_ALL=", "[g:PBS_GENERIC=", "[p:PBS_GENERIC=", "[u:", "[g:", "[p:"];
  if (name === "queue" || name === "default_queue" || name === "route_destinations") return known.queue ?? [];
  return [];
}

function attributeNames(object: ManagedObject, verb: string): readonly string[] {
  if (object === "resource") return RESOURCE_ATTRIBUTES;
  const rows = tableOf(object)?.rows ?? [];
  const settable = verb === "set" || verb === "unset" || verb === "create";
  return rows.filter((def) => def.read !== "none" && (!settable || def.set !== "pbs")).map((def) => def.name);
}

function describe(def: AttributeDef): string {
  const fallback = def.default ?? def.assumed;
  return `${def.name} (${def.type}${fallback === undefined ? "" : `, ${JSON.stringify(fallback)}`}): ${def.help}`;
}

function offer(before: string, word: RegExp, all: readonly string[], help: string): Completion {
  const typed = word.exec(before)?.[0] ?? "";
  return { start: before.length - typed.length, candidates: matching(all, typed), help };
}

function matching(all: readonly string[], typed: string): readonly string[] {
  const folded = typed.toLowerCase();
  return all.filter((candidate) => candidate.toLowerCase().startsWith(folded));
}

/** Length of `verb object` with the blank after it. */
function headLength(text: string): number {
  return /^\s*\S+\s+\S+/.exec(text)?.[0].length ?? text.length;
}

/** The longest text that all candidates begin with. */
export function commonPrefix(candidates: readonly string[]): string {
  let prefix = candidates[0] ?? "";
  for (const candidate of candidates) while (!candidate.startsWith(prefix)) prefix = prefix.slice(0, -1);
  return prefix;
}
