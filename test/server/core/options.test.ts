import assert from "node:assert/strict";
import { test } from "node:test";
import { parseOptions } from "#server/core/options.ts";

// biome-ignore format: a table
const GOOD: readonly [argv: string[], options: object][] = [
  [[],                                   { foreground: false, start: "warm" }],
  [["-N"],                               { foreground: true, start: "warm" }],
  [["-a", "false", "-t", "hot"],         { foreground: false, start: "hot", scheduling: false }],
  [["-aTrue"],                           { foreground: false, start: "warm", scheduling: true }],
  [["-A", "/a", "-L", "/l", "-d", "/h"], { foreground: false, start: "warm", accounting_file: "/a", log_file: "/l", home: "/h" }],
  [["-e", "0x7ff"],                      { foreground: false, start: "warm", log_events: 2047 }],
  [["-t", "create", "-N"],               { foreground: true, start: "create" }],
];
for (const [argv, options] of GOOD) {
  test(`pbs_server ${argv.join(" ")}`, () => assert.deepEqual(parseOptions(argv), { ok: true, options }));
}

// biome-ignore format: a table
const BAD: readonly [argv: string[], message: string][] = [
  [["-x"],           "pbs_server: invalid option -- 'x'"],
  [["-a"],           "pbs_server: option requires an argument -- 'a'"],
  [["-a", "maybe"],  "pbs_server: -a maybe: must be true or false"],
  [["-L", "log"],    "pbs_server: -L log: must be an absolute path"],
  [["-e", "many"],   "pbs_server: -e many: must be a number"],
  [["-t", "tepid"],  "pbs_server: -t tepid: must be one of hot, warm, cold, create, updatedb"],
  [["operand"],      "pbs_server: unexpected argument operand"],
  [["-p", "15001"],  "pbs_server: -p is not supported: ports and failover are set in pbs.conf"],
];
for (const [argv, message] of BAD) {
  test(`pbs_server ${argv.join(" ")} is refused`, () => assert.deepEqual(parseOptions(argv), { ok: false, message }));
}
