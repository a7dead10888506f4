// Mixed jobs on runners of backends that need no cluster manager of others: this machine, a second complex of ours, and the stand-in for LSF.

import { readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { type Complex, startComplex, until } from "../../complex.ts";
import { installStandIn } from "../lsf-bed.ts";
import { mixedJobs, processes, type Seat } from "../mixed-jobs.ts";

/** The controller of a complex, which does the work of a cluster manager for backends of type local. */
const controller = ({ pbsHome }: Complex): number => Number(readFileSync(join(pbsHome, "runner_priv/runners.lock"), "utf8"));

test("mixed jobs on runners of this machine complete exactly once", async (t) => {
  const seat: Seat = {
    type: "local",
    attributes: () => ["resources_available.ncpus=8"],
    stop: async (complex) => void process.kill(controller(complex), "SIGSTOP"),
    resume: async (complex) => void process.kill(controller(complex), "SIGCONT"),
    tells: false,
    left: async (_complex, backend) => processes((line) => line.startsWith(`pbs_runner ${backend}-`)).map(String),
  };
  t.diagnostic(JSON.stringify(await mixedJobs(seat)));
});

test("mixed jobs on runners that are jobs of a second complex complete exactly once", async (t) => {
  const other = await startComplex();
  t.after(() => other.stop());
  other.qmgr("set server job_history_enable=t", "set node @default resources_available.ncpus=8");
  const seat: Seat = {
    type: "pbs",
    attributes: () => [`config=${other.env()["PBS_CONF_FILE"]}`, `bin=${dirname(other.command("qsub"))}`],
    async stop() {
      process.kill(other.pid("server") ?? 0, "SIGKILL");
      await until("the server is gone", () => other.pid("server") === null);
    },
    resume: async () => other.start(),
    tells: true,
    left: async () =>
      Object.entries(other.jobs())
        .filter(([, { job_state }]) => job_state !== "F" && job_state !== "X")
        .map(([id]) => id),
  };
  t.diagnostic(JSON.stringify(await mixedJobs(seat)));
});

test("mixed jobs on runners that the stand-in for LSF starts complete exactly once", async (t) => {
  let lsf = "";
  const seat: Seat = {
    type: "lsf",
    attributes(complex) {
      const bed = installStandIn(complex.work());
      lsf = bed.lsf;
      writeFileSync(join(lsf, "slots"), "8");
      return [`bin=${bed.bin}`];
    },
    stop: async () => writeFileSync(join(lsf, "down"), "yes"),
    resume: async () => unlinkSync(join(lsf, "down")),
    tells: true,
    left: async () => processes((line) => line.includes(`${lsf}/script.`)).map(String),
  };
  t.diagnostic(JSON.stringify(await mixedJobs(seat)));
});
