// Replays of a real trace by the scheduler's calendar, including the time to read it (docs/bench.md). The trace is in the
// shared folder.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { type Algorithm, algorithmNamed } from "#replay/algorithm.ts";
import { replay } from "#replay/replay.ts";
import { parseTrace } from "#replay/trace.ts";
import { SHARED } from "../test/live/shared.ts";
import { median, type Row } from "./row.ts";

const TRACE = join(SHARED, "workloads/traces/KTH-SP2-1996-2.1-cln.swf.gz");
const PROCS = 100;

/** There are no rows if the trace is missing. */
export function replayRows(): Row[] {
  if (!existsSync(TRACE)) return [];
  return (
    [
      ["easy", 0.5],
      ["cons", 2],
    ] as const
  ).map(([name, limit]) => {
    const seconds = Array.from({ length: 5 }, () => {
      const begun = performance.now();
      const jobs = parseTrace(gunzipSync(readFileSync(TRACE)).toString("utf8"), PROCS);
      replay({ jobs, pools: [{ procs: PROCS }], algorithm: algorithmNamed(name) as Algorithm });
      return (performance.now() - begun) / 1000;
    });
    return { work: `replay of 27,992 jobs, ${name}`, value: median(seconds), unit: "s", limit };
  });
}
