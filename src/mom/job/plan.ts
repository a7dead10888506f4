// The files, the program and the environment of a job: what is made, started and delivered (docs/reference/files.md 5 and 6). Pure.

import { outputName } from "#model/job-id.ts";
import { hostsOf } from "#model/request/host-entry.ts";
import { parseHostPath, withIndex } from "#model/values/host-path.ts";
import type { MomJob } from "#protocol/mom-link.ts";
import type { FilePlan, OutputPlan, Prepared } from "./agent-link.ts";
import { type Attrs, commandOfJob, isInteractive, jobNumbers, shellOf, textOf, ticketOf, umaskOf } from "./attrs.ts";
import type { JobLimits } from "./cgroup-limits.ts";
import { jobEnvironment, type TaskNumbers } from "./environment.ts";
import { kernelLimits, niceOf } from "./limits.ts";
import type { PlanFacts } from "./plan-facts.ts";
import type { FileIdentity } from "./process.ts";
import { pathLine, promptEntry } from "./shell-path.ts";
import { type Place, placeOn, stageItems } from "./stage-list.ts";
import type { StartSpec } from "./starter-link.ts";

/** The user that a job runs as. identity null: the mom's own user. */
export type Owner = { readonly user: string; readonly home: string; readonly shell: string; readonly identity: FileIdentity | null };

export function filePlan(job: MomJob, owner: Owner, facts: PlanFacts): FilePlan {
  const { attrs, id } = job;
  const join = isInteractive(attrs) ? "n" : (textOf(attrs, "Join_Path") ?? "n");
  const sandboxed = textOf(attrs, "sandbox")?.toUpperCase() === "PRIVATE";
  const sandbox = sandboxed ? `${facts.jobdir_root ?? owner.home}/pbs.${id}.x8z` : null;
  const place = { home: owner.home, jobdir: sandbox ?? owner.home };
  return {
    job: id,
    run_count: job.run_count,
    owner: owner.identity,
    umask: umaskOf(attrs),
    script: job.script === null ? null : `${facts.home}/mom_priv/jobs/${id}.SC`,
    nodefile: `${facts.home}/aux/${id}`,
    tmpdir: `${facts.tmpdir}/pbs.${id}`,
    sandbox,
    stdout: join === "eo" ? joined("o", id) : outputPlan("o", job, owner, facts),
    stderr: join === "oe" ? joined("e", id) : outputPlan("e", job, owner, facts),
    undelivered: `${facts.home}/undelivered`,
    stagein: stageItems(attrs, "stagein", place, facts),
    stageout: stageItems(attrs, "stageout", place, facts),
    staged: `${facts.home}/mom_priv/jobs/${id}.SI`,
    user: owner.user,
    home: owner.home,
    scp: facts.scp,
    ...(facts.far === null ? {} : { far: facts.far }),
  };
}

function joined(letter: "o" | "e", id: string): OutputPlan {
  return { letter, how: "joined", path: "", target: null, name: outputName(id, letter), remove: false };
}

function outputPlan(letter: "o" | "e", job: MomJob, owner: Owner, facts: PlanFacts): OutputPlan {
  const { attrs, id } = job;
  const name = outputName(id, letter);
  if (isInteractive(attrs)) return { letter, how: "null", path: "/dev/null", target: null, name, remove: false };
  const keep = textOf(attrs, "Keep_Files") ?? "n";
  const remove = (textOf(attrs, "Remove_Files") ?? "").includes(letter);
  const common = { letter, name, remove, target: null };
  const place = placeOf(letter, attrs, owner, facts, id);
  if (keep.includes(letter) && !keep.includes("d")) return { ...common, how: "direct", path: keptPath(letter, attrs, owner, id) };
  if (place.path === "/dev/null") return { ...common, how: "null", path: "/dev/null" };
  if (keep.includes(letter) && place.host === null) return { ...common, how: "direct", path: place.path };
  return { ...common, how: "spool", path: `${facts.home}/spool/${name}`, target: place };
}

/** Returns the path of output with -k o or -k e: `<jobname>.o<seq>[.<index>]` in the owner's home. */
function keptPath(letter: "o" | "e", attrs: Attrs, owner: Owner, id: string): string {
  const { sequence, index } = jobNumbers(id);
  return `${owner.home}/${textOf(attrs, "Job_Name") ?? "STDIN"}.${letter}${sequence}${index === null ? "" : `.${index}`}`;
}

/** Returns the place that Output_Path or Error_Path (`[host:]path`) names. */
function placeOf(letter: "o" | "e", attrs: Attrs, owner: Owner, facts: PlanFacts, id: string): Place {
  const stated = textOf(attrs, letter === "o" ? "Output_Path" : "Error_Path");
  if (stated === null) return { host: null, path: keptPath(letter, attrs, owner, id) };
  const { index } = jobNumbers(id);
  const { host, path } = parseHostPath(withIndex(stated, index));
  return placeOn(host, path, owner.home, facts);
}

/** Makes the order to start a job's top process. files: the files that the file agent has made. */
export function startSpec(
  job: MomJob,
  owner: Owner,
  facts: PlanFacts,
  plan: FilePlan,
  files: Extract<Prepared, { ok: true }>,
  cgroup: JobLimits | null = null,
  task?: TaskNumbers,
): StartSpec {
  const command = commandOfJob(job.attrs);
  const shell = shellOf(job.attrs, facts.hosts[0] ?? "", owner.shell);
  const jobdir = plan.sandbox ?? owner.home;
  const environment = {
    user: owner.user,
    home: owner.home,
    shell,
    port: facts.port,
    site: facts.site,
    ...(facts.devices === undefined ? {} : { devices: facts.devices }),
    jobdir,
    tmpdir: plan.tmpdir,
    nodefile: plan.nodefile,
  };
  const env = jobEnvironment(job, environment, task);
  const commands = command === null ? facts.commands : null;
  return {
    job: job.id,
    run_count: job.run_count,
    path: command?.[0] ?? shell,
    argv: command ?? [shell],
    login: command === null,
    env: commands === null ? env : [...promptEntry(job.attrs, shell, commands), ...env],
    cwd: jobdir,
    stdin:
      command === null && plan.script !== null ? `${commands === null ? "" : pathLine(shell, commands)}${quoted(plan.script)}\n` : null,
    stdout: files.stdout,
    stderr: files.stderr,
    umask: plan.umask,
    owner: owner.identity,
    limits: kernelLimits(job.attrs, hostsOf(job.exec_host).length > 1),
    nice: niceOf(job.attrs),
    cgroup,
    terminal: reachable(ticketOf(job.attrs), facts),
  };
}

/** Adds the address of a qsub on the server's host to its ticket, if qsub can be reached from other hosts. */
function reachable(ticket: StartSpec["terminal"], { server_host }: PlanFacts): StartSpec["terminal"] {
  if (ticket?.port === undefined || ticket.address !== undefined || server_host === "") return ticket;
  return { ...ticket, address: server_host };
}

/** Quotes the path of the script. The login shell reads this path as a command, so that a `#!` line of the script counts and its $0 is the path. */
const quoted = (path: string): string =>
  /^[\w@%+=:,./[\]-]+$/.test(path) && !path.includes("[") ? path : `'${path.replaceAll("'", "'\\''")}'`;
