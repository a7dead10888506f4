// Words that are not options of qmgr.

import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "#qmgr/main.ts";
import { runCommand } from "../cli/fake-complex.ts";

const USAGE = "Usage: qmgr [-a] [-c command] [-e] [-n] [-z] [server...]\n       qmgr --version\n";

// biome-ignore format: one row a case
const BAD: readonly (readonly [words: string, text: string])[] = [
  ["-q",    `qmgr: invalid option -- 'q'\n${USAGE}`],
  ["-c",    `qmgr: option requires an argument -- 'c'\n${USAGE}`],
  ["-z -q", "qmgr: invalid option -- 'q'\n"],
];

for (const [words, text] of BAD)
  test(`qmgr ${words}: what getopt says is told, with -z too, which silences the usage`, async () => {
    const ran = await runCommand(run, words.split(" "));
    assert.deepEqual([ran.text, ran.status], [text, 1]);
  });
