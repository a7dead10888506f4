// The figures of `npm run house`, over small trees.

import assert from "node:assert/strict";
import { test } from "node:test";
import { coreDrivers } from "../../scripts/house/drivers.mjs";
import { PROGRAM_SOURCES, unusedExports } from "../../scripts/house/exports.mjs";
import { floorsOf } from "../../scripts/house/folders.mjs";
import { arrowsUp, cyclesOf, foldersByFiles, mutualPairs } from "../../scripts/house/imports.mjs";
import { strayParsers } from "../../scripts/house/request-texts.mjs";
import { filesOfSubmission } from "../../scripts/house/submission.mjs";
import { sourceTexts } from "../../scripts/house/texts.mjs";

/** Each line: `file: imported imported~`; `~` marks an import of types alone. */
function tree(text: string) {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [path = "", rest = ""] = line.trim().split(":");
      const words = rest.split(" ").filter(Boolean);
      return { path, imports: words.map((word) => ({ path: word.replace("~", ""), typeOnly: word.endsWith("~") })) };
    });
}

const HOUSE = tree(`
  src/a/main.ts: src/a/top/x.ts
  src/a/top/x.ts: src/a/low/y.ts
  src/a/top/z.ts:
  src/a/low/y.ts: src/a/top/z.ts~ src/a/main.ts
`);

test("arrows run up when a lower floor imports a higher one, or the folder's own files above all floors", () => {
  const floors = new Map([["src/a", ["top", "low"]]]);
  assert.deepEqual(arrowsUp(HOUSE, "src/a", floors), ["src/a/low/y.ts -> src/a/top/z.ts", "src/a/low/y.ts -> src/a/main.ts"]);
  assert.equal(arrowsUp(HOUSE, "src/b", floors), undefined);
  const own_lowest = new Map([["src/a", ["top", "low", "."]]]);
  assert.deepEqual(arrowsUp(HOUSE, "src/a", own_lowest), ["src/a/main.ts -> src/a/top/x.ts", "src/a/low/y.ts -> src/a/top/z.ts"]);
});

test("folders: the fullest first; pairs that import each other", () => {
  assert.deepEqual(foldersByFiles(HOUSE)[0], { folder: "src/a/top", files: 2 });
  assert.deepEqual(mutualPairs(HOUSE), ["src/a/low <-> src/a/top"]);
});

test("cycles: with types and without, two that share no file are two", () => {
  assert.deepEqual(cyclesOf(HOUSE, { withTypes: true }), [["src/a/low/y.ts", "src/a/main.ts", "src/a/top/x.ts"]]);
  const two = tree("a.ts: b.ts\nb.ts: a.ts~\nc.ts: d.ts a.ts\nd.ts: c.ts");
  assert.deepEqual(
    cyclesOf(two, { withTypes: true }),
    [
      ["c.ts", "d.ts"],
      ["a.ts", "b.ts"],
    ].sort(),
  );
  assert.deepEqual(cyclesOf(two, { withTypes: false }), [["c.ts", "d.ts"]]);
});

test("the floors of a README are the first words of its block, the highest first", () => {
  assert.deepEqual(floorsOf("# x\n\n```floors\nshell/    sockets\nstate     objects\n```\n"), ["shell", "state"]);
  assert.equal(floorsOf("# x\n```\nshell\n```\n"), undefined);
});

test("parsers of request texts: cuts outside the folder that owns them count, other grammars do not", () => {
  const text = [
    'const hosts = job.attrs.exec_host.split("+").map(hostOf);',
    "const first = /^\\(?([^:()+]+)/.exec(exec_vnode)?.[1];",
    'const spread = exec_host.includes("+");',
    "const asks = /:aoe=/.test(schedselect);",
    '// a comment may say split("+")',
    'const words = line.split(" ");',
  ].join("\n");
  assert.deepEqual(
    strayParsers([{ path: "src/sched/x.ts", text }]).map((each: string) => each.split(" ")[0]),
    ["src/sched/x.ts:1", "src/sched/x.ts:2", "src/sched/x.ts:3", "src/sched/x.ts:4"],
  );
  assert.deepEqual(strayParsers([{ path: "src/model/request/x.ts", text }]), []);
  assert.deepEqual(strayParsers([{ path: "src/model/values/duration.ts", text }]), []);
});

test("src/model/request alone parses select, place, nodes, exec_vnode and exec_host", () => {
  const texts = sourceTexts("src");
  assert.ok(texts.length > 500, "the sources are read");
  assert.deepEqual(
    strayParsers(texts),
    [],
    "use src/model/request; a text of another grammar: OTHER_GRAMMARS of scripts/house/request-texts.mjs",
  );
});

test("a driver makes a core or takes batches out of it; the file that defines it is none", () => {
  const files = [
    { path: "src/server/core/core.ts", text: `export function ${"createCore"}(state) {}` },
    { path: "src/sim/server-process.ts", text: `const core = ${"createCore"}(state);` },
    { path: "test/server/harness.ts", text: `const batch = h.${"core"}.take();` },
    { path: "src/sched/cycle/cycle.ts", text: "yield this.#parts.take();" },
  ];
  assert.deepEqual(coreDrivers(files), ["src/sim/server-process.ts", "test/server/harness.ts"]);
});

test("the server's core has one driver, so that what is simulated and tested is what runs", () => {
  const texts = sourceTexts("src", "test", "bench");
  assert.deepEqual(coreDrivers(texts), ["src/server/driver/server-driver.ts"], "use ServerDriver over ports of your own");
});

test("unused exports: values that no other file names, but for types, entries and what a namespace or a dynamic import may mean", () => {
  const a = "./a.ts";
  const files = [
    {
      path: "src/a.ts",
      text: "export const ONE = 1;\nexport function two() {}\nexport type Three = 3;\nexport class Four {}\nexport { five };",
    },
    { path: "src/b.ts", text: `import { ONE as one, type Three } from "${a}";\nexport const run = one;` },
    { path: "src/c.ts", text: `const { Four } = await import("${a}");\nexport const run = Four;` },
  ];
  assert.deepEqual(unusedExports(files, new Set(["src/b.ts"])), ["src/a.ts two", "src/a.ts five", "src/c.ts run"]);
});

test("every exported value is imported by another file", () => {
  assert.deepEqual(
    unusedExports(sourceTexts("src", "test", "bench", "scripts"), PROGRAM_SOURCES),
    [],
    "take away `export`, or the whole of it where its own file does not use it",
  );
});

/** A new file on this way needs a reason. */
const SUBMISSION_FILES_MAX = 30;

test("a submitted job passes the gate, its handler and the rows, but no other handler; the list is the same on every run", async () => {
  const files = await filesOfSubmission();
  for (const path of ["driver/gate.ts", "requests/job/queue-job.ts", "state/apply.ts", "state/rows.ts", "scheds/mirror.ts"])
    assert.ok(files.includes(`src/server/${path}`), path);
  assert.ok(files.length <= SUBMISSION_FILES_MAX, `${files.length} files`);
  const handlers = files.filter((path) => path.startsWith("src/server/requests/") && !path.endsWith("/index.ts"));
  assert.deepEqual(handlers, ["src/server/requests/job/queue-job.ts"]);
  assert.deepEqual(await filesOfSubmission(), files);
});
