// Words that do not belong in a directive: every verb, every type of object, every kind of stray word. A malformed directive is
// a syntax error and sends nothing to the server (docs/reference/qmgr.md 3, 4).

import assert from "node:assert/strict";
import { test } from "node:test";
import { QmgrSession } from "#qmgr/session/session.ts";

/** A correct directive by verb and object. attr: a settable attribute of the object. */
const OBJECTS = [
  { word: "server", name: "", set: "comment = x", attr: "comment" },
  { word: "queue", name: "zz", set: "comment = x", attr: "comment" },
  { word: "queues", name: "zz", set: "Priority = 1", attr: "Priority" },
  { word: "node", name: "n1", set: "comment = x", attr: "comment" },
  { word: "sched", name: "s1", set: "comment = x", attr: "comment" },
  { word: "resource", name: "r1", set: "flag = h", attr: "flag" },
  { word: "hook", name: "h1", set: "order = 2", attr: "order" },
  { word: "pbshook", name: "h1", set: "order = 2", attr: "order" },
] as const;
type Row = (typeof OBJECTS)[number];

/** The words of a correct directive after the name. */
const RIGHT: Record<string, (row: Row) => string> = {
  create: (row) => row.set,
  set: (row) => row.set,
  unset: (row) => row.attr,
  delete: () => "",
  list: (row) => row.attr,
  print: (row) => row.attr,
  active: () => "",
  import: () => "application/x-python default f.py",
  export: () => "application/x-python default f.py",
};

/** Stray words after a correct directive: plain words, attributes, terms, separators. */
const STRAY = ["now", "now please", "comment", "partition", "-a", "= x", "enabled=True", ",", ", ,", "'quoted words'", '"', "&"];

/** Runs a directive in a session whose server accepts everything. Returns the requests and the output. */
async function run(line: string): Promise<{ readonly status: number; readonly asked: readonly object[]; readonly text: string }> {
  const asked: object[] = [];
  let text = "";
  const write = (part: string): void => void (text += part);
  const take = async (request: object) => {
    asked.push(request);
    return { ok: true as const, items: [], content: "" };
  };
  const server = { manage: take, importHook: take, exportHook: take, status: take };
  const world = {
    out: write,
    err: write,
    ctime: String,
    stdinIsTty: true,
    closedFormulaFile: () => null,
    history: () => [],
    hookFiles: { read: async () => ({ content: "" }), write: async () => ({}) },
    connect: async () => server,
  };
  const session = new QmgrSession(world as never, { abort: false, echo: false, parseOnly: false, silent: false }, []);
  const { status } = await session.run(line);
  return { status, asked, text };
}

/** import and export apply to hooks only. The grammar accepts creation and deletion of a server; the server refuses them. */
const applies = (verb: string, row: Row): boolean => (verb !== "import" && verb !== "export") || row.word.endsWith("hook");

for (const verb of Object.keys(RIGHT)) {
  test(`qmgr ${verb}: stray words after a directive of any object are refused, and nothing is asked of the server`, async () => {
    for (const row of OBJECTS) {
      if (!applies(verb, row)) continue;
      const line = [verb, row.word, row.name, (RIGHT[verb] as (row: Row) => string)(row)].filter((word) => word !== "").join(" ");
      const right = await run(line);
      assert.ok(!right.text.includes("Syntax error"), `${line}: ${right.text}`);
      for (const stray of STRAY) {
        // A further attribute after a comma is not a stray word, and active server accepts names.
        const wrong = `${line} ${stray}`;
        if (verb === "active" && row.name === "" && /^[a-z]+$/.test(stray)) continue;
        if (verb === "delete" && row.name === "" && /^[a-z]+$/.test(stray) && stray !== "comment") continue;
        const seen = await run(wrong);
        assert.deepEqual(seen.asked, [], wrong);
        if (verb === "import" || verb === "export")
          assert.deepEqual([seen.status, seen.text], [1, `hook ${verb} command has too many arguments\n`]);
        else {
          assert.ok(seen.status === 3 || seen.status === 4, `${wrong}: exit ${seen.status}`);
          assert.match(seen.text, /^qmgr: Syntax error\n.*\n *\^\n$/, wrong);
        }
      }
    }
  });
}

const CARETS: readonly (readonly [line: string, caret: string])[] = [
  ["delete queue zz now", "                ^"],
  ["delete sched zz partition", "                ^"],
  ["delete sched partition", "             ^"],
  ["delete node n1, n2", "              ^"],
  ["delete resource r1 type", "                   ^"],
  ["delete hook h1 enabled=false", "               ^"],
  ["d q zz = x", "       ^"],
];

for (const [line, caret] of CARETS)
  test(`qmgr -c "${line}" marks the first word that does not belong there`, async () => {
    const { status, text, asked } = await run(line);
    assert.deepEqual([status > 2, text, asked], [true, `qmgr: Syntax error\n${line}\n${caret}\n`, []]);
  });
