// A job's run on a host that is not the first of the job (docs/reference/execution.md 3). The mom there makes the files that tasks of the job need, and starts
// a placeholder. Pure.
//
// The placeholder is an idle process in a session and a control group, in place of the job's top process. So signals, usage, a restart of the mom and the
// removal of files are handled as for any other run. When the placeholder ends, all processes of the job on this host end.

import { hostName } from "#identity/host-name.ts";
import type { HostIdentity } from "#identity/peer.ts";
import { outputName } from "#model/job-id.ts";
import { parseExecVnode } from "#model/request/exec-vnode.ts";
import { hasSeveralEntries, hostsOf } from "#model/request/host-entry.ts";
import { sizeKb } from "#model/values/size.ts";
import type { MomJob, MomPlace, MomVnode } from "#protocol/mom-link.ts";
import type { FilePlan } from "./agent-link.ts";
import { type Attrs, isSameHost, resourcesOf } from "./attrs.ts";
import type { PlanFacts } from "./plan-facts.ts";
import type { StartSpec } from "./starter-link.ts";

export const NO_SISTERS = { cput_s: 0, mem_kb: 0, vmem_kb: 0 } as const;

/** Whether this host is one of the job's hosts, but not the first. */
export function isSister(job: Pick<MomJob, "exec_host">, host: string): boolean {
  if (!hasSeveralEntries(job.exec_host)) return false;
  const [first = "", ...others] = hostsOf(job.exec_host);
  return !isSameHost(first, host) && others.some((other) => isSameHost(other, host));
}

/** Where the mom of another host accepts requests: on a socket of this machine, or by TCP. */
export type TaskPlace = { readonly kind: "socket"; readonly path: string } | ({ readonly kind: "host"; readonly host: string } & MomPlace);

/** Returns where the mom of a host of the job accepts requests; null: the server has not sent it. */
export function placeOf({ tasks, sisters }: Pick<MomJob, "tasks" | "sisters">, host: string): TaskPlace | null {
  const path = ownValue(tasks, host);
  if (path !== undefined && path !== "") return { kind: "socket", path };
  const place = ownValue(sisters?.hosts, host);
  return place === undefined ? null : { kind: "host", host, ...place };
}

const ownValue = <T>(record: { readonly [name: string]: T } | undefined, name: string): T | undefined =>
  record !== undefined && Object.hasOwn(record, name) ? record[name] : undefined;

/** Returns the hosts of the job from which a peer with that certificate may act, according to the server (task-link.ts K3). */
export function hostsOfPeer({ exec_host, sisters }: Pick<MomJob, "exec_host" | "sisters">, peer: HostIdentity): readonly string[] {
  return hostsOf(exec_host).filter((host) => {
    const place = ownValue(sisters?.hosts, host);
    if (place === undefined) return false;
    return place.address === null ? peer.role === "server" : peer.role === "host" && peer.host === hostName(host);
  });
}

/** Plans only the files that tasks of the job need here: node file, TMPDIR, files for their output. Nothing is staged or delivered. */
export function sisterPlan(plan: FilePlan, facts: PlanFacts): FilePlan {
  const output = (letter: "o" | "e") => {
    const name = outputName(plan.job, letter);
    return { letter, how: "spool", path: `${facts.home}/spool/${name}`, target: null, name, remove: false } as const;
  };
  return {
    ...plan,
    script: null,
    // A sandbox in the home directory is made and removed by the mother superior, because the home directory is usually the same on all hosts.
    sandbox: facts.jobdir_root === null ? null : plan.sandbox,
    stdout: output("o"),
    stderr: output("e"),
    stagein: [],
    stageout: [],
  };
}

/** A number of seconds that is never over. */
const FOR_EVER_S = "2147483647";
export const PLACEHOLDER = "/bin/sleep";

/** Makes the order for a placeholder. spec: the order that would start the job's top process here. */
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

/** Returns the job's attributes. If the job has several hosts, ncpus and mem are those on this host. vnodes: the vnodes of this host. */
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
