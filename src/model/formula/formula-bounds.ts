// Computes bounds of a formula's value from bounds of its inputs, by interval arithmetic on the tree of the formula. As long
// as the bounds prove that the order of jobs is still right, the scheduler need not evaluate the formula again for each job.
//
// B1. If every input lies within its bounds, the result of compileFormula lies within the bounds computed here. An error
//     counts as 0 and may occur for any inputs, so a formula that may have an error gets no bounds (all numbers). The bounds
//     may be wider than necessary: an input that appears twice in a formula counts as two independent inputs.

import { nth } from "#support/assert.ts";
import { COMPARE, CONSTANTS, type Formula, FormulaError, FUNCTIONS, inputName } from "./formula.ts";
import type { Comparison, FormulaNode } from "./formula-grammar.ts";

export type Bounds = { readonly low: number; readonly high: number };

const ALL: Bounds = { low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };
/**
 * Thrown for a part of a formula that has no bounds, or that might have an error. The whole formula then has no bounds. The exception is always caught in this
 * file.
 */
class Unbounded extends Error {}
const UNBOUNDED = new Unbounded("unbounded");
const unbounded = (): never => {
  throw UNBOUNDED;
};
const point = (value: number): Bounds => ({ low: value, high: value });
const TRUTH: Bounds = { low: 0, high: 1 };
/**
 * Relative margin for rounding: powers, logarithms and similar functions are exact except for the last digit
 * or two.
 */
const SLACK = 1e-9;

/** Computes the bounds of a formula. inputs: the bounds of its inputs, in the order of Formula.names. */
export function boundFormula({ root, names }: Pick<Formula, "root" | "names">, inputs: readonly Bounds[]): Bounds {
  try {
    const { low, high } = boundsOf(root, (name) => inputs[names.indexOf(inputName(name))]);
    if (!Number.isFinite(low) || !Number.isFinite(high)) return ALL;
    return { low: low - SLACK * Math.max(1, Math.abs(low)), high: high + SLACK * Math.max(1, Math.abs(high)) };
  } catch (error) {
    if (error instanceof Unbounded || error instanceof FormulaError) return ALL;
    throw error;
  }
}

function boundsOf(node: FormulaNode, input: (name: string) => Bounds | undefined): Bounds {
  const of = (part: FormulaNode): Bounds => boundsOf(part, input);
  switch (node.kind) {
    case "number":
      return point(node.value);
    case "name":
      return input(node.name) ?? point(CONSTANTS.get(node.name) ?? 0);
    case "call":
      return boundsOfCall(node.name, node.args.map(of));
    case "unary": {
      const { low, high } = of(node.arg);
      if (node.op === "-") return { low: 0 - high, high: 0 - low };
      return low === 0 && high === 0 ? point(1) : holds({ low, high }) ? point(0) : TRUTH;
    }
    case "binary":
      return boundsOfBinary(node.op, of(node.left), of(node.right));
    case "compare": {
      const parts = [node.first, ...node.rest.map((link) => link.node)].map(of);
      const links = node.rest.map(({ op }, at) => compare(op, nth(parts, at), nth(parts, at + 1)));
      return links.every((link) => link.low === 1) ? point(1) : links.some((link) => link.high === 0) ? point(0) : TRUTH;
    }
    case "if": {
      const test = of(node.test);
      if (holds(test)) return of(node.then);
      return test.low === 0 && test.high === 0 ? of(node.otherwise) : union(of(node.then), of(node.otherwise));
    }
    default: {
      const unreachable: never = node;
      return unreachable;
    }
  }
}

/** Whether a truth value is certainly true. */
const holds = ({ low, high }: Bounds): boolean => low > 0 || high < 0;
const union = (a: Bounds, b: Bounds): Bounds => ({ low: Math.min(a.low, b.low), high: Math.max(a.high, b.high) });

function boundsOfBinary(op: Extract<FormulaNode, { kind: "binary" }>["op"], a: Bounds, b: Bounds): Bounds {
  switch (op) {
    case "+":
      return checked({ low: a.low + b.low, high: a.high + b.high });
    case "-":
      return checked({ low: a.low - b.high, high: a.high - b.low });
    case "*":
      return corners(a, b, (x, y) => x * y);
    case "/":
      return hasZero(b) ? unbounded() : corners(a, b, (x, y) => x / y);
    case "//":
      return hasZero(b) ? unbounded() : corners(a, b, (x, y) => Math.floor(x / y));
    case "%":
      return boundsOfModulo(a, b);
    case "**":
      return boundsOfPower(a, b);
    case "and":
      return holds(a) ? b : a.low === 0 && a.high === 0 ? a : union(union(a, b), point(0));
    case "or":
      return holds(a) ? a : a.low === 0 && a.high === 0 ? b : union(a, b);
    default: {
      const unreachable: never = op;
      return unreachable;
    }
  }
}

