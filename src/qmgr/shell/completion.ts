// Completes a request that is being typed: finds candidates for the word at the cursor, and one line of help about the word.
// The admin shell shows both. The grammar decides which kinds of words may follow (content-assist.ts). The words themselves
// come from the tables of attributes and from the names that the server knows. Pure.

import type { IToken, TokenType } from "chevrotain";
import type { AttributeDef } from "#model/attribute.ts";
import { BUILTIN_RESOURCES, RESOURCE_TYPES } from "#model/resource-table.ts";
import type { ManagedObject } from "#protocol/messages.ts";
import { attributeLookup, tableOf } from "../language/attribute-lookup.ts";
import { typesAfter } from "../language/grammar.ts";
import { helpLine } from "../language/help.ts";
import { VERBS, type Verb } from "../language/request.ts";
import {
  At,
  Attribute,
  Comma,
  isOf,
  ListComma,
  Name,
  Nothing,
  nameOf,
  ObjectType,
  Operator,
  objectOf,
  Text,
  tokenize,
  UnknownObject,
  UnknownVerb,
  verbOf,
} from "../language/tokens.ts";

/** The names of the server's objects, by type of object. The shell requests them. */
export type KnownNames = { readonly [type in ManagedObject]?: readonly string[] };
export type Completion = {
  /** the position at which the word at the cursor begins */
  readonly start: number;
  /** the words that are possible there, in the order of the tables */
  readonly candidates: readonly string[];
  /** one line of help about the word */
  readonly help: string;
};

const OBJECTS_OF: { readonly [verb: string]: readonly string[] } = {
  create: ["queue", "node", "resource", "sched", "hook", "backend"],
  delete: ["queue", "node", "resource", "sched", "hook", "backend"],
  active: ["server", "queue", "node", "sched"],
  import: ["hook", "pbshook"],
  export: ["hook", "pbshook"],
};
const ALL_OBJECTS = ["server", "queue", "node", "resource", "sched", "hook", "pbshook", "backend"];
const RESOURCE_ATTRIBUTES = ["type", "flag"];
const OPERATORS = ["=", "+=", "-="];
/** A longer line is not completed, because the whole line is parsed at each key. */
const LINE_LENGTH_MAX = 10_000;

/** Returns the completion of the word that ends at the cursor. */
export function complete(line: string, cursor: number, known: KnownNames): Completion {
  if (cursor > LINE_LENGTH_MAX) return { start: cursor, candidates: [], help: "" };
  const before = line.slice(0, cursor);
  const { tokens, start, attribute } = wordAtCursor(before);
  const place: Place = { attribute, verb: verbOf(tokens[0]), object: objectOf(tokens[1]), tokens, known };
  const offers = typesAfter(tokens).flatMap((type) => offersOf(type, place));
  const candidates = [...new Set(offers.flatMap((offer) => offer.candidates))].filter((each) => startsWith(each, before.slice(start)));
  return { start, candidates, help: offers[0]?.help ?? unknownWord(tokens) };
}

/**
 * tokens: those before the word. start: where the word begins; for a resource, this is after the dot of `attribute.resource`. attribute: the whole
 * `attribute.resource`; "": the word is something else.
 */
type WordAtCursor = { readonly tokens: readonly IToken[]; readonly start: number; readonly attribute: string };

/**
 * Finds the word at the cursor and the tokens before it. A value is one word, even if it has several parts. In `attribute.resource`, the resource is a word of
 * its own.
 */
function wordAtCursor(before: string): WordAtCursor {
  const tokens = tokenize(before, attributeLookup);
  const operator = tokens.findLastIndex((token) => isOf(token, Operator));
  const value = tokens.slice(operator + 1);
  if (operator >= 0 && isOpenValue(value, before))
    return { tokens: tokens.slice(0, operator + 1), start: value[0]?.startOffset ?? before.length, attribute: "" };
  const last = tokens.at(-1);
  const is_typed = last !== undefined && last.startOffset + last.image.length === before.length && !SIGNS.some((sign) => isOf(last, sign));
  if (!is_typed) return { tokens, start: before.length, attribute: "" };
  const dot = isOf(last, Attribute) ? last.image.indexOf(".") : -1;
  return { tokens: tokens.slice(0, -1), start: last.startOffset + dot + 1, attribute: isOf(last, Attribute) ? last.image : "" };
}
const SIGNS = [At, ListComma, Comma, Operator, Nothing];

