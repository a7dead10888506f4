// Makes the order to the starter to start something for a run: the job's program or a task, with files, limits and cpus. Pure, like life.ts.

import type { MomJob } from "#protocol/mom-link.ts";
import type { FilePlan } from "../job/agent-link.ts";
import { resourcesOf } from "../job/attrs.ts";
import { jobLimits, pickCpus } from "../job/cgroup-limits.ts";
import type { TaskNumbers } from "../job/environment.ts";
import { filePlan, type Owner, startSpec } from "../job/plan.ts";
import { attrsHere, isSister, placeholderSpec, sisterPlan } from "../job/sister.ts";
import type { StartSpec } from "../job/starter-link.ts";
import { restartCommand, siteEnvironmentOf } from "./checkpoint.ts";
import { type Context, keyOf, save } from "./record.ts";
import { untilOf } from "./server-contact.ts";
import type { MomConfig, OutputFiles, Run } from "./state.ts";

/** Makes the order to start the run on this host. On a sister, an idle process is started in place of the job's program; tasks are added to it. */
export function specOf(cx: Context, run: Run, files: OutputFiles): StartSpec {
  const spec = fullSpec(cx, run, files);
  return isSisters(cx, run) ? placeholderSpec(spec) : spec;
}

/** Makes the order to start the job's program, or the task with these numbers. */
export function fullSpec(cx: Context, run: Run, files: OutputFiles, task?: TaskNumbers): StartSpec {
  const made = { ...keyOf(run), ok: true as const, ...files };
  const { facts, cgroups } = cx.state.config;
  if (run.cpus === null) takeCpus(cx, run);
  const cgroup = jobLimits(shareOf(cx, run), cgroups, run.cpus);
  const until = untilOf(cx.state, run);
  const leased = until === null ? {} : { until_ms: until.leased_ms };
  const spec = { ...startSpec(run.job, run.owner, facts, run.plan, made, cgroup, task), ...leased };
  if (!run.restart || task !== undefined) return spec;
  const argv = restartCommand(cx, run);
  // The restart script runs with the mom's identity, so no variable of the user may influence it.
  const env = { ...siteEnvironmentOf(cx, run), PBS_JOBCOOKIE: run.job.cookie };
  const words = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return { ...spec, path: argv[0] ?? "", argv, login: false, stdin: null, cwd: "/", env: words, by_mom: true };
}

export const isSisters = (cx: Context, run: Run): boolean => isSister(run.job, cx.state.config.host);

/** Plans the files of a run on this host. On a sister these are only the files that tasks need. */
export const planOf = (job: MomJob, owner: Owner, { facts, host }: MomConfig): FilePlan =>
  isSister(job, host) ? sisterPlan(filePlan(job, owner, facts), facts) : filePlan(job, owner, facts);

const shareOf = (cx: Context, run: Run): MomJob["attrs"] => attrsHere(run.job, cx.state.config.host, cx.state.vnodes);

/** Gives a run cpus that no other run here has. They are written to its record, so that a restarted mom does not give them to another run. */
function takeCpus(cx: Context, run: Run): void {
  const { cgroups, cpus } = cx.state.config;
  if (!cgroups.track || !cgroups.enforce.has("cpuset")) return;
  const ncpus = resourcesOf(shareOf(cx, run))["ncpus"];
  const taken = new Set([...cx.state.runs.values()].flatMap((other) => (other.phase.name === "ended" ? [] : (other.cpus ?? []))));
  run.cpus = pickCpus(cpus, taken, typeof ncpus === "number" ? ncpus : 0);
  if (run.cpus !== null) save(cx, run);
}
