// The chevrotain grammar of job_sort_formula and fairshare_usage_res: Python's expressions with numbers, as PBS users write
// them (docs/reference/scheduler.md 4). The grammar makes a tree from a text; formula.ts gives names their meaning. No text
// is ever evaluated as code.
//
//   expression: test `if` test `else` expression
//   test: the operators, each binding tighter than those before it: `or`; `and`; `not`; comparisons (chained as in Python);
//         + -; * / // %; unary + -; ** (2 ** 3 ** 2 is 2 ** (3 ** 2))
//
// F1. The length of a text, the nesting of brackets and the depth of the tree are bounded. Therefore, for any text, the time
//     and the stack that parsing and every walk over the tree need are bounded as well.

import { createToken, EmbeddedActionsParser, EOF, type IToken, Lexer } from "chevrotain";
import { nth } from "#support/assert.ts";

export type BinaryOperator = "+" | "-" | "*" | "/" | "//" | "%" | "**" | "and" | "or";
export type Comparison = "<" | "<=" | ">" | ">=" | "==" | "!=";
export type FormulaNode =
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "call"; readonly name: string; readonly args: readonly FormulaNode[] }
  | { readonly kind: "unary"; readonly op: "-" | "not"; readonly arg: FormulaNode }
  | { readonly kind: "binary"; readonly op: BinaryOperator; readonly left: FormulaNode; readonly right: FormulaNode }
  | {
      readonly kind: "compare";
      readonly first: FormulaNode;
      readonly rest: readonly { readonly op: Comparison; readonly node: FormulaNode }[];
    }
  | { readonly kind: "if"; readonly test: FormulaNode; readonly then: FormulaNode; readonly otherwise: FormulaNode };

const FORMULA_LENGTH_MAX = 8192;
const FORMULA_NESTING_MAX = 50;
/** The greatest depth of the tree. A sum of n terms has the depth n, so this is also the largest number of terms. */
const FORMULA_DEPTH_MAX = 500;

