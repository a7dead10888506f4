// Options of partita sim that are read without yargs mean what yargs reads.

import assert from "node:assert/strict";
import { test } from "node:test";
import yargs from "yargs";
import { simCommand } from "#admin/sim-command.ts";
import { plainOptions, SIM_OPTIONS } from "#admin/sim-options.ts";

/** What yargs makes of the words, without what it adds under other names. */
async function byYargs(words: readonly string[]): Promise<Record<string, unknown>> {
  let read: Record<string, unknown> = {};
  await yargs(["sim", ...words])
    .command({ ...simCommand, handler: (argv) => void (read = argv as unknown as Record<string, unknown>) })
    .strict()
    .parseAsync();
  const names = ["trace", ...Object.keys(SIM_OPTIONS)];
  return Object.fromEntries(names.filter((name) => read[name] !== undefined).map((name) => [name, read[name]]));
}

const PLAIN = [
  "trace.swf --procs 100",
  "/a/b.swf.gz --procs 100 --algo easy --out starts.csv",
  "--procs 5 --algo fcfs,easy,depth4 --json trace.swf",
  "--json --engine cycle --from 0 --to 86400 --picture ./p.svg 12",
  "trace.swf --live --state s.json --save t.json",
  "trace.swf --procs 100 --reservations weekly.txt",
];

for (const line of PLAIN)
  test(`plain options of sim: ${line}`, async () => {
    assert.deepEqual({ ...plainOptions(line.split(" ")) }, await byYargs(line.split(" ")));
  });

const NOT_PLAIN: readonly (readonly string[])[] = [
  [],
  ["--procs", "100"],
  ["a.swf", "b.swf"],
  ["a.swf", "--procs"],
  ["a.swf", "--procs", "1e2"],
  ["a.swf", "--procs", "0100"],
  ["a.swf", "--procs", "-1"],
  ["a.swf", "--procs=100"],
  ["a.swf", "--procs", "1", "--procs", "2"],
  ["a.swf", "--partition", "1=5"],
  ["a.swf", "--engine", "quick"],
  ["a.swf", "--no-json"],
  ["a.swf", "--help"],
  ["a.swf", "--trace", "b.swf"],
  ["a.swf", "--constructor", "1"],
  ["a.swf", "--out", ""],
  ["a.swf", "--out", "with blank"],
  ["--", "a.swf"],
  ["-h"],
];

for (const words of NOT_PLAIN) test(`left to yargs: sim ${words.join(" ")}`, () => assert.equal(plainOptions(words), null));
