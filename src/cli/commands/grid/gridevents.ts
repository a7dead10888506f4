// gridevents: shows and fixes events (docs/campaigns.md).

import type { GridEventView } from "#protocol/grid-messages.ts";
import type { Command, CommandIo } from "../../command.ts";
import { type Given, type Grid, gridCommand, jsonText, Misuse, numberOf, textOption, wantsJson } from "../../grid/grid-command.ts";
import { itemsOf, tableText, timeText } from "../../grid/tables.ts";

const USAGE = `Usage: gridevents [-a] [-F json] [-c CAMPAIGN | CAMPAIGN]
       gridevents -f [-r] -e EVENT | -c CAMPAIGN
       gridevents --help | --version
Shows the open events of all campaigns, or of one.
  -a  also shows events that are closed
  -f  fixes an event, or all events of a campaign; tasks of fixed events are not run again
  -r  with -f: the tasks of the fixed events run again
`;

const flag = (short: string) => ({ type: "boolean", short }) as const;
const text = (short: string) => ({ type: "string", short }) as const;

export const run: Command = gridCommand(
  "gridevents",
  USAGE,
  { a: flag("a"), f: flag("f"), r: flag("r"), g: flag("g"), e: text("e"), c: text("c"), F: text("F") },
  gridevents,
);

async function gridevents(io: CommandIo, given: Given, grid: Grid): Promise<number> {
  const json = wantsJson(given);
  const [operand, ...more] = given.operands;
  if (more.length > 0) throw new Misuse("only one campaign may be given");
  const of_campaign = textOption(given, "c") ?? operand;
  const campaign = of_campaign === undefined ? undefined : numberOf(of_campaign, "a campaign");
  const of_event = textOption(given, "e");
  const event = of_event === undefined ? undefined : numberOf(of_event, "an event");
  if (given.values["f"] === true) {
    if ((event === undefined) === (campaign === undefined)) throw new Misuse("-f needs either -e EVENT or -c CAMPAIGN");
    const target = event === undefined ? { campaign: campaign ?? 0 } : { event };
    const answer = await grid.ask({ kind: "grid-fix", ...target, resubmit: given.values["r"] === true });
    if (json) io.out(jsonText(answer));
    return 0;
  }
  if (given.values["r"] === true) throw new Misuse("-r goes with -f");
  const answer = await grid.ask({
    kind: "grid-events",
    closed: given.values["a"] === true,
    ...(campaign === undefined ? {} : { campaign }),
  });
  if (json) io.out(jsonText(answer));
  else {
    const rows = itemsOf<GridEventView>(answer).filter(({ id }) => event === undefined || id === event);
    const cells = rows.map(({ id, time, class: kind, code, state, campaign: of, cluster, job, message }) => [
      ...[String(id), timeText(time), kind, code, state, String(of ?? "-"), cluster ?? "-", String(job ?? "-")],
      message,
    ]);
    io.out(tableText(["event", "time", "class", "code", "state", "campaign", "cluster", "job", "message"], cells));
  }
  return 0;
}
