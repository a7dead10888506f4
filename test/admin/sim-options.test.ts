// Options of partita sim that are parsed without yargs have the same meaning as with yargs.

import assert from "node:assert/strict";
import { test } from "node:test";
import yargs from "yargs";
import { simCommand } from "#admin/sim/sim-command.ts";
import { optionsFault, plainOptions, SIM_OPTIONS, type SimOptions } from "#admin/sim/sim-options.ts";

/** The result of yargs, without the aliases that it adds. */
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

const DEFAULTS: SimOptions = { algo: "easy", engine: "pool", json: false };
const OF_A_TRACE = "goes with a trace, not with --live, --state or --save";
const OF_A_COMPLEX = "goes with --live or --state: a trace has no server whose settings could change";
// biome-ignore format: a table
const TOGETHER: readonly (readonly [options: Partial<SimOptions>, fault: string | null])[] = [
  [{ trace: "t.swf", procs: 5, picture: "p.svg", from: 3, colour: "user" }, null],
  [{ live: true, qmgr: ["x"], until: "1:00", picture: "p.svg", to: 4 }, null],
  [{ save: "f", live: true, reserve: ["x"] },                 null],
  [{ trace: "t.swf", procs: 5, qmgr: ["set queue q x=1"] },   `--qmgr ${OF_A_COMPLEX}`],
  [{ trace: "t.swf", procs: 5, schedConfig: ["a=b"] },        null],
  [{ save: "f", schedConfig: ["a=b"] },                       "--sched-config goes with a trace, --live or --state"],
  [{ trace: "t.swf", reserve: ["a=b"] },                      `--reserve ${OF_A_COMPLEX}`],
  [{ trace: "t.swf", until: "5" },                            `--until ${OF_A_COMPLEX}`],
  [{ save: "f", qmgr: ["set queue q x=1"] },                  `--qmgr ${OF_A_COMPLEX}`],
  [{ live: true, trace: "t.swf" },                            `the trace t.swf ${OF_A_TRACE}`],
  [{ state: "f", procs: 5 },                                  `--procs ${OF_A_TRACE}`],
  [{ state: "f", algo: "cons" },                              `--algo ${OF_A_TRACE}`],
  [{ live: true, engine: "cycle" },                           `--engine ${OF_A_TRACE}`],
  [{ live: true, out: "f" },                                  `--out ${OF_A_TRACE}`],
  [{ save: "f", picture: "p.svg" },                           "--picture goes with a trace, --live or --state"],
  [{ trace: "t.swf", procs: 5, from: 3 },                     "--from goes with --picture"],
  [{ live: true, colour: "queue" },                           "--colour goes with --picture"],
  [{ grid: "g.json", predictor: "tap", strategy: "fifo", workload: ["a=b"], picture: "p.svg", json: true }, null],
  [{ grid: "g.json", trace: "t.swf" }, "the trace t.swf does not go with --grid"],
  [{ grid: "g.json", live: true }, "--live does not go with --grid"],
  [{ trace: "t.swf", procs: 1, predictor: "tap" }, "--predictor goes with --grid"],
];

for (const [options, fault] of TOGETHER)
  test(`options of sim together: ${JSON.stringify(options)}`, () => assert.equal(optionsFault({ ...DEFAULTS, ...options }), fault));