const Name = createToken({ name: "Name", pattern: /[A-Za-z_][A-Za-z0-9_]*/ });
const keyword = (word: string) => createToken({ name: `Word_${word}`, pattern: new RegExp(word), longer_alt: Name });
const sign = (name: string, text: string) => createToken({ name, pattern: text });
const Num = createToken({ name: "Num", pattern: /(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?/ });
const Blank = createToken({ name: "Blank", pattern: /[ \t\r\n]+/, group: Lexer.SKIPPED });
const [If, Else, And, Or, Not] = ["if", "else", "and", "or", "not"].map(keyword) as [T, T, T, T, T];
const [Power, Floor, Times, Over, Modulo] = [
  sign("Power", "**"),
  sign("Floor", "//"),
  sign("Times", "*"),
  sign("Over", "/"),
  sign("Modulo", "%"),
];
const [Plus, Minus, Open, Close, Comma] = [
  sign("Plus", "+"),
  sign("Minus", "-"),
  sign("Open", "("),
  sign("Close", ")"),
  sign("Comma", ","),
];
const Compare = createToken({ name: "Compare", pattern: /<=|>=|==|!=|<|>/ });
type T = ReturnType<typeof createToken>;

// If one token is the beginning of another (`*` and `**`, a name and a keyword), the longer token or the keyword comes first.
const TOKENS = [Blank, If, Else, And, Or, Not, Name, Num, Power, Floor, Times, Over, Modulo, Plus, Minus, Open, Close, Comma, Compare];

class FormulaParser extends EmbeddedActionsParser {
  constructor() {
    super(TOKENS, { recoveryEnabled: false, maxLookahead: 1 });
    this.performSelfAnalysis();
  }

  readonly expression = this.RULE("expression", (): FormulaNode => {
    // A loop reads a chain `a if t else b if u else c`, and its tree is built from the end. A long chain therefore needs no
    // stack.
    const links: { then: FormulaNode; test: FormulaNode }[] = [];
    let last = this.SUBRULE(this.disjunction);
    this.MANY(() => {
      this.CONSUME(If);
      const test = this.SUBRULE1(this.disjunction);
      this.CONSUME(Else);
      const then = last;
      last = this.SUBRULE2(this.disjunction);
      this.ACTION(() => links.push({ then, test }));
    });
    return this.ACTION(() => links.reduceRight((otherwise, { then, test }) => ({ kind: "if", test, then, otherwise }), last));
  });

  readonly disjunction = this.RULE("disjunction", (): FormulaNode => {
    let left = this.SUBRULE(this.conjunction);
    this.MANY(() => {
      this.CONSUME(Or);
      const right = this.SUBRULE1(this.conjunction);
      left = { kind: "binary", op: "or", left, right };
    });
    return left;
  });

  readonly conjunction = this.RULE("conjunction", (): FormulaNode => {
    let left = this.SUBRULE(this.negation);
    this.MANY(() => {
      this.CONSUME(And);
      const right = this.SUBRULE1(this.negation);
      left = { kind: "binary", op: "and", left, right };
    });
    return left;
  });

  readonly negation = this.RULE("negation", (): FormulaNode => {
    let nots = 0;
    this.MANY(() => {
      this.CONSUME(Not);
      nots++;
    });
    let node = this.SUBRULE(this.comparison);
    for (; nots > 0; nots--) node = { kind: "unary", op: "not", arg: node };
    return node;
  });

  readonly comparison = this.RULE("comparison", (): FormulaNode => {
    const first = this.SUBRULE(this.sum);
    const rest: { op: Comparison; node: FormulaNode }[] = [];
    this.MANY(() => {
      const op = this.CONSUME(Compare).image as Comparison;
      const node = this.SUBRULE1(this.sum);
      this.ACTION(() => rest.push({ op, node }));
    });
    return rest.length === 0 ? first : { kind: "compare", first, rest };
  });

  readonly sum = this.RULE("sum", (): FormulaNode => {
    let left = this.SUBRULE(this.product);
    this.MANY(() => {
      const op = this.OR([{ ALT: () => this.CONSUME(Plus) }, { ALT: () => this.CONSUME(Minus) }]).image as "+" | "-";
      const right = this.SUBRULE1(this.product);
      left = { kind: "binary", op, left, right };
    });
    return left;
  });

  readonly product = this.RULE("product", (): FormulaNode => {
    let left = this.SUBRULE(this.factor);
    this.MANY(() => {
      const sign = this.OR([
        { ALT: () => this.CONSUME(Times) },
        { ALT: () => this.CONSUME(Over) },
        { ALT: () => this.CONSUME(Floor) },
        { ALT: () => this.CONSUME(Modulo) },
      ]);
      const right = this.SUBRULE1(this.factor);
      left = { kind: "binary", op: sign.image as BinaryOperator, left, right };
    });
    return left;
  });

  /** A sign binds less tightly than a power: -2**2 is -4. */
  readonly factor = this.RULE("factor", (): FormulaNode => {
    let minus = 0;
    this.MANY(() => {
      if (this.OR([{ ALT: () => this.CONSUME(Plus) }, { ALT: () => this.CONSUME(Minus) }]).image === "-") minus++;
    });
    let node = this.SUBRULE(this.power);
    for (; minus > 0; minus--) node = { kind: "unary", op: "-", arg: node };
    return node;
  });

  /** `a ** b ** c` is `a ** (b ** c)`; an exponent may have signs. */
  readonly power = this.RULE("power", (): FormulaNode => {
    const bases = [this.SUBRULE(this.atom)];
    const minus = [0];
    this.MANY(() => {
      this.CONSUME(Power);
      let signs = 0;
      this.MANY1(() => {
        if (this.OR([{ ALT: () => this.CONSUME(Plus) }, { ALT: () => this.CONSUME(Minus) }]).image === "-") signs++;
      });
      const base = this.SUBRULE1(this.atom);
      this.ACTION(() => {
        bases.push(base);
        minus.push(signs);
      });
    });
    return this.ACTION(() => {
      let node = nth(bases, bases.length - 1);
      for (let at = bases.length - 2; at >= 0; at--) {
        for (let signs = nth(minus, at + 1); signs > 0; signs--) node = { kind: "unary", op: "-", arg: node };
        node = { kind: "binary", op: "**", left: nth(bases, at), right: node };
      }
      return node;
    });
  });

  readonly atom = this.RULE(
    "atom",
    (): FormulaNode =>
      this.OR([
        { ALT: (): FormulaNode => ({ kind: "number", value: Number(this.CONSUME(Num).image) }) },
        {
          ALT: () => {
            this.CONSUME(Open);
            const node = this.SUBRULE(this.expression);
            this.CONSUME(Close);
            return node;
          },
        },
        {
          ALT: (): FormulaNode => {
            const name = this.CONSUME(Name).image;
            const args = this.OPTION(() => this.SUBRULE(this.parameters));
            return args === undefined ? { kind: "name", name } : { kind: "call", name, args };
          },
        },
      ]),
  );

  readonly parameters = this.RULE("parameters", (): FormulaNode[] => {
    const args: FormulaNode[] = [];
    this.CONSUME(Open);
    this.MANY_SEP({
      SEP: Comma,
      DEF: () => {
        const arg = this.SUBRULE(this.expression);
        this.ACTION(() => args.push(arg));
      },
    });
    this.CONSUME(Close);
    return args;
  });
}

export type FormulaParse = { readonly ok: true; readonly root: FormulaNode } | { readonly ok: false; readonly fault: string };

let lexer: Lexer | undefined;
let parser: FormulaParser | undefined;

/** Makes a tree from the text of a formula. If the text is malformed, the fault says what is wrong and where. */
export function parseFormulaText(text: string): FormulaParse {
  if (text.length > FORMULA_LENGTH_MAX) return { ok: false, fault: `longer than ${FORMULA_LENGTH_MAX} characters` };
  lexer ??= new Lexer(TOKENS, { positionTracking: "onlyOffset" });
  const { tokens, errors } = lexer.tokenize(text);
  const [strange] = errors;
  if (strange !== undefined) return { ok: false, fault: `unexpected ${JSON.stringify(text[strange.offset])} at ${strange.offset + 1}` };
  if (nestingOf(tokens) > FORMULA_NESTING_MAX) return { ok: false, fault: `parentheses nested deeper than ${FORMULA_NESTING_MAX}` };
  parser ??= new FormulaParser();
  parser.input = tokens;
  const root = parser.expression();
  const [error] = parser.errors;
  if (error === undefined) {
    return depthOf(root) <= FORMULA_DEPTH_MAX
      ? { ok: true, root }
      : { ok: false, fault: `more than ${FORMULA_DEPTH_MAX} operators one below the other` };
  }
  const { token } = error;
  return {
    ok: false,
    fault: token.tokenType === EOF ? "unexpected end" : `unexpected ${JSON.stringify(token.image)} at ${token.startOffset + 1}`,
  };
}

/** The nodes directly below a node, in reverse order. If they are pushed on a stack, they come off in the order of the text. */
export function partsOf(node: FormulaNode): readonly FormulaNode[] {
  switch (node.kind) {
    case "number":
    case "name":
      return [];
    case "call":
      return [...node.args].reverse();
    case "unary":
      return [node.arg];
    case "binary":
      return [node.right, node.left];
    case "compare":
      return [...node.rest.map(({ node: part }) => part).reverse(), node.first];
    case "if":
      return [node.otherwise, node.test, node.then];
    default: {
      const unreachable: never = node;
      return unreachable;
    }
  }
}

function depthOf(root: FormulaNode): number {
  let level: readonly FormulaNode[] = [root];
  let depth = 0;
  for (; level.length > 0; depth++) level = level.flatMap(partsOf);
  return depth;
}

function nestingOf(tokens: readonly IToken[]): number {
  let [depth, deepest] = [0, 0];
  for (const { tokenType } of tokens) {
    if (tokenType === Open) deepest = Math.max(deepest, ++depth);
    if (tokenType === Close) depth--;
  }
  return deepest;
}
