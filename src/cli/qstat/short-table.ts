// Writes the default listing of jobs: qstat, qstat -w, qstat -p (docs/reference/commands.md 2.1). Pure.

import { left, leftBelow, shortId } from "../columns.ts";
import { counts, type Job, owner, resource, scalar, seconds } from "./job-row.ts";

export type ShortLayout = {
  readonly wide: boolean;
  readonly percent: boolean /** some ids have eight or more digits */;
  readonly long_ids: boolean;
};

/** Returns the names of the attributes that the listing needs. */
export function shortAttributes(layout: ShortLayout): readonly string[] {
  const names = ["Job_Name", "Job_Owner", "resources_used", "job_state", "queue"];
  return layout.percent ? [...names, "Resource_List", "array_state_count"] : names;
}

export function shortHeader(layout: ShortLayout): string {
  const time = layout.percent ? " % done " : "Time Use";
  if (layout.wide) {
    return (
      `Job id                         Name            User             ${time} S Queue\n` +
      "-----------------------------  --------------- ---------------  -------- - ---------------\n"
    );
  }
  const id = layout.long_ids ? 21 : 16;
  return (
    `${"Job id".padEnd(id + 2)}Name             User              ${time} S Queue\n` +
    `${"-".repeat(id)}  ---------------- ----------------  -------- - -----\n`
  );
}

export function shortRow(job: Job, layout: ShortLayout): string {
  const time = layout.percent ? percentDone(job) : resource(job, "resources_used", "cput") || "0";
  const state = scalar(job, "job_state").slice(0, 1);
  const [name, user, queue] = [scalar(job, "Job_Name"), owner(job), scalar(job, "queue")];
  if (layout.wide) {
    return `${job.id.padEnd(30)} ${leftBelow(name, 15)} ${left(user, 15)}  ${time.padStart(8)} ${state} ${left(queue, 15)}\n`;
  }
  const id = left(shortId(job.id), layout.long_ids ? 22 : 17);
  return `${id} ${leftBelow(name, 16)} ${left(user, 16)}  ${time.padStart(8)} ${state} ${left(queue, 16)}\n`;
}

const NO_PERCENT = "-- ";

/** Writes how much of a job is done in per cent, by time or by subjobs, with a blank after it; `-- `: unknown. */
function percentDone(job: Job): string {
  const state = scalar(job, "job_state");
  if (state === "X") return "100 ";
  if ("QTW".includes(state)) return NO_PERCENT;
  const subjobs = counts(scalar(job, "array_state_count"));
  const total = Object.values(subjobs).reduce((sum, count) => sum + count, 0);
  if (total > 0) return `${String(Math.floor(((subjobs["Expired"] ?? 0) * 100) / total)).padStart(3)} `;
  const shares = ["cput", "walltime"].flatMap((name) => {
    const used = seconds(resource(job, "resources_used", name));
    const asked = seconds(resource(job, "Resource_List", name));
    return used === null || asked === null || asked === 0 ? [] : [Math.floor((used * 100) / asked)];
  });
  return shares.length === 0 ? NO_PERCENT : `${String(Math.max(...shares)).padStart(3)} `;
}
