// What qmgr accepts, and the position of the caret otherwise (transcripts qmgr-syntax-errors, qmgr-stdin, server-limits).

import assert from "node:assert/strict";
import { test } from "node:test";
import { Lexer } from "chevrotain";
import fc from "fast-check";
import { parseRequest, REQUEST_LENGTH_MAX, RequestParser, WORD_LENGTH_MAX } from "#qmgr/language/grammar.ts";
import { NO_PENDING, splitRequests, takeEnd, takeLine } from "#qmgr/language/line-reader.ts";
import { type AttributeLookup, MODES } from "#qmgr/language/tokens.ts";

const ATTRIBUTES: Record<string, readonly string[]> = {
  server: ["comment", "max_run", "max_queued", "scheduling", "managers", "max_run_res"],
  queue: ["enabled", "started", "Priority", "queue_type", "max_run"],
  node: ["state", "comment"],
  sched: ["scheduling", "partition"],
};
const lookup: AttributeLookup = {
  isAttribute: (object, name) => ATTRIBUTES[object]?.includes(name) ?? false,
  isEntityLimit: (_object, name) => /^max_(run|queued)(_res)?$/.test(name),
};

const FAULTS: readonly (readonly [line: string, exit: number, caret: number | string])[] = [
  ["frobnicate queue workq", 1, "frobnicate"],
  ["Create queue q1", 1, "Create"],
  ["create", 2, "no-object"],
  ["create thing t1", 2, "thing"],
  ["create queue 1q", 3, 13],
  ["create queue q1 queue_type", 4, 26],
  ["create queue q1 queue_type=", 4, 27],
  ["set queue workq", 4, 15],
  ["set queue workq enabled", 4, 23],
  ["set queue workq enabled True", 4, 24],
  ["set queue workq enabled=True started=True", 4, 29],
  ["set queue workq enabled=True,", 4, 29],
  ["set queue workq, enabled=True", 3, 15],
  ["set queue workq@ enabled=True", 3, 15],
  ["set server comment='open", 4, 19],
  ["set server comment=a&b", 4, 19],
  ["set server comment='a&b'", 4, 19],
  ["unset queue workq enabled=True", 4, 26],
  ["unset queue workq", 4, 17],
  ["set server max_run=[u:PBS_GENERIC=3", 4, 35],
  ["set server max_run=[x:PBS_GENERIC=3]", 4, 20],
  ["set server max_run=[o:alice=3]", 4, 24],
  ["set server max_run = 5", 4, 21],
  ["set server max_run = [u:PBS_ALL=5]", 4, 26],
  ["active queue workq started", 4, 18],
  ["create queue four; create queue five", 4, 26],
  ["list queue one Priority # now", 4, 24],
  ["set server nosuch=1", 4, 18],
  ["unset server nosuch", 4, 19],
  ["e q workq", 4, 10],
  ["create resource 1x", 3, 16],
];

test("qmgr refuses what PBS refuses, with the caret where PBS puts it", () => {
  for (const [line, exit, caret] of FAULTS) {
    const parsed = parseRequest(line, lookup);
    assert.equal(parsed.ok, false, line);
    if (parsed.ok) continue;
    const { fault } = parsed;
    const seen = fault.kind === "syntax" ? fault.column : fault.kind === "no-object" ? "no-object" : fault.word;
    assert.deepEqual([fault.exit_code, seen], [exit, caret], line);
  }
});

