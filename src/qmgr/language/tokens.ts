// The tokens of a qmgr request, for chevrotain's lexer (docs/reference/qmgr.md 3). The meaning of a character depends on its
// position, so the lexer has modes:
//
//   most requests:          verb -> object -> gap -> subject -> attributes <-> value-start -> value, in quotes, after quotes
//   import and export:      verb -> moved-object -> moved-gap -> moved-subject -> words
//   help, history and quit: verb -> words
//
// The modes of values exist twice. In those for entity limits, blanks belong to a value, and a quote is special only at the
// start of a value.
//
// L1. In each mode every character belongs to some token. So the lexer refuses nothing, and the grammar reports all faults.

import { createToken, type IToken, Lexer, type TokenType, tokenMatcher } from "chevrotain";
import { BACKFILL_ATTRS } from "#model/sched-policies.ts";
import type { ManagedObject } from "#protocol/messages.ts";
import { mustGet, nth } from "#support/assert.ts";
import { OBJECT_WORDS, VERBS, type Verb } from "./request.ts";

/**
 * What the lexer must know about attributes: whether the third word of a request is an attribute, and whether the value of an attribute follows the grammar of
 * entity limits.
 */
export type AttributeLookup = {
  isAttribute(object: ManagedObject, name: string): boolean;
  isEntityLimit(object: ManagedObject, name: string): boolean;
};

type Match = RegExpExecArray | null;
type Pattern = RegExp | ((text: string, offset: number, matched: IToken[]) => Match);
type Options = { readonly in?: TokenType | readonly TokenType[]; readonly to?: string; readonly skipped?: true };

/**
 * Makes a token type. in: its categories in the grammar. to: the mode of the lexer after such a token. Patterns are sticky: chevrotain does not analyse sticky
 * ones, which saves time.
 */
function token(name: string, pattern: Pattern, { in: categories = [], to, skipped }: Options = {}): TokenType {
  return createToken({
    name,
    pattern: pattern as RegExp,
    categories: [categories].flat(),
    line_breaks: true,
    // The lexer only enters modes and never leaves one, because chevrotain does not let it leave its first mode.
    ...(to === undefined ? {} : { push_mode: to }),
    ...(skipped === true ? { group: Lexer.SKIPPED } : {}),
  });
}
const category = (name: string, parent: readonly TokenType[] = []): TokenType =>
  createToken({ name, pattern: Lexer.NA, categories: [...parent] });

// --- words before the attributes; a blank or an operator ends a word

const WORD = /(?:[^\s=+-]|[+-](?!=))+/y;
const wordAt = (text: string, offset: number): Match => {
  WORD.lastIndex = offset;
  return WORD.exec(text);
};
const BLANK = /\s+/y;

function findVerb(word: string): Verb | undefined {
  return VERBS.find((verb) => verb.startsWith(word));
}
function findObject(word: string): ManagedObject | undefined {
  return OBJECT_WORDS.find(([name]) => name.startsWith(word))?.[1];
}

/** An operator where a verb or an object is expected, with the whole line after it. In this case PBS sees no word at all. */
export const Nothing = token("Nothing", /[+-]?=[\s\S]*/y);
export const UnknownVerb = token("UnknownVerb", wordAt, { to: "words" });
export const UnknownObject = token("UnknownObject", wordAt, { to: "words" });
const Blank = token("Blank", BLANK, { skipped: true });

/** Makes the token type of a group of verbs. The same words may follow all verbs of a group. */
const verbToken = (name: string, verbs: readonly Verb[], to: string): TokenType =>
  token(
    name,
    (text, offset) => {
      const word = wordAt(text, offset);
      const verb = word === null ? undefined : findVerb(word[0]);
      return verb !== undefined && verbs.includes(verb) ? word : null;
    },
    { to },
  );
export const Create = verbToken("Create", ["create"], "object");
export const SetVerb = verbToken("Set", ["set"], "object");
export const Unset = verbToken("Unset", ["unset"], "object");
export const ShowVerb = verbToken("Show", ["list", "print"], "object");
export const BareVerb = verbToken("Bare", ["active", "delete"], "object");
export const MoveVerb = verbToken("Move", ["import", "export"], "moved-object");
export const WordVerb = verbToken("Words", ["help", "?", "history", "quit", "exit"], "words");
const VERB_TOKENS = [Create, SetVerb, Unset, ShowVerb, BareVerb, MoveVerb, WordVerb];

const objectAt = (text: string, offset: number): Match => {
  const word = wordAt(text, offset);
  return word !== null && findObject(word[0]) !== undefined ? word : null;
};
export const ObjectType = token("ObjectType", objectAt, { to: "gap" });
const MovedObject = token("MovedObject", objectAt, { in: ObjectType, to: "moved-gap" });