const hasZero = ({ low, high }: Bounds): boolean => low <= 0 && high >= 0;

/** Returns the bounds, or throws Unbounded if one is NaN (infinity minus infinity, zero times infinity). */
function checked({ low, high }: Bounds): Bounds {
  return Number.isNaN(low) || Number.isNaN(high) ? unbounded() : { low, high };
}

/** Returns the bounds of a power or function, or throws Unbounded if one is not finite, because the result might be an error. */
function finite(bounds: Bounds): Bounds {
  return Number.isFinite(bounds.low) && Number.isFinite(bounds.high) ? bounds : unbounded();
}

/** The bounds of a function of two arguments that is monotonic in each: its extremes are at the ends of both intervals. */
function corners(a: Bounds, b: Bounds, compute: (x: number, y: number) => number): Bounds {
  const values = [compute(a.low, b.low), compute(a.low, b.high), compute(a.high, b.low), compute(a.high, b.high)];
  return checked({ low: Math.min(...values), high: Math.max(...values) });
}

function boundsOfModulo(a: Bounds, b: Bounds): Bounds {
  if (hasZero(b)) return unbounded();
  return b.low > 0 ? { low: 0, high: Math.min(b.high, a.low >= 0 ? Math.max(a.high, 0) : b.high) } : { low: b.low, high: 0 };
}

function boundsOfPower(a: Bounds, b: Bounds): Bounds {
  if (a.low > 0 || (a.low === 0 && b.low >= 0)) return finite(corners(a, b, (x, y) => x ** y));
  if (b.low !== b.high || !Number.isInteger(b.low) || b.low < 0) return unbounded();
  const [low, high] = [a.low ** b.low, a.high ** b.low];
  if (b.low % 2 === 1) return finite({ low, high });
  return finite({ low: hasZero(a) ? 0 : Math.min(low, high), high: Math.max(low, high) });
}

function compare(op: Comparison, a: Bounds, b: Bounds): Bounds {
  if (a.low === a.high && b.low === b.high) return point(COMPARE[op](a.low, b.low) ? 1 : 0);
  switch (op) {
    case "<":
      return a.high < b.low ? point(1) : a.low >= b.high ? point(0) : TRUTH;
    case "<=":
      return a.high <= b.low ? point(1) : a.low > b.high ? point(0) : TRUTH;
    case ">":
      return compare("<", b, a);
    case ">=":
      return compare("<=", b, a);
    case "==":
      return a.high < b.low || b.high < a.low ? point(0) : TRUTH;
    case "!=":
      return a.high < b.low || b.high < a.low ? point(1) : TRUTH;
    default: {
      const unreachable: never = op;
      return unreachable;
    }
  }
}

// --- functions

/**
 * Functions of one argument that never decrease, with the lower end of their domain. The function may be
 * undefined at the end itself.
 */
const RISING: ReadonlyMap<string, number> = new Map([
  ...["asinh", "atan", "ceil", "degrees", "exp", "expm1", "float", "floor", "int", "radians", "sinh", "tanh", "trunc"].map(
    (name) => [name, Number.NEGATIVE_INFINITY] as const,
  ),
  ["sqrt", 0],
  ["log", 0],
  ["log2", 0],
  ["log10", 0],
  ["log1p", -1],
]);

function boundsOfCall(name: string, args: readonly Bounds[]): Bounds {
  const [a, b] = args;
  if (args.every(({ low, high }) => low === high)) return boundsOfPoints(name, args);
  switch (name) {
    case "min":
      return checked({ low: Math.min(...args.map(({ low }) => low)), high: Math.min(...args.map(({ high }) => high)) });
    case "max":
      return checked({ low: Math.max(...args.map(({ low }) => low)), high: Math.max(...args.map(({ high }) => high)) });
    case "abs":
    case "fabs":
      if (a === undefined) return unbounded();
      return { low: hasZero(a) ? 0 : Math.min(Math.abs(a.low), Math.abs(a.high)), high: Math.max(Math.abs(a.low), Math.abs(a.high)) };
    case "pow":
      return a === undefined || b === undefined ? unbounded() : boundsOfPower(a, b);
    default:
      break;
  }
  const from = RISING.get(name);
  if (from === undefined || a === undefined || args.length > 1 || (a.low <= from && !(name === "sqrt" && a.low === 0))) return unbounded();
  return boundsOfRising(name, a);
}

function boundsOfRising(name: string, { low, high }: Bounds): Bounds {
  return union(boundsOfPoints(name, [point(low)]), boundsOfPoints(name, [point(high)]));
}

function boundsOfPoints(name: string, args: readonly Bounds[]): Bounds {
  const value = FUNCTIONS.get(name)?.compute(...args.map(({ low }) => low)) ?? Number.NaN;
  return finite(point(value));
}
