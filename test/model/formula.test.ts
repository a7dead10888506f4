// Formulas: what is accepted, what it is worth (Python itself is the judge), and that no text whatever makes the reader throw.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { compileFormula, type Formula, formulaText, JOB_FORMULA_NAMES, type NameKind, readFormula } from "#model/formula.ts";
import { boundFormula } from "#model/formula-bounds.ts";

const KINDS: Readonly<Record<string, NameKind>> = { ncpus: "number", walltime: "number", e: "number", arch: "other", flag: "other" };
const read = (text: string): ReturnType<typeof readFormula> =>
  readFormula(text, (name) => (Object.hasOwn(KINDS, name) ? KINDS[name] : undefined), JOB_FORMULA_NAMES);

test("a formula names resources with numbers, the names of PBS, functions and constants; anything else has its fault", () => {
  // biome-ignore format: a table
  const table: readonly (readonly [text: string, outcome: string])[] = [
    ["ncpus*10+job_priority",                      "ncpus job_priority"],
    ["pow(2,-(fairshare_tree_usage/fairshare_perc))", "fairshare_tree_usage fairshare_perc"],
    ["fair_share_perc + fairshare_perc",           "fairshare_perc"],
    ["pi",                                         ""],
    ["e",                                          "e"],
    ["ncpus if eligible_time > 3600 and not accrue_type == 1 else queue_priority", "ncpus eligible_time accrue_type queue_priority"],
    ["  max( 1 , ncpus )  ",                       "ncpus"],
    ["ncpus*",                                     "syntax: unexpected end"],
    ["",                                           "syntax: unexpected end"],
    ["2 3",                                        'syntax: unexpected "3" at 3'],
    ["ncpus; import os",                           'syntax: unexpected ";" at 6'],
    ["(ncpus",                                     "syntax: unexpected end"],
    ["'a'",                                        'syntax: unexpected "\'" at 1'],
    ["ncpus.real",                                 'syntax: unexpected "." at 6'],
    ["sqrt(1,2)",                                  "syntax: sqrt() takes 1 arguments"],
    ["max()",                                      "syntax: max() takes 1 to 64 arguments"],
    ["nosuch+1",                                   "keyword: nosuch"],
    ["fair_share_factor",                          "keyword: fair_share_factor"],
    ["eval(1)",                                    "keyword: eval"],
    ["__import__(1)",                              "keyword: __import__"],
    ["constructor",                                "keyword: constructor"],
    ["sqrt",                                       "keyword: sqrt"],
    ["arch",                                       "type: arch"],
    ["ncpus + flag",                               "type: flag"],
    ["1".repeat(9000),                             "syntax: longer than 8192 characters"],
    [`${"(".repeat(51)}1${")".repeat(51)}`,        "syntax: parentheses nested deeper than 50"],
    [`1${"+1".repeat(600)}`,                       "syntax: more than 500 operators one below the other"],
    [`${"-".repeat(8000)}1`,                       "syntax: more than 500 operators one below the other"],
  ];
  for (const [text, outcome] of table) {
    const formula = read(text);
    assert.equal("fault" in formula ? `${formula.fault}: ${formula.text}` : formula.names.join(" "), outcome, text.slice(0, 60));
  }
});

test("an error is worth 0 and has a text", () => {
  // biome-ignore format: a table
  const table: readonly (readonly [text: string, outcome: string])[] = [
    ["1/(ncpus-4)",     "0 division by zero"],
    ["1//0",            "0 division by zero"],
    ["5 % 0",           "0 division by zero"],
    ["sqrt(-ncpus)",    "0 math domain error"],
    ["log(0)",          "0 math domain error"],
    ["(-8)**.5",        "0 math domain error"],
    ["0**-1",           "0 0.0 cannot be raised to a negative power"],
    ["10.0**400",       "0 math range error"],
    ["1e308*10",        "0 math range error"],
    ["0*10**400",       "0 math range error"],
    ["factorial(1.5)",  "0 factorial() only accepts integral values"],
    ["1 or 1/0",        "1"],
    ["0 and 1/0",       "0"],
    ["1 if 1 else 1/0", "1"],
    ["3 < 2 < 1/0",     "0"],
  ];
  for (const [text, outcome] of table) {
    const { value, error } = worth(read(text) as Formula);
    assert.equal(error === undefined ? String(value) : `${value} ${error}`, outcome, text);
  }
});

test("values in logs have at most four decimals", () => {
  const texts = [10, -2, 0.1253, 0.50042, 0.36, 1e21, -0.00001, 0, 60.38159, 100, 0.9999999].map(formulaText);
  assert.deepEqual(texts, ["10", "-2", "0.1253", "0.5004", "0.36", "1e+21", "0", "0", "60.3816", "100", "1"]);
});

const INPUTS: Readonly<Record<string, number>> = {
  ncpus: 4,
  walltime: 3600,
  e: 2.5,
  eligible_time: 90,
  queue_priority: -3,
  job_priority: 0,
};
const worth = (formula: Formula): ReturnType<ReturnType<typeof compileFormula>> =>
  compileFormula(formula)(formula.names.map((name) => INPUTS[name] ?? 0));

/** Random formulas as text, with operators of all ranks next to one another: precedence is Python's or the values differ. */
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
      // Whole numbers of any length are Python's alone: where ours end, so do its floats.
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

test("what grows with time has bounds that are worth something", () => {
  // biome-ignore format: a table
  const table: readonly (readonly [text: string, low: number, high: number])[] = [
    ["eligible_time * 0.5 + ncpus",                            49, 54],
    ["ncpus * eligible_time**2 / walltime**3",                 4 * 90 ** 2 / 3600 ** 3, 4 * 100 ** 2 / 3600 ** 3],
    ["min(50, eligible_time / 2)",                             45, 50],
    ["1000 if eligible_time > 200 else queue_priority",        -3, -3],
    ["pow(2, -eligible_time / 100)",                           2 ** -1, 2 ** -0.9],
    ["sqrt(eligible_time) - log(eligible_time)",               Math.sqrt(90) - Math.log(100), 10 - Math.log(90)],
  ];
  for (const [text, low, high] of table) {
    const formula = read(text) as Formula;
    const found = boundFormula(
      formula,
      formula.names.map((name) => ({ low: INPUTS[name] as number, high: (INPUTS[name] as number) + (name === "eligible_time" ? 10 : 0) })),
    );
    assert.ok(Math.abs(found.low - low) < 1e-6 && Math.abs(found.high - high) < 1e-6, `${text}: ${found.low} to ${found.high}`);
  }
});
