// The chevrotain grammar of a qmgr request (docs/reference/qmgr.md 3): verbs, lists of objects, attribute terms, operators,
// values and quotes. tokens.ts splits the line into tokens. Pure: the result depends only on the line and on the attributes
// that exist.
//
// G1. Of several faults, the leftmost one is reported. The caret is where PBS puts it (faultOf). If an operator is wrong, it
//     is after the operator. If anything inside a value is wrong, it is at the start of the value. If a name in a list is
//     empty, it is at the sign before that name.

import {
  type BaseParser,
  EmbeddedActionsParser,
  EOF,
  type IRecognitionException,
  type IToken,
  LLkLookaheadStrategy,
  type TokenType,
} from "chevrotain";
import { parseLimitSyntax } from "#model/values/entity-limit.ts";
import type { ManagedObject } from "#protocol/messages.ts";
import { nth } from "#support/assert.ts";
import { nextTokenTypes } from "./content-assist.ts";
import type { AttributeTerm, ObjectName, ParseFault, ParseResult, QmgrRequest } from "./request.ts";
import {
  At,
  Attribute,
  type AttributeLookup,
  Bad,
  BareVerb,
  CloseQuote,
  Comma,
  Create,
  isOf,
  LimitOperator,
  ListComma,
  MoveVerb,
  Name,
  Nothing,
  nameOf,
  ObjectType,
  OpenQuote,
  Operator,
  objectOf,
  prepareLexer,
  QuotedText,
  SetVerb,
  ShowVerb,
  Text,
  TOKENS,
  tokenize,
  Unset,
  verbOf,
  Word,
  WordVerb,
} from "./tokens.ts";

/** The longest word (attribute or value) that is accepted. PBS has such a limit too, and then prints `max word length exceeded`. */
export const WORD_LENGTH_MAX = 10_240;
/** The longest request that is parsed. */
export const REQUEST_LENGTH_MAX = 1_048_576;

type SyntaxFault = Extract<ParseFault, { kind: "syntax" }>;
type Subject = { readonly object: ManagedObject; readonly names: readonly ObjectName[] };
type Terms = readonly AttributeTerm[];

type Lookahead = InstanceType<typeof LLkLookaheadStrategy>;
type Choice = ReturnType<Lookahead["buildLookaheadForAlternation"]>;
type Decision = ReturnType<Lookahead["buildLookaheadForOptional"]>;

/** Computes the lookahead of a rule only when the rule is first used: a call of qmgr often has one request, which uses few rules. */
class LazyLookahead extends LLkLookaheadStrategy {
  constructor() {
    super({ maxLookahead: 1 });
  }
  override buildLookaheadForAlternation(options: Parameters<Lookahead["buildLookaheadForAlternation"]>[0]): Choice {
    let choose: Choice | undefined;
    const build = (): Choice => super.buildLookaheadForAlternation(options);
    return function (this: BaseParser, alternatives) {
      choose ??= build();
      return choose.call(this, alternatives);
    };
  }
  override buildLookaheadForOptional(options: Parameters<Lookahead["buildLookaheadForOptional"]>[0]): Decision {
    let decide: Decision | undefined;
    const build = (): Decision => super.buildLookaheadForOptional(options);
    return function (this: BaseParser) {
      decide ??= build();
      return decide.call(this);
    };
  }
}

export class RequestParser extends EmbeddedActionsParser {
  /** the leftmost fault in the text of a word, such as a value that is too long. Words of the wrong kind are faults that chevrotain finds */
  fault: SyntaxFault | undefined;
  /** the first name that begins with a character that is not allowed */
  bad_name: IToken | undefined;

  /** check: whether chevrotain checks the grammar. Only the tests do that, not each start of qmgr, because the grammar does not change. */
  constructor({ check = false } = {}) {
    super(TOKENS, {
      recoveryEnabled: false,
      maxLookahead: 1,
      skipValidations: !check,
      ...(check ? {} : { lookaheadStrategy: new LazyLookahead() }),
    });
    this.performSelfAnalysis();
  }

