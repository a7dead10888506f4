import assert from "node:assert/strict";
import { test } from "node:test";
import { parseCommOptions } from "#comm/options.ts";

test("pbs_comm: options that are and options that are not", () => {
  const rows: [line: string, parsed: ReturnType<typeof parseCommOptions>][] = [
    ["", { foreground: false, log_events: null }],
    ["-N", { foreground: true, log_events: null }],
    ["-r a:17001,b -t 4 -e 511", { foreground: false, log_events: 511 }],
    ["-e0x1ff -N", { foreground: true, log_events: 511 }],
    ["-t 0", "-t 0: must be a number from 1 to 999"],
    ["-t x", "-t x: must be a number from 1 to 999"],
    ["-e x", "-e x: must be a number"],
    ["-e", "option requires an argument -- 'e'"],
    ["-z", "invalid option -- 'z'"],
    ["x", "unexpected argument x"],
    ["-", "unexpected argument -"],
  ];
  for (const [line, parsed] of rows) assert.deepEqual(parseCommOptions(line.split(" ").filter((word) => word !== "")), parsed, line);
});