const ATTRS: readonly (readonly [line: string, attrs: string])[] = [
  ["set queue workq Priority=+5", "Priority = +5"],
  ["set queue workq Priority*=5", "Priority* = 5"],
  ["s q q1 ENABLED=y,Started=1", "ENABLED = y|Started = 1"],
  ["set server comment = 'maintenance on Friday, 8:00'", "comment = maintenance on Friday, 8:00"],
  ['set server comment = "it\'s down"', "comment = it's down"],
  ["set server comment += ' and more'", "comment +=  and more"],
  ['set server comment = ""', "comment = "],
  ["set server comment=a'b c'd", "comment = ab cd"],
  ["set server managers -= bob@*", "managers -= bob@*"],
  ["set server max_queued += [g:staff=5],[p:apollo=3]", "max_queued += [g:staff=5]|[p:apollo = 3]"],
  ["set server max_queued += '[g:staff=5],[p:apollo=3]'", "max_queued += [g:staff=5],[p:apollo=3]"],
  ["set server max_run_res.ncpus = '[u:PBS_GENERIC=8], [o:PBS_ALL=64]'", "max_run_res.ncpus = [u:PBS_GENERIC=8], [o:PBS_ALL=64]"],
  ["set queue workq max_run=[u:a = 1] , Priority=2", "max_run = [u:a = 1]|Priority = 2"],
  ["list queue batch enabled,Priority", "enabled|Priority"],
  ["set server scheduling=True", "scheduling = True"],
];

test("qmgr splits attribute terms and values", () => {
  for (const [line, wanted] of ATTRS) {
    const parsed = parseRequest(line, lookup);
    assert.ok(parsed.ok && "attrs" in parsed.request, line);
    const terms = parsed.request.attrs.map(
      ({ name, resource, op, value }) =>
        `${name}${resource === undefined ? "" : `.${resource}`}${op === undefined ? "" : ` ${op} ${value}`}`,
    );
    assert.equal(terms.join("|"), wanted, line);
  }
});

const NAMES: readonly (readonly [line: string, names: string])[] = [
  ["list queue q1,q2@default,@active", "q1@|q2@default|@active"],
  ["list node 1node", "1node@"],
  ["list queue queue_type", ""],
  ["l sc default state", "default@"],
  ["list sched", ""],
  ["set server scheduling=True", ""],
  ["print hook state", "state@"],
];

test("qmgr reads name lists, and takes a third word that is an attribute as the start of the attribute list", () => {
  for (const [line, wanted] of NAMES) {
    const parsed = parseRequest(line, lookup);
    assert.ok(parsed.ok && "names" in parsed.request, line);
    assert.equal(parsed.request.names.map(({ name, server }) => `${name}@${server}`).join("|"), wanted, line);
  }
});

test("qmgr joins continued lines, drops comments and splits at semicolons outside quotes", () => {
  assert.deepEqual(splitRequests("create queue two queue_type=e; set queue two comment='a;b # c'   # trailing"), [
    "create queue two queue_type=e",
    "set queue two comment='a;b # c'   ",
  ]);
  assert.deepEqual(splitRequests("set queue one comment=a#b"), ["set queue one comment=a#b"]);
  let { pending } = takeLine(NO_PENDING, "set queue one \\");
  ({ pending } = takeLine(pending, "# a comment between"));
  const taken = takeLine(pending, "  enabled=True");
  assert.deepEqual(taken.requests, ["set queue one    enabled=True"]);
  assert.deepEqual(takeEnd(takeLine(NO_PENDING, "list server \\").pending), ["list server  "]);
});

test("qmgr never throws and never reports a caret outside the line, whatever is typed", () => {
  const words = fc.constantFrom(
    "set",
    "queue",
    "server",
    "list",
    "q1",
    "max_run",
    "=",
    "+=",
    "[u:a=1]",
    "'",
    '"',
    "&",
    ",",
    "@",
    ".",
    "#",
    "comment",
    "\u0007",
    "\\",
    "unset",
    "é",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ maxLength: 60 }),
        fc.array(words, { maxLength: 12 }).map((list) => list.join(" ")),
      ),
      (line) => {
        const parsed = parseRequest(line, lookup);
        if (!parsed.ok && parsed.fault.kind === "syntax")
          assert.ok(parsed.fault.column >= 0 && parsed.fault.column <= line.length + 1, line);
      },
    ),
    { numRuns: 2000 },
  );
});

test("chevrotain finds nothing wrong with the lexer's modes and the grammar", () => {
  new RequestParser({ check: true });
  const { lexerDefinitionErrors } = new Lexer(
    { modes: MODES, defaultMode: "verb" },
    { positionTracking: "onlyOffset", deferDefinitionErrorsHandling: true },
  );
  assert.deepEqual(
    lexerDefinitionErrors.map(({ message }) => message),
    [],
  );
});

