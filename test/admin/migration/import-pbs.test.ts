// The configuration of another PBS is tried in memory: each line of a dump is taken, changed or refused.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readDump } from "../../../src/admin/migration/dump.ts";
import { importPbs } from "../../../src/admin/migration/import-pbs.ts";
import { SHARED, whyNoShared } from "../../live/shared.ts";

const scratch = mkdtempSync(join(tmpdir(), "partita-import-"));
after(() => rmSync(scratch, { recursive: true }));

type Report = {
  readonly taken: number;
  readonly changed: number;
  readonly refused: number;
  readonly lines: readonly { readonly line: number; readonly text: string; readonly outcome: string; readonly says: string }[];
};

async function check(...dumps: string[]): Promise<Report> {
  const noComplex = () => assert.fail("--check needs no complex");
  const { text, status } = await importPbs(noComplex, { dumps, check: true, json: true, all: false });
  const report = JSON.parse(text) as Report;
  assert.equal(status, report.refused > 0 ? 1 : 0);
  return report;
}

async function outcomes(dump: string): Promise<string[]> {
  const file = join(scratch, "dump");
  writeFileSync(file, dump);
  return (await check(file)).lines.map(({ line, outcome, says }) => `${line} ${outcome}${says === "" ? "" : `: ${says}`}`);
}

test("says for each line whether it is taken, changed or refused", async () => {
  const dump = [
    "# comment",
    "create queue fast",
    "set queue fast queue_type = Execution",
    "set queue fast enabled = True",
    "set queue fast colour = red",
    "set server managers = root@*",
    "set server managers += ann@login",
    "set server max_queued = [o:PBS_ALL=10000]",
    "set queue slow enabled = True",
    "create resource gpu_type type = string",
    "set server resources_available.gpu_type = a100",
    "frobnicate queue fast",
  ].join("\n");
  assert.deepEqual(await outcomes(dump), [
    "2 taken",
    "3 taken",
    "4 taken",
    "5 refused: Undefined attribute",
    "6 taken",
    "7 taken",
    "8 taken",
    "9 refused: Unknown queue",
    "10 taken",
    "11 taken",
    "12 refused: Illegal operation: frobnicate: Try 'help' if you are having trouble.",
  ]);
});

test("does not take over states of vnodes that moms and jobs make", async () => {
  const dump = ["create node a", "set node a state = job-busy", "set node a state += offline", "set node a state = down,offline"].join(
    "\n",
  );
  assert.deepEqual(await outcomes(dump), [
    "1 taken",
    "2 changed: moms and jobs make this state, so it is not taken over",
    "3 taken",
    "4 changed: only offline is taken over",
  ]);
});

test("puts values with blanks into quotation marks", async () => {
  assert.deepEqual(await outcomes("create node a\nset node a comment = node down: closed\n"), ["1 taken", "2 taken"]);
});

test("reads hooks with their contents, and continued lines", async () => {
  const contents = Buffer.from("import pbs\npbs.event().accept()\n").toString("base64");
  const dump = `create hook h1\nset hook h1 event = queuejob\nimport hook h1 application/x-python base64 -\n${contents}\n\nset server \\\nscheduling = False\n`;
  assert.deepEqual(
    readDump(dump).map(({ line, contents }) => [line, contents]),
    [
      [1, ""],
      [2, ""],
      [3, `${contents}\n`],
      [6, ""],
    ],
  );
  assert.deepEqual(await outcomes(dump), ["1 taken", "2 taken", "3 taken", "6 taken"]);
});

test("a dump without requests, or without a file, is told", async () => {
  await assert.rejects(outcomes("# nothing\n"), /no request of qmgr is in it/);
  await assert.rejects(check(join(scratch, "missing")), /missing: ENOENT/);
});

const sites = join(SHARED, "sites");
test("refuses no line of real sites", { skip: whyNoShared() ?? false }, async () => {
  const small = await check(join(sites, "university-small.qmgr"));
  assert.deepEqual([small.taken, small.changed, small.refused], [137, 0, 0]);
  const large = await check(join(sites, "university-large.qmgr"), join(sites, "university-large.nodes"));
  assert.equal(large.refused, 0);
  assert.ok(large.lines.every(({ outcome, text }) => outcome === "taken" || / state = /.test(text)));
});