/** Returns the verb of a token, or undefined if the token is not a verb. */
export const verbOf = (word: IToken | undefined): Verb | undefined =>
  word !== undefined && VERB_TOKENS.includes(word.tokenType) ? findVerb(word.image) : undefined;
/** Returns the object type of a token, or undefined if the token is not an object type. */
export const objectOf = (word: IToken | undefined): ManagedObject | undefined =>
  word !== undefined && (word.tokenType === ObjectType || word.tokenType === MovedObject) ? findObject(word.image) : undefined;

// --- names of objects; instead of a name, an attribute may follow the object type directly

export const Name = token("Name", /(?:[^\s=,@+-]|[+-](?!=))+/y);
export const At = token("At", /@/y);
export const ListComma = token("ListComma", /,/y);
export const Word = token("Word", /\S+/y);
const OperatorWord = token("OperatorWord", /[+-]?=\S*/y, { in: Word, to: "words" });

/** What the lexer knows about attributes while it reads the present line. It is a module variable, because the patterns of chevrotain get only the text. */
let lookup_now: AttributeLookup = { isAttribute: () => false, isEntityLimit: () => false };

const DOTTED: ReadonlySet<string> = new Set(BACKFILL_ATTRS);
const ATTRIBUTE = /(?:[^\s,=+-]|[+-](?!=))+/y;
const attributeAt = (text: string, offset: number): Match => {
  ATTRIBUTE.lastIndex = offset;
  return ATTRIBUTE.exec(text);
};
/** Returns the attribute part of `attribute.resource`. The names of some attributes of schedulers contain a dot. */
export const nameOf = (attribute: string): string => {
  if (DOTTED.has(attribute.toLowerCase())) return attribute;
  const dot = attribute.indexOf(".");
  return dot < 0 ? attribute : attribute.slice(0, dot);
};
/** Types of objects whose name may not be left out: in `set hook NAME ...` the third word is always a name, never an attribute. */
const ALWAYS_NAMED: readonly ManagedObject[] = ["hook", "pbshook", "resource"];

function firstAttributeAt(text: string, offset: number, matched: IToken[]): Match {
  const object = objectOf(matched[1]);
  if (matched.length !== 2 || object === undefined || ALWAYS_NAMED.includes(object)) return null;
  const word = attributeAt(text, offset);
  return word !== null && lookup_now.isAttribute(object, nameOf(word[0])) ? word : null;
}
const isLimit = (word: Match, object: ManagedObject | undefined): boolean =>
  word !== null && object !== undefined && lookup_now.isEntityLimit(object, nameOf(word[0]));
function limitAttributeAt(text: string, offset: number, matched: IToken[]): Match {
  const word = attributeAt(text, offset);
  return isLimit(word, objectOf(matched[1])) ? word : null;
}
function firstLimitAttributeAt(text: string, offset: number, matched: IToken[]): Match {
  const word = firstAttributeAt(text, offset, matched);
  return isLimit(word, objectOf(matched[1])) ? word : null;
}

export const Attribute = token("Attribute", ATTRIBUTE);
const LimitAttribute = token("LimitAttribute", limitAttributeAt, { in: Attribute });
const FirstAttribute = token("FirstAttribute", firstAttributeAt, { in: Attribute, to: "attributes" });
const FirstLimitAttribute = token("FirstLimitAttribute", firstLimitAttributeAt, { in: [LimitAttribute, Attribute], to: "attributes" });
const MovedAttribute = token("MovedAttribute", firstAttributeAt, { in: Word, to: "words" });

// --- attribute terms

const OPERATOR = /[+-]?=/y;
const LIMITS: readonly TokenType[] = [LimitAttribute, FirstLimitAttribute];
function limitOperatorAt(text: string, offset: number, matched: IToken[]): Match {
  const last = matched.at(-1)?.tokenType;
  if (last === undefined || !LIMITS.includes(last)) return null;
  OPERATOR.lastIndex = offset;
  return OPERATOR.exec(text);
}
export const Operator = token("Operator", OPERATOR, { to: "value-start" });
export const LimitOperator = token("LimitOperator", limitOperatorAt, { in: Operator, to: "limit-start" });
export const Comma = token("Comma", /,/y);
const OPERATORS = [LimitOperator, Operator];

// --- values: the first quote character in a value decides which of ' and " is a quote in it

