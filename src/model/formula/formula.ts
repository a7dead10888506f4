// Formulas: the names that they may contain, and their evaluation (docs/reference/scheduler.md 4). All values are numbers,
// and operators mean what they mean in Python. A truth value is 1 or 0.
//
// F2. A formula is read only once. Its tree is compiled to a function, which gets the inputs by number, so that an
//     evaluation need not look up names.
// F3. The result of an evaluation is either a finite number or an error with a text. It is never NaN or infinity, and no
//     other exception is thrown.

import { mustGet, present } from "#support/assert.ts";
import type { Comparison, FormulaNode } from "./formula-grammar.ts";
import { parseFormulaText, partsOf } from "./formula-grammar.ts";

export type { FormulaNode } from "./formula-grammar.ts";

export type Formula = {
  readonly text: string;
  readonly root: FormulaNode;
  /** the names of the formula's inputs, each once, in the order in which Evaluate gets their values */
  readonly names: readonly string[];
};

/** The names that job_sort_formula may use in addition to resources. */
export const JOB_FORMULA_NAMES: readonly string[] = [
  "eligible_time",
  "queue_priority",
  "job_priority",
  "fairshare_perc",
  "fairshare_tree_usage",
  "fairshare_factor",
  "accrue_type",
  "pressure",
  "submit_time",
  "requested_time",
  "area",
  "expansion_factor",
];
/** Former names of inputs, with their present names. */
const FORMER_NAMES: ReadonlyMap<string, string> = new Map([["fair_share_perc", "fairshare_perc"]]);

export type FormulaFault = { readonly fault: "syntax" | "keyword" | "type"; readonly text: string };
/** What a name is: a resource whose values are numbers, a resource with other values, or no resource (undefined). */
export type NameKind = "number" | "other" | undefined;

/**
 * Reads a formula. kindOf: says whether a name is a resource, and whether its values are numbers. names: names that are
 * allowed besides resources. The kinds of faults correspond to refusals of PBS: 15123 (syntax), 15124 (keyword: an unknown
 * name or function) and 15125 (type: a resource whose values are not numbers).
 */
export function readFormula(text: string, kindOf: (name: string) => NameKind, names: readonly string[]): Formula | FormulaFault {
  const parsed = parseFormulaText(text);
  if (!parsed.ok) return { fault: "syntax", text: parsed.fault };
  const used = new Set<string>();
  const fault = checkNames(parsed.root, (name) => {
    const kind = kindOf(name);
    if (kind === "other") return "type";
    if (kind === "number" || names.includes(name)) used.add(name);
    else if (names.includes(FORMER_NAMES.get(name) ?? "")) used.add(mustGet(FORMER_NAMES, name));
    else if (!CONSTANTS.has(name)) return "keyword";
    return null;
  });
  return fault ?? { text, root: parsed.root, names: [...used] };
}

/** Checks all names and calls in the order of the text. Returns the first fault. */
function checkNames(root: FormulaNode, check: (name: string) => "keyword" | "type" | null): FormulaFault | null {
  const stack: FormulaNode[] = [root];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    switch (node.kind) {
      case "name": {
        const fault = check(node.name);
        if (fault !== null) return { fault, text: node.name };
        break;
      }
      case "call": {
        const found = FUNCTIONS.get(node.name);
        if (found === undefined) return { fault: "keyword", text: node.name };
        const { least, most } = found;
        if (node.args.length < least || node.args.length > most)
          return { fault: "syntax", text: `${node.name}() takes ${least === most ? least : `${least} to ${most}`} arguments` };
        break;
      }
      default:
        break;
    }
    stack.push(...partsOf(node));
  }
  return null;
}

/** The input that a name means. For a former name it is the present name. */
export const inputName = (name: string): string => FORMER_NAMES.get(name) ?? name;

// --- evaluation

/** Thrown inside an evaluation if the value cannot be computed. Callers of compileFormula get it as FormulaValue. */
export class FormulaError extends Error {}
const fail = (text: string): never => {
  throw new FormulaError(text);
};

/** Evaluates a formula. inputs: numbers in the order of Formula.names. */
export type Evaluate = (inputs: readonly number[]) => FormulaValue;
export type FormulaValue = { readonly value: number; readonly error?: undefined } | { readonly value: 0; readonly error: string };
type Code = (inputs: readonly number[]) => number;

