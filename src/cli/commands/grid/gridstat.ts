// gridstat: shows campaigns (docs/campaigns.md).

import { setTimeout as sleep } from "node:timers/promises";
import type { GridCampaignView, GridEventView, GridJobView } from "#protocol/grid-messages.ts";
import type { Command, CommandIo } from "../../command.ts";
import { errorsText, fullText, isOver, liveText, summaryText, userSums, usersText } from "../../grid/campaign-texts.ts";
import { type Given, type Grid, gridCommand, jsonText, Misuse, numberOf, textOption, wantsJson } from "../../grid/grid-command.ts";
import { itemsOf } from "../../grid/tables.ts";

const USAGE = `Usage: gridstat [-u USER] [-F json] [CAMPAIGN...]
       gridstat --by-user [-u USER] [-F json]
       gridstat -e [-u USER] [-F json] [CAMPAIGN...]
       gridstat --live [-u USER] [CAMPAIGN...]
       gridstat -f [-F json] CAMPAIGN...
       gridstat -J CAMPAIGN
       gridstat --help | --version
Shows campaigns: their state, their jobs, and when they will end.
  -f        everything about campaigns: their clusters and each of their jobs
  -u USER   only the campaigns of a user
  -e, --errors
            the errors that wait for a person, and how they are fixed
  --by-user
            the campaigns of each user added up
  --live    on a terminal: progress bars, until all campaigns shown have ended or the command is interrupted
  -J        the campaign file as it was submitted
`;

const flag = (short: string) => ({ type: "boolean", short }) as const;
const text = (short: string) => ({ type: "string", short }) as const;

export const run: Command = gridCommand(
  "gridstat",
  USAGE,
  {
    ...{ f: flag("f"), J: flag("J"), c: text("c"), u: text("u"), F: text("F"), errors: flag("e") },
    ...{ "by-user": { type: "boolean" }, live: { type: "boolean" } },
  },
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
  const views = ["f", "errors", "by-user", "live"].filter((name) => given.values[name] === true);
  if (views.length > 1) throw new Misuse("only one of -f, -e, --by-user and --live may be given");
  const user = textOption(given, "u");
  const asked = async (): Promise<readonly GridCampaignView[]> => {
    const chosen = { ...(campaigns.length === 0 ? {} : { campaigns }), ...(user === undefined ? {} : { user }) };
    return itemsOf<GridCampaignView>(await grid.ask({ kind: "grid-campaigns", ...chosen }));
  };
  if (given.values["live"] === true) return live(io, asked, json);
  const items = await asked();
  if (given.values["errors"] === true) return errors(io, grid, items, campaigns.length > 0 || user !== undefined, json);
  if (given.values["by-user"] === true) {
    const sums = userSums(items);
    io.out(json ? jsonText({ items: sums, total: sums.length }) : usersText(sums));
    return 0;
  }
  const is_full = given.values["f"] === true;
  const full = is_full ? await Promise.all(items.map(async (item) => ({ ...item, jobs: await allJobs(grid, item.id) }))) : [];
  if (json) {
    const shown = is_full ? full : items;
    io.out(jsonText(campaigns.length === 1 ? shown[0] : { items: shown, total: shown.length }));
  } else io.out(is_full ? full.map(fullText).join("\n") : summaryText(items));
  return 0;
}

/** Shows open events: of these campaigns; if no campaign was chosen, also those of clusters. */
async function errors(io: CommandIo, grid: Grid, items: readonly GridCampaignView[], isChosen: boolean, json: boolean): Promise<number> {
  const ids = new Set(items.map(({ id }) => id));
  const all = itemsOf<GridEventView>(await grid.ask({ kind: "grid-events", closed: false }));
  const open = all.filter(({ campaign }) => (campaign === null ? !isChosen : ids.has(campaign)));
  io.out(json ? jsonText({ items: open, total: open.length }) : errorsText(open));
  return 0;
}

const LIVE_PAUSE_MS = 2000;

async function live(io: CommandIo, asked: () => Promise<readonly GridCampaignView[]>, json: boolean): Promise<number> {
  if (json) throw new Misuse("--live and -F exclude each other");
  if (!io.stdoutIsTty) throw new Misuse("--live needs a terminal; without one, use gridstat -F json");
  io.out("\u001b[2J");
  for (;;) {
    const items = await asked();
    io.out(liveText(items, Date.now() / 1000));
    if (isOver(items)) return 0;
    await sleep(LIVE_PAUSE_MS);
  }
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