export const Text = category("Text");
export const OpenQuote = category("OpenQuote");
export const CloseQuote = category("CloseQuote");
/** BAD: characters that no value without quotes may contain. BAD_QUOTED: characters that text in quotes may not contain; any white space is allowed there. */
const BAD = "&\\x00-\\x08\\x0a-\\x1f\\x7f";
const BAD_QUOTED = "&\\x00-\\x08\\x0e-\\x1f\\x7f";
export const Bad = token("Bad", new RegExp(`[${BAD}]`, "y"));
const BadQuoted = token("BadQuoted", new RegExp(`[${BAD_QUOTED}]`, "y"), { in: Bad });
const ValueComma = token("ValueComma", /,/y, { in: Comma, to: "attributes" });
const ValueEnd = token("ValueEnd", BLANK, { skipped: true, to: "attributes" });

type Quote = { readonly name: string; readonly sign: string };
const QUOTES: readonly Quote[] = [
  { name: "double", sign: '"' },
  { name: "single", sign: "'" },
];
export const QuotedText = category("QuotedText");
const quotedText = new Map(
  QUOTES.map(({ name, sign }) => [name, token(`${name} text`, textWithout(`${sign}${BAD_QUOTED}`), { in: QuotedText })]),
);

function textWithout(characters: string): RegExp {
  return new RegExp(`[^${characters}]+`, "y");
}

/**
 * Makes the modes of the lexer for one kind of value. blanks: whether white space ends the value. anywhere: whether a quote may also begin inside the value.
 */
function valueModes(
  kind: string,
  { blanks, anywhere }: { readonly blanks: boolean; readonly anywhere: boolean },
): Record<string, TokenType[]> {
  const ends = blanks ? [ValueEnd, ValueComma] : [ValueComma];
  const stop = `,${BAD}${blanks ? "\\s" : ""}`;
  const open = ({ name, sign }: Quote): TokenType =>
    token(`${kind} opening ${name}`, new RegExp(sign, "y"), { in: OpenQuote, to: `${kind}-${name}` });
  const opened = QUOTES.map(open);
  const plain = token(`${kind} text`, textWithout(`${stop}${anywhere ? "\"'" : ""}`), { in: Text, to: kind });
  const modes: Record<string, TokenType[]> = {
    [`${kind}-start`]: [Blank, ValueComma, Bad, ...opened, plain],
    [kind]: [Bad, ...ends, ...(anywhere ? opened : []), plain],
  };
  QUOTES.forEach(({ name, sign }, at) => {
    const after = `${kind}-after-${name}`;
    modes[`${kind}-${name}`] = [
      BadQuoted,
      mustGet(quotedText, name),
      token(`${kind} closing ${name}`, new RegExp(sign, "y"), { in: CloseQuote, to: after }),
    ];
    modes[after] = [Bad, ...ends, nth(opened, at), token(`${kind} text after ${name}`, textWithout(`${stop}${sign}`), { in: Text })];
  });
  return modes;
}

/** The token types of each mode. */
export const MODES: Record<string, TokenType[]> = {
  verb: [Blank, Nothing, ...VERB_TOKENS, UnknownVerb],
  object: [Blank, Nothing, ObjectType, UnknownObject],
  gap: [token("Gap", BLANK, { skipped: true, to: "subject" }), ...OPERATORS],
  subject: [
    token("NamesEnd", BLANK, { skipped: true, to: "attributes" }),
    FirstLimitAttribute,
    FirstAttribute,
    ...OPERATORS,
    At,
    ListComma,
    Name,
  ],
  attributes: [Blank, Comma, ...OPERATORS, LimitAttribute, Attribute],
  ...valueModes("value", { blanks: true, anywhere: true }),
  ...valueModes("limit", { blanks: false, anywhere: false }),
  "moved-object": [Blank, Nothing, MovedObject, UnknownObject],
  "moved-gap": [token("MovedGap", BLANK, { skipped: true, to: "moved-subject" }), OperatorWord],
  "moved-subject": [token("MovedNamesEnd", BLANK, { skipped: true, to: "words" }), MovedAttribute, OperatorWord, At, ListComma, Name],
  words: [Blank, Word],
};

/** All token types, which the parser needs. */
export const TOKENS: TokenType[] = [...new Set([Text, OpenQuote, CloseQuote, QuotedText, ...Object.values(MODES).flat()])];

/** Whether a token is of a type or category. */
export const isOf = (token: IToken | undefined, type: TokenType): boolean => token !== undefined && tokenMatcher(token, type);

let lexer: Lexer | undefined;

/** Returns the lexer, which is made when it is first needed. */
export function prepareLexer(): Lexer {
  // Only the tests check the token types, not each start of qmgr, because they do not change.
  lexer ??= new Lexer({ modes: MODES, defaultMode: "verb" }, { positionTracking: "onlyOffset", skipValidations: true, safeMode: true });
  return lexer;
}

/** Returns the tokens of a line. */
export function tokenize(line: string, lookup: AttributeLookup): IToken[] {
  lookup_now = lookup;
  return prepareLexer().tokenize(line).tokens;
}