/** Makes a function that evaluates the formula. If an evaluation ends in an error, the value is 0, as in PBS. */
export function compileFormula({ root, names }: Pick<Formula, "root" | "names">): Evaluate {
  const code = compile(root, names);
  return (inputs) => {
    try {
      const value = code(inputs);
      return Number.isFinite(value) ? { value } : { value: 0, error: "math range error" };
    } catch (error) {
      if (error instanceof FormulaError) return { value: 0, error: error.message };
      throw error;
    }
  };
}

function compile(node: FormulaNode, names: readonly string[]): Code {
  switch (node.kind) {
    case "number": {
      const { value } = node;
      return () => value;
    }
    case "name": {
      const at = names.indexOf(inputName(node.name));
      const constant = CONSTANTS.get(node.name) ?? 0;
      return at < 0 ? () => constant : (inputs) => present(inputs[at], node.name);
    }
    case "call": {
      const { compute } = mustGet(FUNCTIONS, node.name);
      const args = node.args.map((arg) => compile(arg, names));
      return (inputs) => finite(compute(...args.map((arg) => arg(inputs))));
    }
    case "unary": {
      const arg = compile(node.arg, names);
      // The result is never -0, because Python's integers have no -0.
      return node.op === "-" ? (inputs) => 0 - arg(inputs) : (inputs) => (arg(inputs) === 0 ? 1 : 0);
    }
    case "binary":
      return compileBinary(node, names);
    case "compare":
      return compileComparison(node, names);
    case "if": {
      const [test, then, otherwise] = [node.test, node.then, node.otherwise].map((part) => compile(part, names)) as [Code, Code, Code];
      return (inputs) => (test(inputs) !== 0 ? then(inputs) : otherwise(inputs));
    }
    default: {
      const unreachable: never = node;
      return unreachable;
    }
  }
}

function compileBinary({ op, left, right }: Extract<FormulaNode, { kind: "binary" }>, names: readonly string[]): Code {
  const [a, b] = [compile(left, names), compile(right, names)];
  switch (op) {
    case "+":
      return (inputs) => a(inputs) + b(inputs);
    case "-":
      return (inputs) => a(inputs) - b(inputs);
    case "*":
      return (inputs) => a(inputs) * b(inputs);
    case "/":
      return (inputs) => divide(a(inputs), b(inputs));
    case "//":
      return (inputs) => Math.floor(divide(a(inputs), b(inputs)));
    case "%":
      return (inputs) => modulo(a(inputs), b(inputs));
    case "**":
      return (inputs) => finite(power(a(inputs), b(inputs)));
    case "and":
      return (inputs) => {
        const value = a(inputs);
        return value === 0 ? value : b(inputs);
      };
    case "or":
      return (inputs) => {
        const value = a(inputs);
        return value !== 0 ? value : b(inputs);
      };
    default: {
      const unreachable: never = op;
      return unreachable;
    }
  }
}

/** Compiles a chain such as `a < b <= c`: it is true if every single comparison is true. Evaluation stops at the first comparison that is false. */
function compileComparison({ first, rest }: Extract<FormulaNode, { kind: "compare" }>, names: readonly string[]): Code {
  const head = compile(first, names);
  const links = rest.map(({ op, node }) => ({ holds: COMPARE[op], code: compile(node, names) }));
  return (inputs) => {
    let left = head(inputs);
    for (const { holds, code } of links) {
      const right = code(inputs);
      if (!holds(left, right)) return 0;
      left = right;
    }
    return 1;
  };
}

export const COMPARE: Readonly<Record<Comparison, (a: number, b: number) => boolean>> = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
};

function divide(a: number, b: number): number {
  return b === 0 ? fail("division by zero") : a / b;
}
/** The remainder of a division. As in Python, it has the sign of the divisor. */
function modulo(a: number, b: number): number {
  if (b === 0) return fail("division by zero");
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
}
function power(a: number, b: number): number {
  if (a === 0 && b < 0) return fail("0.0 cannot be raised to a negative power");
  return a < 0 && !Number.isInteger(b) ? fail("math domain error") : a ** b;
}
function finite(value: number): number {
  if (Number.isNaN(value)) return fail("math domain error");
  return Number.isFinite(value) ? value : fail("math range error");
}

// --- functions and constants

