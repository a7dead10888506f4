// Reads the answers of Slurm about jobs of campaigns. Pure.

import type { Capacity, JobSighting } from "../contract/cluster.ts";
import { BackendError, cleanText } from "../contract/fault.ts";
import { WIDTH } from "./cluster-request.ts";

/** How a job has ended: what squeue with endArgs shows of it. */
export type JobEnd = Pick<JobSighting, "exit_code" | "ending" | "run_s">;

/** Reads the ends of jobs by their id (`5_3`). Jobs that have not ended are left out. */
export function readEnds(stdout: string): ReadonlyMap<string, JobEnd> {
  const ends = new Map<string, JobEnd>();
  for (const line of stdout.split("\n")) {
    const [array = "", task = "", state = "", code = "", used = ""] = Array.from({ length: 5 }, (_, at) =>
      line.slice(at * WIDTH, (at + 1) * WIDTH).trim(),
    );
    if (/^[0-9]+$/.test(array) && /^[0-9]+$/.test(task) && /^[0-9]+$/.test(code)) {
      const end = endOf(state, Number(code));
      if (end !== null) ends.set(`${array}_${task}`, { ...end, run_s: secondsOf(used) });
    }
  }
  return ends;
}

/** States in which the cluster or a person has ended the job. */
const KILLED: ReadonlySet<string> = new Set(["CANCELLED", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "REVOKED"]);
const EXITED: ReadonlySet<string> = new Set(["COMPLETED", "FAILED", "OUT_OF_MEMORY"]);

/** code: the status of wait(2). */
function endOf(state: string, code: number): Omit<JobEnd, "run_s"> | null {
  if (state === "TIMEOUT") return { ending: "walltime", exit_code: null };
  if (KILLED.has(state)) return { ending: "killed", exit_code: null };
  if (!EXITED.has(state)) return null;
  const signal = code & 0x7f;
  // SIGKILL and SIGTERM come from outside. Other signals are faults of the program.
  if (signal === 9 || signal === 15)
    return { ending: state === "OUT_OF_MEMORY" ? "exit" : "killed", exit_code: state === "OUT_OF_MEMORY" ? 137 : null };
  return { ending: "exit", exit_code: signal > 0 ? 128 + signal : (code >> 8) & 0xff };
}

/** Reads `[[D-]HH:]MM:SS`. */
function secondsOf(text: string): number | null {
  const [, days = "0", hours = "0", minutes, seconds] = /^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)$/.exec(text) ?? [];
  if (minutes === undefined || seconds === undefined) return null;
  return ((Number(days) * 24 + Number(hours)) * 60 + Number(minutes)) * 60 + Number(seconds);
}

/** Reads `in use/idle/other/total` of each line of sinfo. */
export function readCpus(stdout: string): Capacity {
  let [total, free] = [0, 0];
  for (const line of stdout.trim().split("\n")) {
    const [, used, idle] = /^(\d+)\/(\d+)\/(\d+)\/(\d+)\s*$/.exec(line) ?? [];
    if (used === undefined || idle === undefined)
      throw new BackendError({ kind: "transient", text: `sinfo printed no numbers of cpus: ${cleanText(stdout.slice(0, 200))}` });
    total += Number(used) + Number(idle);
    free += Number(idle);
  }
  return { total, free };
}
