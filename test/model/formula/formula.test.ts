// Formulas: what is accepted, its value, and its bounds. formula-properties.test.ts compares with Python and tests arbitrary
// texts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Formula, formulaText } from "#model/formula/formula.ts";
import { boundFormula } from "#model/formula/formula-bounds.ts";
import { INPUTS, read, worth } from "./formula-bed.ts";

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

test("values in logs have the decimals they have, at most four", () => {
  const texts = [10, -2, 0.1253, 0.50042, 0.36, 1e21, -0.00001, 0, 60.38159, 100, 0.9999999, 0.832962].map(formulaText);
  assert.deepEqual(texts, ["10", "-2", "0.1253", "0.5004", "0.36", "1e+21", "0.0000", "0", "60.3816", "100", "1.0000", "0.8330"]);
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
