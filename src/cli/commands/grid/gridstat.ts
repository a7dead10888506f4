// gridstat: shows campaigns (docs/campaigns.md).

import type { GridCampaignView, GridJobView } from "#protocol/grid-messages.ts";
import type { Command, CommandIo } from "../../command.ts";
import { type Given, type Grid, gridCommand, jsonText, Misuse, numberOf, textOption, wantsJson } from "../../grid/grid-command.ts";
import { barText, itemsOf, spanText, tableText, timeText } from "../../grid/tables.ts";

const USAGE = `Usage: gridstat [-u [USER]] [-F json] [CAMPAIGN...]
       gridstat -f [-F json] CAMPAIGN...
       gridstat -J CAMPAIGN
       gridstat --help | --version
Shows campaigns: their state, their jobs, and when they will end.
  -f        everything about campaigns: their clusters and each of their jobs
  -u USER   only the campaigns of a user
  -J        the campaign file as it was submitted
`;

const flag = (short: string) => ({ type: "boolean", short }) as const;
const text = (short: string) => ({ type: "string", short }) as const;

export const run: Command = gridCommand(
  "gridstat",
  USAGE,
  { f: flag("f"), J: flag("J"), c: text("c"), u: text("u"), F: text("F") },
  gridstat,
);

async function gridstat(io: CommandIo, given: Given, grid: Grid): Promise<number> {
  const json = wantsJson(given);
  const named = [...given.operands, ...[textOption(given, "c") ?? []].flat()];
  const campaigns = named.map((each) => numberOf(each, "a campaign"));
  if (given.values["J"] === true) {
    const [campaign, ...more] = campaigns;
    if (campaign === undefined || more.length > 0) throw new Misuse("-J needs one campaign");
    io.out(`${String(await grid.ask({ kind: "grid-jdl", campaign })).trimEnd()}\n`);
    return 0;
  }
  const user = textOption(given, "u");
  const answer = await grid.ask({
    kind: "grid-campaigns",
    ...(campaigns.length === 0 ? {} : { campaigns }),
    ...(user === undefined ? {} : { user }),
  });
  const items = itemsOf<GridCampaignView>(answer);
  const is_full = given.values["f"] === true;
  const full = is_full ? await Promise.all(items.map(async (item) => ({ ...item, jobs: await allJobs(grid, item.id) }))) : [];
  if (json) {
    const shown = is_full ? full : items;
    io.out(jsonText(campaigns.length === 1 ? shown[0] : { items: shown, total: shown.length }));
  } else io.out(is_full ? full.map(fullText).join("\n") : summaryText(items));
  return 0;
}

/** Rows that are asked for at a time. */
const PAGE = 10_000;

async function allJobs(grid: Grid, campaign: number): Promise<readonly GridJobView[]> {
  const jobs: GridJobView[] = [];
  for (;;) {
    const page = itemsOf<GridJobView>(await grid.ask({ kind: "grid-jobs", campaign, limit: PAGE, offset: jobs.length }));
    jobs.push(...page);
    if (page.length < PAGE) return jobs;
  }
}

function summaryText(items: readonly GridCampaignView[]): string {
  const rows = items.map((item) => [
    ...[String(item.id), item.name, item.user, item.type, item.state, timeText(item.submission_time)],
    ...[`${item.finished_jobs}/${item.total_jobs}`, String(item.running_jobs), String(item.waiting_jobs), String(item.open_events)],
    `${barText(item.total_jobs === 0 ? 1 : item.finished_jobs / item.total_jobs, 20)} ${endText(item)}`.trimEnd(),
  ]);
  return tableText(["id", "name", "user", "type", "state", "submitted", "done", "running", "waiting", "events", "progress"], rows);
}

const endText = ({ state, estimated_end }: GridCampaignView): string =>
  estimated_end === null ? "" : `${state === "in_treatment" ? "end expected " : ""}${timeText(estimated_end)}`;

function fullText(item: GridCampaignView & { readonly jobs: readonly GridJobView[] }): string {
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