const LONG = "x".repeat(WORD_LENGTH_MAX);
// biome-ignore format: a table
const LONG_WORDS: readonly (readonly [what: string, line: string, caret: number | null])[] = [
  ["a value of just the length",        `set server comment=${LONG}`,           null],
  ["a longer value",                    `set server comment=${LONG}x`,          19],
  ["quotes count",                      `set server comment='${LONG}'`,         19],
  ["a quote that is not closed",        `set server comment='${LONG}`,          19],
  ["blanks around limits count",        `set server max_run= [u:a=1]${" ".repeat(WORD_LENGTH_MAX)}`, 20],
  ["an attribute",                      `set server ${LONG}x=1`,                null],
  ["an attribute behind a name",        `set queue q ${LONG}x=1`,               12],
  ["a word behind delete",              `delete queue q ${LONG}x`,              15],
  ["a request",                         "set server ".padEnd(REQUEST_LENGTH_MAX + 1, "a=b,"), REQUEST_LENGTH_MAX],
];

test("words over the length that PBS takes are refused at their beginning", () => {
  for (const [what, line, caret] of LONG_WORDS) {
    const parsed = parseRequest(line, lookup);
    const seen = !parsed.ok && parsed.fault.kind === "syntax" && parsed.fault.word_too_long === true ? parsed.fault.column : null;
    assert.equal(seen, caret, what);
  }
});

// biome-ignore format: a table
const VALUES: readonly (readonly [text: string, value: string | number])[] = [
  ["a'b'c",          "abc"],
  [`"a'b"'c'`,       "a'b'c'"],
  [`'a''b'`,         "ab"],
  [`'x'y"z"`,        'xy"z"'],
  ["'a\nb'",         "a\nb"],
  ["a\nb",           19],
  ["'a\u0007'",      19],
  ["a\tb",           21],
  ["a&",             19],
  ["'' ",            ""],
  ["'open \"too\"",   19],
];

test("the first quote character of a value is the only one for it, and white space of any kind stands in quotes", () => {
  for (const [text, wanted] of VALUES) {
    const parsed = parseRequest(`set server comment=${text}`, lookup);
    const seen = parsed.ok ? "attrs" in parsed.request && parsed.request.attrs[0]?.value : "column" in parsed.fault && parsed.fault.column;
    assert.equal(seen, wanted, JSON.stringify(text));
  }
});

/** Requests that force a parser to backtrack or to keep many rules open. */
const HOSTILE: { readonly [what: string]: (n: number) => string } = {
  terms: (n) => `set server ${"a=b,".repeat(n / 4)}`,
  attributes: (n) => `list server ${"a,".repeat(n / 2)}`,
  names: (n) => `list queue ${"a,".repeat(n / 2)}`,
  servers: (n) => `list queue ${"@".repeat(n)}`,
  quotes: (n) => `set server comment=${"'x'".repeat(n / 3)}`,
  "open quotes": (n) => `set server comment=${"'x' \"".repeat(n / 5)}`,
  limits: (n) => `set server max_run=${"[u:a=1],".repeat(n / 8)}`,
  blanks: (n) => `set server comment${" ".repeat(n)}=${" ".repeat(n)}`,
  signs: (n) => `set server ${"+".repeat(n)}${"=".repeat(n)}`,
  "bad characters": (n) => `set server comment=${"&".repeat(n)}`,
  words: (n) => `import hook h ${"w ".repeat(n / 2)}`,
};

test("the cost of a request grows with its length, not with its square", () => {
  const cost = (line: string): number => {
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 2; round++) {
      const before = process.cpuUsage();
      parseRequest(line, lookup);
      const { user, system } = process.cpuUsage(before);
      least = Math.min(least, (user + system) / 1000);
    }
    return least;
  };
  for (const [what, text] of Object.entries(HOSTILE)) {
    const [short_ms, long_ms] = [cost(text(5_000)), cost(text(80_000))];
    assert.ok(long_ms < 64 * Math.max(short_ms, 5), `${what}: 16 times the length took ${long_ms} ms after ${short_ms} ms`);
  }
});
