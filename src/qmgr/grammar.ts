// The grammar of one qmgr request in chevrotain (docs/reference/qmgr.md 3): which tokens may follow which. scanner.ts makes the tokens, name-list.ts checks names.
// Pure: a function of the line and of what attributes exist.

import { createToken, createTokenInstance, EmbeddedActionsParser, EOF, type IToken, type TokenType } from "chevrotain";
import { parseNames } from "./name-list.ts";
import type { AttributeTerm, ObjectName, ParseResult, QmgrRequest } from "./request.ts";
import { type AttributeLookup, type ScannedToken, scan, type TokenKind } from "./scanner.ts";

// A value may be empty ("" unsets), and tokens come from our scanner: chevrotain's own lexer is not used, the patterns never match text.
const NEVER = /(?!)/;
const TYPE: Record<TokenKind, TokenType> = {
  Verb: createToken({ name: "Verb", pattern: NEVER }),
  ObjectType: createToken({ name: "ObjectType", pattern: NEVER }),
  Names: createToken({ name: "Names", pattern: NEVER }),
  Attribute: createToken({ name: "Attribute", pattern: NEVER }),
  Operator: createToken({ name: "Operator", pattern: NEVER }),
  Value: createToken({ name: "Value", pattern: NEVER }),
  Comma: createToken({ name: "Comma", pattern: NEVER }),
  Word: createToken({ name: "Word", pattern: NEVER }),
  Bad: createToken({ name: "Bad", pattern: NEVER }),
};

class RequestParser extends EmbeddedActionsParser {
  constructor() {
    super(Object.values(TYPE), { recoveryEnabled: false, maxLookahead: 1 });
    this.performSelfAnalysis();
  }

  /** `attr[.res] op value [, ...]`: create and set */
  readonly assignments = this.RULE("assignments", (): AttributeTerm[] => {
    const terms: AttributeTerm[] = [];
    this.AT_LEAST_ONE_SEP({
      SEP: TYPE.Comma,
      DEF: () => {
        const name = this.CONSUME(TYPE.Attribute);
        const op = this.CONSUME(TYPE.Operator);
        const value = this.CONSUME(TYPE.Value);
        this.ACTION(() =>
          terms.push({ ...splitAttribute(name.image), op: op.image as "=", value: (value.payload as ScannedToken).value ?? value.image }),
        );
      },
    });
    return terms;
  });

  /** `attr[.res] [, ...]`: unset, list and print */
  readonly attributes = this.RULE("attributes", (): AttributeTerm[] => {
    const terms: AttributeTerm[] = [];
    this.AT_LEAST_ONE_SEP({
      SEP: TYPE.Comma,
      DEF: () => {
        const name = this.CONSUME(TYPE.Attribute);
        this.ACTION(() => terms.push(splitAttribute(name.image)));
      },
    });
    return terms;
  });
}

let parser: RequestParser | undefined;

/** Parse one request line. A blank line is the request `nothing`. */
export function parseRequest(line: string, lookup: AttributeLookup): ParseResult {
  const { tokens, verb, object, end } = scan(line, lookup);
  const [first, second, third] = tokens;
  if (first === undefined) return ok({ verb: "nothing" });
  if (verb === undefined) return { ok: false, fault: { kind: "operation", exit_code: 1, word: first.text } };
  if (verb === "quit" || verb === "exit") return ok({ verb: "quit" });
  if (verb === "help" || verb === "?" || verb === "history") {
    return ok({
      verb: verb === "?" ? "help" : verb,
      argument: tokens
        .slice(1)
        .map((token) => token.text)
        .join(" "),
    });
  }
  if (second === undefined) return { ok: false, fault: { kind: "no-object", exit_code: 2 } };
  if (object === undefined) return { ok: false, fault: { kind: "object", exit_code: 2, word: second.text } };

  let names: readonly ObjectName[] = [];
  let rest = tokens.slice(2);
  if (third?.kind === "Names") {
    const parsed = parseNames(third.text, object === "node");
    if (!parsed.ok) return syntax(3, third.start + parsed.offset);
    names = parsed.names;
    rest = tokens.slice(3);
  }
  switch (verb) {
    case "import":
    case "export":
      if (object !== "hook" && object !== "pbshook") return syntax(4, end + 1);
      return ok({ verb, object, names, words: rest.map((token) => token.text) });
    case "active":
      return rest.length === 0
        ? ok({ verb, object, names, attrs: [] })
        : syntax(4, third === undefined ? end : third.start + third.text.length);
    case "delete": {
      const stray = rest[0];
      return stray === undefined ? ok({ verb, object, names, attrs: [] }) : syntax(4, stray.start, stray.too_long);
    }
    case "create":
    case "list":
    case "print":
      if (rest.length === 0) return ok({ verb, object, names, attrs: [] });
      break;
    case "set":
    case "unset":
      break;
    default: {
      const unreachable: never = verb;
      return unreachable;
    }
  }
  const parsed = parseTerms(verb === "create" || verb === "set" ? "assignments" : "attributes", rest, end);
  return parsed.ok ? ok({ verb, object, names, attrs: parsed.terms }) : parsed.result;
}

function parseTerms(
  rule: "assignments" | "attributes",
  tokens: readonly ScannedToken[],
  end: number,
): { readonly ok: true; readonly terms: readonly AttributeTerm[] } | { readonly ok: false; readonly result: ParseResult } {
  parser ??= new RequestParser();
  parser.input = tokens.map(toChevrotain);
  const terms = parser[rule]();
  const error = parser.errors[0];
  if (error === undefined) return { ok: true, terms };
  const token = error.token.tokenType === EOF ? undefined : (error.token.payload as ScannedToken);
  return { ok: false, result: syntax(4, token?.column ?? end, token?.too_long) };
}

function toChevrotain(token: ScannedToken): IToken {
  const last = token.start + token.text.length - 1;
  const made = createTokenInstance(TYPE[token.kind], token.text, token.start, last, 1, 1, token.start + 1, last + 1);
  made.payload = token;
  return made;
}

function splitAttribute(text: string): { name: string; resource?: string } {
  const dot = text.indexOf(".");
  return dot < 0 ? { name: text } : { name: text.slice(0, dot), resource: text.slice(dot + 1) };
}

function ok(request: QmgrRequest): ParseResult {
  return { ok: true, request };
}
function syntax(exit_code: 3 | 4, column: number, word_too_long = false): ParseResult {
  return { ok: false, fault: { kind: "syntax", exit_code, column, word_too_long } };
}
