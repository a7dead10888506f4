// A service module of a site: writes figures of the last cycle as a text file that a collector of metrics picks up.
//
//   modules: reservations limits time resources backfill cycle-metrics.mjs
//   cycle-metrics.file: /var/lib/node_exporter/pbs_sched.prom

import { rename, writeFile } from "node:fs/promises";

export default function cycleMetrics({ options, sched }) {
  const file = options.get("file");
  if (file === undefined) throw new Error("cycle-metrics.file is not set");
  let cycles = 0;
  let started = 0;

  return {
    kind: "service",
    async cycle({ universe, cycle_ms, jobs_started }) {
      cycles++;
      started += jobs_started;
      const figures = { cycles, started, cycle_ms, jobs: universe.jobs.size };
      const lines = Object.entries(figures).map(([name, value]) => `pbs_sched_${name}{sched="${sched}"} ${value}\n`);
      await writeFile(`${file}.new`, lines.join(""));
      await rename(`${file}.new`, file);
    },
  };
}
