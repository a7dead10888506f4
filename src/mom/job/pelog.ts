// Prologue and epilogue scripts (docs/reference/files.md 7): their arguments, their environment, and the meaning of their exit codes for the job. Pure.

import { JOB_EXEC } from "#model/exit-status.ts";
import { renderDuration } from "#model/values/duration.ts";
import type { MomJob, Usage } from "#protocol/mom-link.ts";

import { type Attrs, isInteractive, resourcesOf, textOf } from "./attrs.ts";

export type ScriptName = "prologue" | "epilogue";
/** code: the script's exit status, or one of PELOG; text: the reason, for the log. none: there is no script. */
export type ScriptEnd = { readonly kind: "none" } | { readonly kind: "ended"; readonly code: number; readonly text: string };

/** Codes for failures without an exit status. */
export const PELOG = { PERMISSION: -1, NO_INPUT: -2, WAIT_FAILED: -3 } as const;
export const PELOG_TEXTS = {
  nonzero: "nonzero p/e exit status",
  permission: "Permission Error",
  no_input: "no pro/epilogue input file",
  wait: "wait failed",
} as const;

/** `ncpus=1,walltime=00:10:00`: durations as PBS writes them. */
function resourceText(resources: { readonly [name: string]: string | number | boolean }): string {
  return Object.entries(resources)
    .map(([name, value]) => `${name}=${DURATIONS.has(name) && typeof value === "number" ? renderDuration(value) : String(value)}`)
    .join(",");
}
const DURATIONS: ReadonlySet<string> = new Set(["cput", "walltime", "pcput", "soft_walltime", "min_walltime", "max_walltime"]);

export function prologueArguments(job: MomJob): string[] {
  return [job.id, job.user, job.group, resourceText(resourcesOf(job.attrs))];
}

export function epilogueArguments(job: MomJob, session: number, used: Usage, exit_status: number): string[] {
  return [
    job.id,
    job.user,
    job.group,
    textOf(job.attrs, "Job_Name") ?? "",
    String(session),
    resourceText(resourcesOf(job.attrs)),
    resourceText(used),
    job.queue,
    textOf(job.attrs, "Account_Name") ?? "null",
    String(exit_status),
  ];
}

/** Variables for the scripts, in addition to the site's variables. */
export function scriptEnvironment(
  job: MomJob,
  jobdir: string,
  tmpdir: string,
  site: readonly (readonly [string, string])[],
): { [name: string]: string } {
  return {
    PATH: "/usr/bin:/bin:/usr/sbin:/sbin",
    ...Object.fromEntries(site),
    PBS_JOBID: job.id,
    PBS_JOBDIR: jobdir,
    TMPDIR: tmpdir,
  };
}

/** `pro/epilogue failed, file: ..., exit: N, why` */
export const failureText = (file: string, { code, text }: { readonly code: number; readonly text: string }): string =>
  `pro/epilogue failed, file: ${file}, exit: ${code}, ${text}`;

/** Exit_status of a job whose prologue ended in this way; null: the job runs. An interactive job is not tried again, because its terminal would be gone. */
export function afterPrologue(attrs: Attrs, code: number): number | null {
  if (code === 0) return null;
  if (code === 1) return JOB_EXEC.FAIL2;
  return isInteractive(attrs) ? JOB_EXEC.FAIL2 : JOB_EXEC.RETRY;
}
