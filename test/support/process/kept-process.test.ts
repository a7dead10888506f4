// A helper process that a daemon keeps running.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { keepProcess } from "#support/process/kept-process.ts";

test("a process that the system does not start is a line in the log, and no end of the daemon", () => {
  const said: string[] = [];
  // Node.js throws this error as it throws that of a system without memory for a process.
  const kept = keepProcess({ program: "/nothing", name: "no\0name", order: {}, isWanted: () => true, say: (text) => said.push(text) });
  kept.close();
  assert.match(said.join(), /^no.name cannot be started: .*null bytes/);
});

test("the process gets its order, and is started again when it has ended", async () => {
  const directory = mkdtempSync(join(tmpdir(), "partita-kept-"));
  const program = join(directory, "program.mjs");
  writeFileSync(program, 'process.stdin.once("data", (text) => { console.log("got " + text.toString().trim()); process.exit(3); });');
  const said: string[] = [];
  try {
    await new Promise<void>((resolve) => {
      const kept = keepProcess({
        program,
        name: "helper",
        order: { a: 1 },
        isWanted: () => true,
        say(text) {
          said.push(text);
          if (said.length === 4) {
            kept.close();
            resolve();
          }
        },
      });
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
  const each = ['got {"a":1}', "helper ended with 3 and is started again"];
  assert.deepEqual(said, [...each, ...each]);
});
