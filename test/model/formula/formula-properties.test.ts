// Random formulas: their values equal Python's, their bounds hold, and no text makes the reader throw.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { compileFormula, type Formula } from "#model/formula/formula.ts";
import { boundFormula } from "#model/formula/formula-bounds.ts";
import { INPUTS, read, worth } from "./formula-bed.ts";

/** Random formulas as text, with operators of all ranks beside each other: any error of precedence changes a value. */
const texts: fc.Arbitrary<string> = fc.letrec<{ text: string }>((tie) => ({
  text: fc.oneof(
    { maxDepth: 5, depthSize: "medium" },
    fc.constantFrom(...Object.keys(INPUTS), "0", "1", "2", "3", "7", ".5", "1.25", "1e2", "pi"),
    fc
      .tuple(tie("text"), fc.constantFrom("+", "-", "*", "/", "//", "%", "**", " and ", " or ", "<", ">=", "==", "!="), tie("text"))
      .map((parts) => parts.join("")),
    tie("text").map((text) => `(${text})`),
    tie("text").map((text) => `-${text}`),
    tie("text").map((text) => `not ${text}`),
    fc.tuple(tie("text"), tie("text"), tie("text")).map(([a, b, c]) => `${a} if ${b} else ${c}`),
    fc.tuple(fc.constantFrom("abs", "sqrt", "floor", "ceil", "exp", "log", "int"), tie("text")).map(([name, text]) => `${name}(${text})`),
    fc.tuple(fc.constantFrom("min", "max", "pow", "hypot"), tie("text"), tie("text")).map(([name, a, b]) => `${name}(${a},${b})`),
  ),
})).text;

const PYTHON = `
import json, sys
from math import *
inputs = json.load(sys.stdin)
def value(text):
    try:
        result = eval(text, dict(globals(), **inputs["names"]))
        return "complex" if isinstance(result, complex) else float(result)
    except SyntaxError: return "syntax"
    except Exception as error: return type(error).__name__
print(json.dumps([value(text) for text in inputs["texts"]]))
`;
const python = spawnSync("python3", ["-c", "pass"]).status === 0;

test("values are those of Python", { skip: python ? false : "no python3" }, () => {
  const samples = fc.sample(texts, { numRuns: 1500, seed: 7 }).filter((text) => text.length < 300);
  const answer = spawnSync("python3", ["-c", PYTHON], { input: JSON.stringify({ texts: samples, names: INPUTS }), encoding: "utf8" });
  const expected = JSON.parse(answer.stdout.replaceAll(/\b-?Infinity\b|NaN/g, '"infinite"')) as readonly (number | string)[];
  const seen = { values: 0, errors: 0, syntax: 0 };
  samples.forEach((text, at) => {
    const formula = read(text);
    const wanted = expected[at] as number | string;
    if ("fault" in formula) {
      seen.syntax++;
      assert.equal(wanted, "syntax", text);
      return;
    }
    const { value, error } = worth(formula);
    if (typeof wanted === "string") {
      seen.errors++;
      // Only Python has whole numbers of any length; beyond our range Python's floats fail too.
      assert.notEqual(error, undefined, `${text} is ${value}, Python says ${wanted}`);
      return;
    }
    seen.values++;
    if (error === "math range error") return;
    assert.ok(Math.abs(value - wanted) <= 1e-9 * Math.max(1, Math.abs(wanted)), `${text} is ${value} (${error}), Python says ${wanted}`);
  });
  assert.ok(seen.values > 500 && seen.errors > 50 && seen.syntax > 10, JSON.stringify(seen));
});

test("no text makes the reader or the evaluation throw", () => {
  const pieces = fc.array(
    fc.constantFrom("ncpus", "1", "(", ")", "+", "**", "if", "else", "not", ",", "max", "<", " ", "é", "$", "and", "-"),
    {
      maxLength: 40,
    },
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ maxLength: 60 }),
        pieces.map((all) => all.join("")),
      ),
      (text) => {
        const formula = read(text);
        if ("fault" in formula) return;
        assert.ok(Number.isFinite(worth(formula).value));
      },
    ),
    { numRuns: 500 },
  );
});

test("bounds hold for all inputs between theirs", () => {
  const formulas = fc
    .sample(texts, { numRuns: 1500, seed: 11 })
    .map(read)
    .filter((formula) => !("fault" in formula)) as Formula[];
  const random = fc.sample(fc.double({ min: 0, max: 1, noNaN: true }), { numRuns: 4000, seed: 3 });
  const bounded = { finite: 0 };
  formulas.forEach((formula, at) => {
    const inputs = formula.names.map((name, number) => {
      const low = INPUTS[name] ?? 0;
      return { low, high: low + (number % 2) * 100 * (random[(at + number) % 4000] as number) };
    });
    const { low, high } = boundFormula(formula, inputs);
    if (Number.isFinite(low)) bounded.finite++;
    const evaluate = compileFormula(formula);
    for (let draw = 0; draw < 8; draw++) {
      const given = inputs.map(
        (each, number) => each.low + (each.high - each.low) * (random[(at * 8 + draw * 31 + number) % 4000] as number),
      );
      const { value } = evaluate(given);
      assert.ok(low <= value && value <= high, `${formula.text} is ${value} at ${given.join()}, not between ${low} and ${high}`);
    }
  });
  assert.ok(bounded.finite > formulas.length / 2, `${bounded.finite} of ${formulas.length} have bounds`);
});
