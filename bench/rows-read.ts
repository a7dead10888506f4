// The time that the comparison of similar rows (src/store/alike-rows.ts) saves when a server reads its jobs: the same rows are
// read with it and with JSON.parse alone.

import { shared } from "#server/state/intern.ts";
import { jobData } from "#server/state/rows.ts";
import { alikeReader } from "#store/alike-rows.ts";
import type { Data } from "#store/store.ts";
import { addJob, harness } from "../test/server/harness.ts";
import { median, type Row } from "./row.ts";

const JOBS = 100_000;
const REPEATS = 5;

export function rowsReadRows(): Row[] {
  const texts = jobTexts();
  const read = (reader: () => (text: string) => Data): number => {
    const seconds = Array.from({ length: REPEATS }, () => {
      const begun = performance.now();
      const one = reader();
      const records = texts.map(one);
      if (records.length !== JOBS) throw new Error("rows are missing");
      return (performance.now() - begun) / 1000;
    });
    return median(seconds);
  };
  const plain = (text: string): Data => {
    const record = JSON.parse(text) as { [name: string]: unknown };
    for (const name in record) record[name] = shared(name, record[name]);
    return record;
  };
  const work = "100,000 rows of waiting jobs made into records";
  return [
    { work: `${work}, compared with the row before`, value: read(() => alikeReader(shared)), unit: "s", limit: null },
    { work: `${work}, each by JSON.parse`, value: read(() => plain), unit: "s", limit: null },
  ];
}

/** Rows as jobs of one user have them: two paths, a time and a rank differ. */
function jobTexts(): string[] {
  const h = harness();
  const variables = ["HOME", "LANG", "LOGNAME", "PATH", "MAIL", "SHELL", "WORKDIR", "SYSTEM", "QUEUE", "HOST"];
  const id = addJob(h, { Variable_List: variables.map((name) => `PBS_O_${name}=/home/alice/of/${name.toLowerCase()}`) });
  const made = h.core.state.jobs.get(id);
  if (made === undefined) throw new Error("the job is not there");
  const data = jobData(made);
  return Array.from({ length: JOBS }, (_, at) =>
    JSON.stringify({
      ...data,
      Output_Path: `svr:/home/alice/STDIN.o${at}`,
      Error_Path: `svr:/home/alice/STDIN.e${at}`,
      qtime: Number(data["qtime"]) + Math.floor(at / 5000),
      queue_rank: Number(data["queue_rank"] ?? 0) + at,
    }),
  );
}
