// Admission rules: they change, default or refuse campaigns, and can do nothing else.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { admission } from "#grid/shell/admission.ts";
import { type Grid, startGrid } from "./bed.ts";

const NOBODY = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : null;
const JDL = { name: "c", nb_jobs: 3, exec_file: "/bin/true", clusters: { here: {} } };

/** Rules in a directory of their own, and what they say about a campaign. */
function rules(t: TestContext, texts: Readonly<Record<string, string>>) {
  const directory = mkdtempSync(join(tmpdir(), "partita-rules-"));
  const notes: string[] = [];
  const checks = admission({ directory, nobody: NOBODY, note: (text) => notes.push(text) });
  t.after(() => {
    checks.close();
    rmSync(directory, { recursive: true, force: true });
  });
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(directory, name), text);
  return { notes, check: (jdl: string) => checks.check({ kind: "grid-submit", jdl }, "anna", 3) };
}

test("rules run in the order of their names; each may change, default or refuse", async (t) => {
  const { check } = rules(t, {
    "20-limit.js": "if (campaign.jdl.walltime > 7200) refuse(`${campaign.user} may not ask for ${campaign.jdl.walltime} s`);",
    "10-default.js": "campaign.jdl.walltime ??= 600; if (campaign.jobs < 10) campaign.type = 'test'; delete campaign.jdl.project;",
    README: "not a rule",
  });
  const admitted = await check(JSON.stringify({ ...JDL, project: "p" }));
  assert.ok("jdl" in admitted);
  assert.deepEqual([JSON.parse(admitted.jdl), admitted.type], [{ ...JDL, walltime: 600 }, "test"]);
  assert.deepEqual(await check(JSON.stringify({ ...JDL, walltime: 9999 })), { refused: "anna may not ask for 9999 s" });
});

test("a campaign that no rule changes keeps its text", async (t) => {
  const text = JSON.stringify(JDL, null, 3);
  assert.deepEqual(await rules(t, {}).check(text), { kind: "grid-submit", jdl: text });
  assert.deepEqual(await rules(t, { "a.js": "1" }).check(text), { kind: "grid-submit", jdl: text });
});

const FAILING: readonly [what: string, rule: string, why: RegExp][] = [
  ["loops", "for (;;);", /did not end within 5 s/],
  ["loops in a conversion", "campaign.jdl = { toJSON() { for (;;); } };", /did not end within 5 s/],
  ["reads a file by import", "import('node:fs').then(() => 0); throw new Error('no import'); ", /no import/],
  ["reads a file by require", "require('node:fs').readFileSync('/etc/passwd')", /require is not defined/],
  ["looks for the process", "process.exit(0)", /process is not defined/],
  ["escapes by a constructor", "refuse.constructor('return process')().exit()", /Code generation from strings disallowed/],
  ["opens a socket", "fetch('http://127.0.0.1:1/')", /fetch is not defined/],
  ["has a fault", "campaign.jdl.clusters.there.walltime = 1", /Cannot set properties of undefined/],
  ["is no JavaScript", "if (", /Unexpected end of input/],
  ["gives no campaign", "campaign.jdl = 7", /verdict is not understood/],
  ["takes all memory", "const all = []; for (;;) all.push(new Array(1e6).fill(campaign));", /ended|did not end/],
];
for (const [what, rule, why] of FAILING)
  test(`a rule that ${what} refuses the campaign, and the next campaign is checked as ever`, async (t) => {
    const { check, notes } = rules(t, { "rule.js": `if (campaign.jdl.name === "bad") { ${rule} }` });
    const answer = await rules(t, { "rule.js": rule }).check(JSON.stringify(JDL));
    assert.ok("refused" in answer, JSON.stringify(answer));
    assert.match(answer.refused, /^the admission rule rule\.js failed, so nothing is admitted: /);
    assert.match(answer.refused, why);
    if (what !== "is no JavaScript") {
      assert.ok("refused" in (await check(JSON.stringify({ ...JDL, name: "bad" }))));
      assert.match(notes[0] ?? "", /^admission rule rule\.js failed: /);
      assert.ok("jdl" in (await check(JSON.stringify(JDL))));
    }
  });

test("a rule has no way to files and sockets, also by what the context leaves", async (t) => {
  let calls = 0;
  const server = createServer(() => calls++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const names =
    "Object.getOwnPropertyNames(globalThis).filter((name) => /^(require|process|fetch|Worker|WebSocket|Buffer|setTimeout|setInterval|global|module)$/.test(name))";
  const answer = await rules(t, { "a.js": `refuse(JSON.stringify(${names}))` }).check(JSON.stringify(JDL));
  assert.deepEqual(answer, { refused: "[]" });
  assert.equal(calls, 0);
});

test("gridsub tells the reason of a refusal, and gridstat shows what a rule has changed", async () => {
  const grid: Grid = startGrid();
  after(() => grid.stop());
  const directory = join(grid.home, "pbs/grid_priv/admission_rules");
  assert.ok(existsSync(join(grid.home, "pbs/grid_priv")));
  mkdirSync(directory);
  writeFileSync(join(directory, "a.js"), 'if (campaign.jobs > 2) refuse("at most 2 jobs"); campaign.jdl.walltime = "00:07:00";');
  grid.must("gridclusters", ["--add", "here", "--type", "partita", "--conf", join(grid.home, "pbs.conf")]);
  writeFileSync(join(grid.work, "c.json"), JSON.stringify(JDL));
  const { status, stderr } = grid.run("gridsub", ["c.json"]);
  assert.notEqual(status, 0);
  assert.match(stderr, /at most 2 jobs/);
  const id = grid.submit({ ...JDL, nb_jobs: 2 });
  assert.match(grid.must("gridstat", ["-J", String(id)]), /00:07:00/);
});