  readonly request = this.RULE(
    "request",
    (): QmgrRequest =>
      this.OR([
        {
          ALT: () =>
            objectRequest(
              this.CONSUME(Create),
              this.SUBRULE(this.subject),
              this.OPTION(() => this.SUBRULE(this.assignments)),
            ),
        },
        { ALT: () => objectRequest(this.CONSUME(SetVerb), this.SUBRULE1(this.subject), this.SUBRULE1(this.assignments)) },
        { ALT: () => objectRequest(this.CONSUME(Unset), this.SUBRULE2(this.subject), this.SUBRULE(this.attributes)) },
        {
          ALT: () =>
            objectRequest(
              this.CONSUME(ShowVerb),
              this.SUBRULE3(this.subject),
              this.OPTION1(() => this.SUBRULE1(this.attributes)),
            ),
        },
        { ALT: () => objectRequest(this.CONSUME(BareVerb), this.SUBRULE4(this.subject)) },
        { ALT: () => contentsRequest(this.CONSUME(MoveVerb), this.SUBRULE5(this.subject), this.SUBRULE(this.words)) },
        {
          ALT: () => {
            const verb = this.CONSUME(WordVerb);
            const words = this.SUBRULE1(this.words);
            return this.ACTION(() => wordRequest(verb, words));
          },
        },
      ]),
  );

  /** rule for the type of object and the names of objects */
  readonly subject = this.RULE("subject", (): Subject => {
    const object = objectOf(this.CONSUME(ObjectType)) ?? "server";
    const names = this.OPTION(() => this.SUBRULE(this.names, { ARGS: [object] }));
    return { object, names: names ?? [] };
  });

  /** rule for `name[@server][,...]`; `@server` alone means all objects of that server */
  readonly names = this.RULE("names", (object: ManagedObject): readonly ObjectName[] => {
    const names: ObjectName[] = [];
    this.AT_LEAST_ONE_SEP({
      SEP: ListComma,
      DEF: () =>
        this.OR([
          {
            ALT: () => {
              const name = this.CONSUME(Name);
              this.ACTION(() => this.checkName(name, object));
              const server = this.OPTION(() => this.SUBRULE(this.server));
              this.ACTION(() => names.push({ name: name.image, server: server ?? "" }));
            },
          },
          {
            ALT: () => {
              const server = this.SUBRULE1(this.server);
              this.ACTION(() => names.push({ name: "", server }));
            },
          },
        ]),
    });
    return names;
  });

  readonly server = this.RULE("server", (): string => {
    this.CONSUME(At);
    return this.CONSUME(Name).image;
  });

  /** rule for `attr[.res] op value [, ...]` */
  readonly assignments = this.RULE("assignments", (): Terms => {
    const terms: AttributeTerm[] = [];
    this.AT_LEAST_ONE_SEP({
      SEP: Comma,
      DEF: () => {
        const name = this.CONSUME(Attribute);
        const operator = this.CONSUME(Operator);
        const value = this.SUBRULE(this.value, { ARGS: [operator] });
        this.ACTION(() => terms.push({ ...this.attribute(name), op: operator.image as "=", value }));
      },
    });
    return terms;
  });

  /** rule for `attr[.res] [, ...]` */
  readonly attributes = this.RULE("attributes", (): Terms => {
    const terms: AttributeTerm[] = [];
    this.AT_LEAST_ONE_SEP({
      SEP: Comma,
      DEF: () => {
        const name = this.CONSUME(Attribute);
        this.ACTION(() => terms.push(this.attribute(name)));
      },
    });
    return terms;
  });

