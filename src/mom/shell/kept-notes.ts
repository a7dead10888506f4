// Notes on the disk about jobs whose output waits in spool (run/kept-output.ts O1): an empty file mom_priv/jobs/JOBID.KP for each.

import { closeSync, openSync, readdirSync, unlinkSync } from "node:fs";
import { codeOf } from "#support/caught.ts";
import { SAFE_ID } from "../run/record.ts";

const EXTENSION = ".KP";

const noteOf = (home: string, job: string): string => `${home}/mom_priv/jobs/${job}${EXTENSION}`;

/** Makes or removes the note about a job. Throws the file system's error. */
export function noteKept(home: string, job: string, kept: boolean): void {
  const path = noteOf(home, job);
  if (kept) {
    closeSync(openSync(path, "w", 0o600));
    return;
  }
  try {
    unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

export function foundKept(home: string): string[] {
  const names = readdirSync(`${home}/mom_priv/jobs`).filter((name) => name.endsWith(EXTENSION));
  return names.map((name) => name.slice(0, -EXTENSION.length)).filter((job) => SAFE_ID.test(job));
}
