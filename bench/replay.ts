// Replays of a real trace by the scheduler's calendar (design.md 12): reading it included. The trace lies in the shared folder.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { type Algorithm, algorithmNamed } from "#replay/algorithm.ts";
import { replay } from "#replay/replay.ts";
import { parseTrace } from "#replay/trace.ts";
import { median, type Row } from "./row.ts";

const SHARED = process.env["PARTITA_SHARED"] ?? fileURLToPath(new URL("../../shared", import.meta.url));
const TRACE = join(SHARED, "workloads/traces/KTH-SP2-1996-2.1-cln.swf.gz");
const PROCS = 100;

/** No rows where the trace is not there. */
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
