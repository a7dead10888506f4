// gridnotify: subscribes to notifications about campaigns (docs/campaigns.md).

import type { GridSubscriptionView } from "#protocol/grid-messages.ts";
import type { Command, CommandIo } from "../../command.ts";
import { type Given, type Grid, gridCommand, jsonText, Misuse, textOption, wantsJson } from "../../grid/grid-command.ts";
import { itemsOf, tableText } from "../../grid/tables.ts";

const USAGE = `Usage: gridnotify [-F json]
       gridnotify -m ADDRESS | -w URL [-s low|medium|high] [-F json]
       gridnotify -u -m ADDRESS | -u -w URL
       gridnotify --help | --version
Shows what you are notified about, and subscribes to notifications.
  -m ADDRESS   by mail
  -w URL       by a POST of JSON to a URL that the administrator allows
  -s SEVERITY  from this severity on: low (everything, also the end of a campaign), medium (failed jobs), high (a campaign pauses on a cluster). Default: low
  -u           ends a subscription
`;

const flag = (short: string) => ({ type: "boolean", short }) as const;
const text = (short: string) => ({ type: "string", short }) as const;

export const run: Command = gridCommand(
  "gridnotify",
  USAGE,
  { m: text("m"), w: text("w"), j: text("j"), s: text("s"), u: flag("u"), F: text("F") },
  gridnotify,
);

async function gridnotify(io: CommandIo, given: Given, grid: Grid): Promise<number> {
  const json = wantsJson(given);
  if (given.operands.length > 0) throw new Misuse(`${given.operands[0]}: an operand is not expected`);
  if (textOption(given, "j") !== undefined) throw new Misuse("-j: XMPP is not there; use -m or -w");
  const [mail, url, severity] = [textOption(given, "m"), textOption(given, "w"), severityIn(given)];
  if (mail !== undefined && url !== undefined) throw new Misuse("-m and -w exclude each other");
  const address = mail ?? url;
  const method = mail === undefined ? "webhook" : "mail";
  const ends = given.values["u"] === true;
  if (address === undefined) {
    if (ends || severity !== undefined) throw new Misuse(`${ends ? "-u" : "-s"} needs -m or -w`);
    await show(io, grid, json);
    return 0;
  }
  if (ends && severity !== undefined) throw new Misuse("-u and -s exclude each other");
  if (ends) await grid.ask({ kind: "grid-unsubscribe", method, address });
  else await grid.ask({ kind: "grid-subscribe", method, address, severity: severity ?? "low" });
  if (json) io.out(jsonText(ends ? { method, address } : { method, address, severity: severity ?? "low" }));
  return 0;
}

function severityIn(given: Given): GridSubscriptionView["severity"] | undefined {
  const severity = textOption(given, "s");
  if (severity === undefined || severity === "low" || severity === "medium" || severity === "high") return severity;
  throw new Misuse(`-s ${severity}: one of low, medium, high`);
}

async function show(io: CommandIo, grid: Grid, json: boolean): Promise<void> {
  const answer = await grid.ask({ kind: "grid-subscriptions" });
  if (json) return io.out(jsonText(answer));
  const rows = itemsOf<GridSubscriptionView>(answer).map(({ user, method, severity, address }) => [user, method, severity, address]);
  io.out(tableText(["user", "method", "severity", "address"], rows));
}
