// A run on a host that is not the first of its job (docs/reference/execution.md 3). A sister makes the files that tasks of the job need there, and holds a
// place for the job; the end of the place is the end of all processes of the job on this host. Pure.
//
// The place is an idle process in a session and a control group, like a job's top process. Signals, usage, survival of the mom's restart and
// removal of files are therefore the same as for any run.

import { parseExecVnode } from "#model/request/exec-vnode.ts";
import { hasSeveralEntries, hostsOf } from "#model/request/host-entry.ts";
import { sizeKb } from "#model/values/size.ts";
import type { MomJob, MomVnode } from "#protocol/mom-link.ts";
import type { FilePlan } from "./agent-link.ts";
import { type Attrs, isSameHost, resourcesOf } from "./attrs.ts";
import type { PlanFacts } from "./plan-facts.ts";
import type { StartSpec } from "./starter-link.ts";

export const NO_SISTERS = { cput_s: 0, mem_kb: 0, vmem_kb: 0 } as const;

/** Whether this host is one of the job's further hosts. */
export function isSister(job: Pick<MomJob, "exec_host">, host: string): boolean {
  if (!hasSeveralEntries(job.exec_host)) return false;
  const [first = "", ...others] = hostsOf(job.exec_host);
  return !isSameHost(first, host) && others.some((other) => isSameHost(other, host));
}

/** The files of a job that its tasks need here: node file, TMPDIR, a place for their output. Nothing is staged or delivered. */
export function sisterPlan(plan: FilePlan, facts: PlanFacts): FilePlan {
  const output = (letter: "o" | "e", name: string) =>
    ({ letter, how: "spool", path: `${facts.home}/spool/${name}`, target: null, name, remove: false }) as const;
  return {
    ...plan,
    script: null,
    // The home directory is usually the same on all hosts, so the mother superior makes and removes the files in it.
    sandbox: facts.jobdir_root === null ? null : plan.sandbox,
    stdout: output("o", `${plan.job}.OU`),
    stderr: output("e", `${plan.job}.ER`),
    stagein: [],
    stageout: [],
  };
}

/** A number of seconds that never passes. */
const FOR_EVER_S = "2147483647";
export const PLACEHOLDER = "/bin/sleep";

/** spec: of the job's top process, as if it were here. */
export const placeholderSpec = (spec: StartSpec): StartSpec => ({
  ...spec,
  path: PLACEHOLDER,
  argv: ["sleep", FOR_EVER_S],
  login: false,
  stdin: null,
  terminal: null,
  cwd: "/",
  stdout: "/dev/null",
  stderr: "/dev/null",
});

/** The job's attributes, with the ncpus and mem that it has on this host if it has several. vnodes: of this host. */
export function attrsHere(job: MomJob, host: string, vnodes: readonly MomVnode[]): Attrs {
  if (hostsOf(job.exec_host).length < 2) return job.attrs;
  const own = new Set([host, ...vnodes.map(({ name }) => name)]);
  let ncpus = 0;
  let mem_kb = 0;
  for (const { vnode, pairs } of parseExecVnode(job.exec_vnode).flat()) {
    if (!own.has(vnode)) continue;
    for (const { name, text } of pairs) {
      if (name === "ncpus") ncpus += Number(text);
      if (name === "mem") mem_kb += sizeKb(text) ?? 0;
    }
  }
  const { mem: _all, ...others } = resourcesOf(job.attrs);
  return { ...job.attrs, Resource_List: { ...others, ncpus, ...(mem_kb > 0 ? { mem: `${mem_kb}kb` } : {}) } };
}
