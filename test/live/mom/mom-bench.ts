// Jobs a second through mom, starter and file agent alone: `node test/live/mom/mom-bench.ts [user|system] [USER] [JOBS]
// [AT-ONCE]`. Prints one line of JSON. Measured: the time from the first start to the last obit, including the delivery of
// output files. Not measured: server and scheduler, and their share of the processors.

import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import type { MomJob } from "#protocol/mom-link.ts";
import { makeBed } from "../mom-bed.ts";

const [mode = "user", user = userInfo().username, count = "1000", at_once = "64"] = process.argv.slice(2);
const bed = await makeBed({ mode: mode === "system" ? "system" : "user", user });
try {
  await bed.launch();
  const warm = bed.job({ argv: ["/bin/true"] });
  bed.start(warm);
  await bed.obit(warm);
  const jobs = Array.from({ length: Number(count) }, () => bed.job({ argv: ["/bin/true"] }));
  const begin = bed.said.length;
  const cpu = cpuSeconds();
  const from_ms = performance.now();
  let next = 0;
  let seen = begin;
  let done = 0;
  const more = (limit: number): void => {
    const batch: MomJob[] = [];
    while (next < jobs.length && next - done < limit) batch.push(jobs[next++] as MomJob);
    if (batch.length > 0) bed.start(...batch);
  };
  more(Number(at_once));
  while (done < jobs.length) {
    await new Promise((resolve) => setImmediate(resolve));
    const acks = [];
    for (; seen < bed.said.length; seen++) {
      const each = bed.said[seen];
      if (each?.type !== "mom-obit") continue;
      if (each.data.exit_status !== 0 || each.data.stageout_status !== 1) throw new Error(JSON.stringify(each.data));
      done++;
      acks.push({ job: each.data.job, run_count: each.data.run_count });
    }
    if (acks.length === 0) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      continue;
    }
    bed.send("mom-obit-ack", { jobs: acks });
    more(Number(at_once));
  }
  const wall_s = (performance.now() - from_ms) / 1000;
  const after = cpuSeconds();
  const used = Object.fromEntries(Object.entries(after).map(([name, value]) => [name, Number((value - (cpu[name] ?? 0)).toFixed(2))]));
  console.log(
    JSON.stringify({
      mode,
      jobs: jobs.length,
      at_once: Number(at_once),
      wall_s: Number(wall_s.toFixed(2)),
      jobs_per_s: Math.round(jobs.length / wall_s),
      cpu_s: used,
      load: readFileSync("/proc/loadavg", "latin1").split(" ")[0],
    }),
  );
} finally {
  await bed.close();
}

/** cpu seconds so far of the participating processes; starter: including its jobs. */
function cpuSeconds(): { [name: string]: number } {
  const of = (pid: number, children: boolean): number => {
    const field = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
    const ticks = Number(field[11]) + Number(field[12]) + (children ? Number(field[13]) + Number(field[14]) : 0);
    return ticks / 100;
  };
  const children = readFileSync(`/proc/${bed.pid}/task/${bed.pid}/children`, "latin1").trim().split(" ").map(Number);
  const agent = children.find((pid) => readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("file-agent")) ?? 0;
  return {
    mom: of(bed.pid, false),
    starter: of(bed.starter_pid, false),
    jobs: of(bed.starter_pid, true) - of(bed.starter_pid, false),
    agent: of(agent, false),
  };
}
