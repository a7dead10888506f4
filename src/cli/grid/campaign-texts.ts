// What gridstat prints about campaigns. Pure.

import type { GridCampaignView, GridEventView, GridJobView } from "#protocol/grid-messages.ts";
import { barText, spanText, tableText, timeText } from "./tables.ts";

/** Returns campaigns as a table. */
export function summaryText(items: readonly GridCampaignView[]): string {
  const rows = items.map((item) => [
    ...[String(item.id), item.name, item.user, item.type, item.state, timeText(item.submission_time)],
    ...[`${item.finished_jobs}/${item.total_jobs}`, String(item.running_jobs), String(item.waiting_jobs), String(item.open_events)],
    `${barText(item.total_jobs === 0 ? 1 : item.finished_jobs / item.total_jobs, 20)} ${endText(item)}`.trimEnd(),
  ]);
  return tableText(["id", "name", "user", "type", "state", "submitted", "done", "running", "waiting", "events", "progress"], rows);
}

const endText = ({ state, estimated_end }: GridCampaignView): string =>
  estimated_end === null ? "" : `${state === "in_treatment" ? "end expected " : ""}${timeText(estimated_end)}`;

/** Returns everything about a campaign. */
export function fullText(item: GridCampaignView & { readonly jobs: readonly GridJobView[] }): string {
  const clusters = item.clusters.map((pair) => [
    ...[pair.cluster, pair.state, String(pair.running), String(pair.waiting), String(pair.terminated)],
    ...[pair.average_s === null ? "-" : pair.average_s.toFixed(1), pair.throughput.toFixed(1), pair.job_ratio.toFixed(3), pair.why ?? ""],
  ]);
  const jobs = item.jobs.map((job) => [
    ...[
      String(job.id),
      job.state,
      job.cluster,
      job.remote_id ?? "-",
      timeText(job.start_time),
      spanText(job.run_s),
      String(job.exit_code ?? "-"),
    ],
    job.parameters,
  ]);
  return [
    `Campaign ${item.id}: ${item.name}`,
    `  user ${item.user}, type ${item.type}, state ${item.state}`,
    `  submitted ${timeText(item.submission_time)}, ended ${timeText(item.end_time)}, end expected ${timeText(item.estimated_end)}`,
    `  jobs ${item.total_jobs}: ${item.finished_jobs} done, ${item.running_jobs} running, ${item.waiting_jobs} waiting, ${item.unsubmitted_jobs} not submitted, ${item.event_jobs} in events`,
    "",
    tableText(["cluster", "state", "running", "waiting", "done", "average s", "jobs/h", "ratio", "why"], clusters),
    tableText(["job", "state", "cluster", "remote id", "started", "ran", "exit", "parameters"], jobs),
  ].join("\n");
}

/** Campaigns of one user, added up. end: when the last of them is expected to end; null: unknown. */
type UserSum = {
  readonly user: string;
  readonly campaigns: number;
  readonly open_campaigns: number;
  readonly total_jobs: number;
  readonly finished_jobs: number;
  readonly running_jobs: number;
  readonly waiting_jobs: number;
  readonly open_events: number;
  readonly estimated_end: number | null;
};

const isOpen = ({ state }: GridCampaignView): boolean => state === "in_treatment" || state === "paused";

/** Adds up the campaigns of each user. */
export function userSums(items: readonly GridCampaignView[]): UserSum[] {
  const users = Map.groupBy(items, ({ user }) => user);
  return [...users]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([user, own]) => {
      const sum = (of: (item: GridCampaignView) => number): number => own.reduce((total, item) => total + of(item), 0);
      const open = own.filter(isOpen);
      const ends = open.flatMap(({ estimated_end }) => estimated_end ?? []);
      return {
        user,
        campaigns: own.length,
        open_campaigns: open.length,
        total_jobs: sum((item) => item.total_jobs),
        finished_jobs: sum((item) => item.finished_jobs),
        running_jobs: sum((item) => item.running_jobs),
        waiting_jobs: sum((item) => item.waiting_jobs),
        open_events: sum((item) => item.open_events),
        // The end of all campaigns is known only if the end of each of them is.
        estimated_end: ends.length === open.length && open.length > 0 ? Math.max(...ends) : null,
      };
    });
}

/** Returns the sums of users as a table. */
export function usersText(sums: readonly UserSum[]): string {
  const rows = sums.map((sum) => [
    ...[sum.user, `${sum.open_campaigns}/${sum.campaigns}`, `${sum.finished_jobs}/${sum.total_jobs}`],
    ...[sum.running_jobs, sum.waiting_jobs, sum.open_events].map(String),
    timeText(sum.estimated_end),
  ]);
  return tableText(["user", "open", "done", "running", "waiting", "events", "end expected"], rows);
}

/** Returns the errors that wait for a person, with the commands that fix them. */
export function errorsText(events: readonly GridEventView[]): string {
  if (events.length === 0) return "No errors to fix.\n";
  const rows = events.map((event) => [
    ...[String(event.id), timeText(event.time), String(event.campaign ?? "-"), event.cluster ?? "-", String(event.job ?? "-"), event.code],
    event.message,
  ]);
  const hint = "gridevents -f -r -e EVENT fixes one and runs its task again; gridevents -f -r -c CAMPAIGN fixes all of a campaign.";
  return `${tableText(["event", "time", "campaign", "cluster", "job", "code", "message"], rows)}\n${hint}\n`;
}

/** Most campaigns in a live view. */
const LIVE_MAX = 12;
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

/** Returns one picture of the live view: it overwrites the one before. Campaigns that are over are left out if there are too many. */
export function liveText(items: readonly GridCampaignView[], now_s: number): string {
  const shown = [...items.filter(isOpen), ...items.filter((item) => !isOpen(item))].slice(0, LIVE_MAX);
  const lines = [`gridstat --live  ${timeText(now_s)}  ${shown.length} of ${items.length} campaigns`, "", ...shown.flatMap(liveLines)];
  return `${HOME}${lines.map((line) => `${line}${CLEAR_LINE}\n`).join("")}${CLEAR_BELOW}`;
}

function liveLines(item: GridCampaignView): string[] {
  const share = (part: number): number => (item.total_jobs === 0 ? 1 : part / item.total_jobs);
  const percent = `${(100 * share(item.finished_jobs)).toFixed(1).padStart(5)} %`;
  const events = item.open_events === 0 ? "" : `, ${item.open_events} events to fix`;
  return [
    `${item.id} ${item.name}  ${item.user}  ${item.state}  ${endText(item)}`.trimEnd(),
    `  ${barText(share(item.finished_jobs), 40)} ${percent}  ${item.finished_jobs}/${item.total_jobs}${events}`,
    ...item.clusters.map(
      (pair) =>
        `    ${pair.cluster.padEnd(16)} ${barText(share(pair.terminated), 20)} ${pair.terminated} done, ${pair.running} running, ${pair.waiting} waiting${pair.why === null ? "" : `: ${pair.why}`}`,
    ),
    "",
  ];
}

/** Whether a live view has nothing more to show. */
export const isOver = (items: readonly GridCampaignView[]): boolean => !items.some(isOpen);