/** Whether the value after an operator is still being typed at the cursor. */
function isOpenValue(value: readonly IToken[], before: string): boolean {
  const last = value.at(-1);
  if (last === undefined) return true;
  if (value.some((token) => isOf(token, Comma) || isOf(token, Attribute))) return false;
  return last.startOffset + last.image.length === before.length;
}

type Place = {
  readonly attribute: string;
  readonly verb: Verb | undefined;
  readonly object: ManagedObject | undefined;
  /** the tokens before the word that is being typed */
  readonly tokens: readonly IToken[];
  readonly known: KnownNames;
};
type Offer = Pick<Completion, "candidates" | "help">;

/** Returns the candidates for a token type that the grammar accepts next. */
function offersOf(type: TokenType, place: Place): readonly Offer[] {
  const { verb, object, attribute: typed, known } = place;
  if (verb === undefined || type === ObjectType) {
    if (verb === undefined) return [{ candidates: VERBS.filter((each) => each !== "?"), help: VERB_HELP }];
    return [{ candidates: OBJECTS_OF[verb] ?? ALL_OBJECTS, help: helpLine(verb) }];
  }
  if (object === undefined) return [];
  switch (type) {
    case Name: {
      if (isOf(place.tokens.at(-1), At)) return [];
      const names = verb === "create" ? [] : (known[object] ?? []);
      // If the object needs no name, an attribute may follow its type directly.
      const first = isOf(place.tokens.at(-1), ObjectType) && (object === "server" || (object === "sched" && verb !== "create"));
      const attributes = first ? attributeNames(object, verb) : [];
      return [{ candidates: [...names, ...attributes], help: object === "server" ? "attribute of the server" : `name of a ${object}` }];
    }
    case Attribute:
      return isOf(place.tokens.at(-1), ObjectType) ? [] : [attributeOffer(object, verb, typed, known)];
    case Operator:
      return isOf(place.tokens.at(-1), Attribute) ? [{ candidates: OPERATORS, help: helpOf(object, place.tokens.at(-1)) }] : [];
    case Text: {
      const attribute = place.tokens.at(-2);
      const name = nameOf(attribute?.image ?? "");
      return [{ candidates: values(object, name, tableOf(object)?.byName(name), known), help: helpOf(object, attribute) }];
    }
    default:
      return [];
  }
}
const VERB_HELP = "verb: create, delete, set, unset, list, print, active, help, quit";

/** Returns the candidates for an attribute, or, after the dot, for a resource of the attribute. */
function attributeOffer(object: ManagedObject, verb: Verb, typed: string, known: KnownNames): Offer {
  const def = tableOf(object)?.byName(nameOf(typed));
  const help = def === undefined ? `attribute of the ${object}` : describe(def);
  if (!typed.includes(".")) return { candidates: attributeNames(object, verb), help };
  const takesResource = def?.type === "resource_list" || def?.type === "entity_limit_res";
  const names = takesResource ? [...BUILTIN_RESOURCES.map((row) => row.name), ...(known.resource ?? [])] : [];
  return { candidates: names, help };
}

function helpOf(object: ManagedObject, attribute: IToken | undefined): string {
  const def = tableOf(object)?.byName(nameOf(attribute?.image ?? ""));
  return def === undefined ? "" : describe(def);
}

/** Returns which word is unknown; "": verb and object type are known. */
function unknownWord([verb, object]: readonly IToken[]): string {
  if (verb !== undefined && isOf(verb, UnknownVerb)) return `unknown verb ${verb.image}`;
  return object !== undefined && isOf(object, UnknownObject) ? `unknown object type ${object.image}` : "";
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

const startsWith = (candidate: string, typed: string): boolean => candidate.toLowerCase().startsWith(typed.toLowerCase());

/** Returns the longest text with which all candidates begin. */
export function commonPrefix(candidates: readonly string[]): string {
  let prefix = candidates[0] ?? "";
  for (const candidate of candidates) while (!candidate.startsWith(prefix)) prefix = prefix.slice(0, -1);
  return prefix;
}
