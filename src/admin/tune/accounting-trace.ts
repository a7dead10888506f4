// The jobs of the accounting files of a complex as a trace: the records of type E.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { eachRecord, itemReader } from "#model/accounting/record-text.ts";
import { parseDuration } from "#model/values/duration.ts";
import type { TraceJob } from "#replay/trace.ts";
import { AdminError } from "../complex/complex-home.ts";

const ITEMS = ["ctime", "start", "end", "Resource_List.ncpus", "Resource_List.walltime", "user", "queue"] as const;
/** Files are named YYYYMMDD, also compressed by the site; only plain ones are read. */
const FILE = /^\d{8}$/;

/** Returns the jobs of all files of a directory, in the order of submission. Records without times or cpus are counted in `left_out`. */
export function jobsOfAccounting(directory: string): { readonly jobs: TraceJob[]; readonly left_out: number } {
  const files = readdirSync(directory)
    .filter((name) => FILE.test(name))
    .sort();
  if (files.length === 0) throw new AdminError(`${directory}: no accounting files (YYYYMMDD)`);
  const read = itemReader(ITEMS);
  const [users, queues] = [numbers(), numbers()];
  const jobs: TraceJob[] = [];
  let left_out = 0;
  for (const file of files) {
    const text = readFileSync(join(directory, file), "utf8");
    eachRecord(text, "E", (place) => {
      const [ctime, start, end, ncpus, walltime, user = "", queue = ""] = read(text, place);
      const run_s = Number(end) - Number(start);
      const est_s = walltime === undefined ? null : parseDuration(walltime);
      if (!(run_s > 0 && Number(ncpus) > 0 && Number(ctime) > 0)) left_out++;
      else {
        const limit_s = est_s === null || est_s <= 0 ? run_s : est_s;
        jobs.push({
          id: jobs.length + 1,
          submit_s: Number(ctime),
          procs: Number(ncpus),
          est_s: limit_s,
          run_s: Math.min(run_s, limit_s),
          partition: -1,
          user: users(user),
          queue: queues(queue),
        });
      }
    });
  }
  return { jobs: jobs.sort((a, b) => a.submit_s - b.submit_s), left_out };
}

/** Returns a function that gives each name its own number, from 1. */
function numbers(): (name: string) => number {
  const known = new Map<string, number>();
  return (name) => {
    let number = known.get(name);
    if (number === undefined) known.set(name, (number = known.size + 1));
    return number;
  };
}
