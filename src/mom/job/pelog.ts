// Prologue and epilogue scripts (docs/reference/files.md 7): their arguments, their environment, and the meaning of their exit codes for the job. Pure.

import { JOB_EXEC } from "#model/exit-status.ts";
import { renderDuration } from "#model/values/duration.ts";
import type { MomJob, Usage } from "#protocol/mom-link.ts";

import { type Attrs, isInteractive, resourcesOf, textOf } from "./attrs.ts";

export type ScriptName = "prologue" | "epilogue";
/** The end of a script. code: its exit status, or one of PELOG. text: the reason, for the log. none: the host has no such script. */
export type ScriptEnd = { readonly kind: "none" } | { readonly kind: "ended"; readonly code: number; readonly text: string };

/** Codes of failures in which the script has no exit status. */
export const PELOG = { PERMISSION: -1, NO_INPUT: -2, WAIT_FAILED: -3 } as const;
export const PELOG_TEXTS = {
  nonzero: "nonzero p/e exit status",
  permission: "Permission Error",
  no_input: "no pro/epilogue input file",
  wait: "wait failed",
} as const;

/** Writes resources as `ncpus=1,walltime=00:10:00`, with durations in the form of PBS. */
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

/** Returns the variables that the scripts get in addition to those of the site. */
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

/** Returns `pro/epilogue failed, file: ..., exit: N, why`. */
export const failureText = (file: string, { code, text }: { readonly code: number; readonly text: string }): string =>
  `pro/epilogue failed, file: ${file}, exit: ${code}, ${text}`;

/**
 * Returns the Exit_status of a job whose prologue ended with this code; null: the job is started. An interactive job is not requeued, because its terminal
 * would be gone.
 */
export function afterPrologue(attrs: Attrs, code: number): number | null {
  if (code === 0) return null;
  if (code === 1) return JOB_EXEC.FAIL2;
  return isInteractive(attrs) ? JOB_EXEC.FAIL2 : JOB_EXEC.RETRY;
}