type Fn = { readonly least: number; readonly most: number; readonly compute: (...args: number[]) => number };
const one = (compute: (x: number) => number): Fn => ({ least: 1, most: 1, compute });
const two = (compute: (x: number, y: number) => number): Fn => ({ least: 2, most: 2, compute });
const some = (least: number, most: number, compute: (...args: number[]) => number): Fn => ({ least, most, compute });
const ARGUMENTS_MAX = 64;
const DEGREE = Math.PI / 180;
const FACTORIAL_MAX = 170;

/** The functions of a formula: numeric built-ins of Python, and most of the functions of its math module that take and return single numbers. */
export const FUNCTIONS: ReadonlyMap<string, Fn> = new Map<string, Fn>([
  ["abs", one(Math.abs)],
  ["acos", one(Math.acos)],
  ["acosh", one(Math.acosh)],
  ["asin", one(Math.asin)],
  ["asinh", one(Math.asinh)],
  ["atan", one(Math.atan)],
  ["atan2", two(Math.atan2)],
  ["atanh", one(Math.atanh)],
  ["ceil", one(Math.ceil)],
  ["copysign", two((x, y) => (y < 0 || Object.is(y, -0) ? -Math.abs(x) : Math.abs(x)))],
  ["cos", one(Math.cos)],
  ["cosh", one(Math.cosh)],
  ["degrees", one((x) => x / DEGREE)],
  ["exp", one(Math.exp)],
  ["expm1", one(Math.expm1)],
  ["fabs", one(Math.abs)],
  ["factorial", one(factorial)],
  ["float", one((x) => x)],
  ["floor", one(Math.floor)],
  ["fmod", two((x, y) => (y === 0 ? fail("math domain error") : x % y))],
  ["hypot", some(1, ARGUMENTS_MAX, Math.hypot)],
  ["int", one(Math.trunc)],
  ["log", some(1, 2, (x, base) => (base === undefined ? logarithm(x) : divide(logarithm(x), logarithm(base))))],
  ["log10", one((x) => (x <= 0 ? fail("math domain error") : Math.log10(x)))],
  ["log1p", one((x) => (x <= -1 ? fail("math domain error") : Math.log1p(x)))],
  ["log2", one((x) => (x <= 0 ? fail("math domain error") : Math.log2(x)))],
  ["max", some(1, ARGUMENTS_MAX, Math.max)],
  ["min", some(1, ARGUMENTS_MAX, Math.min)],
  ["pow", two(power)],
  ["radians", one((x) => x * DEGREE)],
  ["round", some(1, 2, (x, digits = 0) => roundHalfEven(x, digits))],
  ["sin", one(Math.sin)],
  ["sinh", one(Math.sinh)],
  ["sqrt", one(Math.sqrt)],
  ["tan", one(Math.tan)],
  ["tanh", one(Math.tanh)],
  ["trunc", one(Math.trunc)],
]);

/** Names of constants. If a resource has the same name, the name means the resource. */
export const CONSTANTS: ReadonlyMap<string, number> = new Map([
  ["pi", Math.PI],
  ["e", Math.E],
  ["tau", 2 * Math.PI],
  ["True", 1],
  ["False", 0],
]);

function logarithm(x: number): number {
  return x <= 0 ? fail("math domain error") : Math.log(x);
}

function factorial(x: number): number {
  if (x < 0 || !Number.isInteger(x)) return fail("factorial() only accepts integral values");
  if (x > FACTORIAL_MAX) return fail("math range error");
  let product = 1;
  for (let factor = 2; factor <= x; factor++) product *= factor;
  return product;
}

function roundHalfEven(x: number, digits: number): number {
  if (!Number.isInteger(digits)) return fail("round() takes a whole number of digits");
  const scale = 10 ** digits;
  const scaled = x * scale;
  const low = Math.floor(scaled);
  const rest = scaled - low;
  const rounded = rest < 0.5 || (rest === 0.5 && low % 2 === 0) ? low : low + 1;
  return scale === 0 || !Number.isFinite(scaled) ? x : rounded / scale;
}

const DIGITS = 4;

/** The text of a value as in logs of PBS: with as many decimals as it needs, at most four. A longer value is rounded: 0.83296 becomes 0.8330. */
export function formulaText(value: number): string {
  let digits = 0;
  for (let scaled = value; digits < DIGITS && Number.isFinite(scaled) && !Number.isInteger(scaled); scaled *= 10) digits++;
  return value.toFixed(digits).replace(/^-(0(\.0*)?)$/, "$1");
}