  /**
   * Rule for a value: plain and quoted parts that follow each other without a blank. A value may be empty before a comma, but not at the end of the request.
   */
  readonly value = this.RULE("value", (operator: IToken): string => {
    let value = "";
    let first: IToken | undefined;
    let last: IToken | undefined;
    this.OR([
      {
        ALT: () =>
          this.AT_LEAST_ONE(() => {
            this.OR1([
              {
                ALT: () => {
                  last = this.CONSUME(Text);
                  value += last.image;
                },
              },
              {
                ALT: () => {
                  const quote = this.CONSUME(OpenQuote);
                  this.MANY(() => {
                    value += this.CONSUME(QuotedText).image;
                  });
                  last = this.CONSUME(CloseQuote);
                  first ??= quote;
                },
              },
            ]);
            first ??= last;
          }),
      },
      { GATE: () => isOf(this.LA(1), Comma), ALT: () => undefined },
    ]);
    return this.ACTION(() => this.checkValue(value, first, last, isOf(operator, LimitOperator)));
  });

  readonly words = this.RULE("words", (): readonly string[] => {
    const words: string[] = [];
    this.MANY(() => {
      const word = this.CONSUME(Word);
      this.ACTION(() => words.push(word.image));
    });
    return words;
  });

  /** Checks the first character of a name: a letter, and for nodes also a digit. */
  private checkName(name: IToken, object: ManagedObject): void {
    if (!(object === "node" ? /^[A-Za-z0-9]/ : /^[A-Za-z]/).test(name.image)) this.bad_name ??= name;
  }

  private attribute(token: IToken): { name: string; resource?: string } {
    if (isTooLong(token)) this.fault ??= syntax(4, token.startOffset, true);
    const { image } = token;
    const name = nameOf(image);
    return name === image ? { name } : { name, resource: image.slice(name.length + 1) };
  }

  /**
   * Checks the value of an attribute; its quotes are already removed. In entity limits, blanks around the limits are ignored, and the text must follow the
   * grammar of limits.
   */
  private checkValue(value: string, first: IToken | undefined, last: IToken | undefined, is_limit: boolean): string {
    if (first === undefined || last === undefined) return value;
    const start = first.startOffset;
    const limits = is_limit && value.trim() !== "" ? parseLimitSyntax(value.trimEnd()) : null;
    if (limits?.ok === false) this.fault ??= syntax(4, start + (isOf(first, OpenQuote) ? 1 : 0) + Math.min(limits.column, value.length));
    else if (endOf(last) - start > WORD_LENGTH_MAX) this.fault ??= syntax(4, start, true);
    return is_limit ? value.trim() : value;
  }
}

function objectRequest(verb: IToken, { object, names }: Subject, attrs: Terms = []): QmgrRequest {
  return { verb: verbOf(verb) as "set", object, names, attrs };
}
function contentsRequest(verb: IToken, { object, names }: Subject, words: readonly string[]): QmgrRequest {
  return { verb: verbOf(verb) as "import", object, names, words };
}
function wordRequest(token: IToken, words: readonly string[]): QmgrRequest {
  const verb = verbOf(token);
  return verb === "quit" || verb === "exit" ? { verb: "quit" } : { verb: verb === "history" ? verb : "help", argument: words.join(" ") };
}

let parser: RequestParser | undefined;
/** Returns the parser, which is made when it is first needed. */
function requestParser(): RequestParser {
  parser ??= new RequestParser();
  return parser;
}

/** Makes lexer and parser before the first request needs them, for example while the client waits for a server. This takes some milliseconds. */
export function prepareParser(): void {
  prepareLexer();
  requestParser();
}

/** Returns the token types that may follow the beginning of a request. */
export function typesAfter(tokens: readonly IToken[]): readonly TokenType[] {
  const rule = requestParser().getGAstProductions()["request"];
  return rule === undefined ? [] : nextTokenTypes(rule, tokens);
}

/** Parses one request line. A blank line is the request `nothing`. */
export function parseRequest(line: string, lookup: AttributeLookup): ParseResult {
  if (line.length > REQUEST_LENGTH_MAX) return { ok: false, fault: syntax(4, REQUEST_LENGTH_MAX, true) };
  const tokens = tokenize(line, lookup);
  if (tokens[0] === undefined || isOf(tokens[0], Nothing)) return { ok: true, request: { verb: "nothing" } };
  const read = requestParser();
  read.fault = undefined;
  read.bad_name = undefined;
  read.input = tokens;
  const request = read.request();
  const [error] = read.errors;
  const fault = leftmost(line, tokens, read, error) ?? misplaced(line, request);
  return fault === undefined ? { ok: true, request } : { ok: false, fault };
}

function leftmost(
  line: string,
  tokens: readonly IToken[],
  { fault, bad_name }: RequestParser,
  error?: IRecognitionException,
): ParseFault | undefined {
  if (bad_name !== undefined && !(error !== undefined && isSecondServer(tokens, bad_name, error.token)))
    return syntax(3, bad_name.startOffset);
  if (fault !== undefined) return fault;
  return error === undefined ? undefined : faultOf(line, tokens, error);
}

/** Whether the error is a second `@` after the name in the same element of the list. PBS checks for that before other faults. */
function isSecondServer(tokens: readonly IToken[], name: IToken, error: IToken): boolean {
  if (!isOf(error, At)) return false;
  return !tokens.slice(tokens.indexOf(name), tokens.indexOf(error)).some((token) => isOf(token, ListComma));
}

/** Returns the fault of an import or export whose object is not a hook: only hooks have contents. */
function misplaced(line: string, request: QmgrRequest): ParseFault | undefined {
  if (request.verb !== "import" && request.verb !== "export") return undefined;
  return request.object === "hook" || request.object === "pbshook" ? undefined : syntax(4, line.trimEnd().length + 1);
}

/** Converts a fault that chevrotain has found to the fault that PBS reports. */
function faultOf(line: string, tokens: readonly IToken[], { token, context }: IRecognitionException): ParseFault {
  const [verb, object] = tokens;
  const end = line.trimEnd().length;
  if (token === verb) return { kind: "operation", exit_code: 1, word: token.image };
  if (object === undefined || (token === object && isOf(object, Nothing))) return { kind: "no-object", exit_code: 2 };
  if (token === object) return { kind: "object", exit_code: 2, word: token.image };
  const at = token.tokenType === EOF ? tokens.length : tokens.indexOf(token);
  const before = tokens[at - 1] ?? token;
  if (isOf(token, At)) return syntax(3, token.startOffset);
  if (isOf(token, ListComma) || context.ruleStack.includes("names")) return syntax(3, (at > 2 ? before : token).startOffset);
  if (verb !== undefined && isOf(verb, BareVerb)) return strayWord(tokens, at);
  if (token.tokenType === EOF ? isOf(before, OpenQuote) || isOf(before, QuotedText) : isOf(token, Bad)) {
    const start = valueStart(tokens, at);
    return syntax(4, start, (token.tokenType === EOF ? line.length : endOf(token)) - start > WORD_LENGTH_MAX);
  }
  if (token.tokenType === EOF) return syntax(4, end);
  return isOf(token, Operator) ? syntax(4, endOf(token)) : syntax(4, token.startOffset, isTooLong(token));
}

/** Returns the fault of a word after a request that takes no further words (`active`, `delete`). */
function strayWord(tokens: readonly IToken[], at: number): SyntaxFault {
  if (verbOf(nth(tokens, 0)) !== "delete") return syntax(4, endOf(nth(tokens, Math.max(2, at - 1))));
  const stray = nth(tokens, at);
  return syntax(4, stray.startOffset, isOf(stray, Attribute) && isTooLong(stray));
}

/** Returns the position at which the value that contains a token begins: after the last operator before the token. */
function valueStart(tokens: readonly IToken[], at: number): number {
  let first = at;
  while (first > 0 && !isOf(nth(tokens, first - 1), Operator)) first--;
  return nth(tokens, first).startOffset;
}

const endOf = (token: IToken): number => token.startOffset + token.image.length;
const isTooLong = (token: IToken): boolean => token.image.length > WORD_LENGTH_MAX;

function syntax(exit_code: 3 | 4, column: number, word_too_long = false): SyntaxFault {
  return { kind: "syntax", exit_code, column, word_too_long };
}
