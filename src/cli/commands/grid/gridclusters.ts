// gridclusters: shows the clusters of the grid, adds and removes them (docs/campaigns.md).

import { resolve } from "node:path";
import type { GridClusterView } from "#protocol/grid-messages.ts";
import type { Command, CommandIo } from "../../command.ts";
import { type Given, type Grid, gridCommand, jsonText, Misuse, textOption, wantsJson } from "../../grid/grid-command.ts";
import { barText, itemsOf, tableText } from "../../grid/tables.ts";

const USAGE = `Usage: gridclusters [-b] [-F json]
       gridclusters --add NAME --type partita|pbs|slurm|gridengine|oar [options]
       gridclusters --remove NAME | --disable NAME | --enable NAME
       gridclusters --help | --version
Shows the clusters of the grid. Managers of the grid add and remove clusters.
  -b                     also shows a bar of the resources in use
  --conf FILE            partita, pbs: pbs.conf; slurm: slurm.conf; oar: oar.conf; gridengine: a file of NAME=VALUE lines
  --partition NAME       partita: the partition; slurm: the partition
  --queue NAME           pbs, gridengine, oar: the queue
  --bin DIR              the directory of the cluster's programs
  --url URL              oar: the REST API
  --credentials FILE     oar: a file with mode 0600
  --option NAME=VALUE    another option of the type; may be repeated with commas: a=1,b=2
  --resources TEXT       what a job asks for if its campaign does not say
  --users NAME,...       users whose campaigns prefer the cluster
  --mapping A=B,...      names of the grid's users on the cluster
`;

/** Options that are passed on to the adapter of the cluster. */
const PASSED = ["conf", "partition", "queue", "bin", "url", "credentials"] as const;
const PATHS: ReadonlySet<string> = new Set(["conf", "bin", "credentials"]);
const text = { type: "string" } as const;

export const run: Command = gridCommand(
  "gridclusters",
  USAGE,
  {
    ...{ b: { type: "boolean", short: "b" }, F: { type: "string", short: "F" } },
    ...{ add: text, type: text, remove: text, disable: text, enable: text, option: text, resources: text, users: text, mapping: text },
    ...Object.fromEntries(PASSED.map((name) => [name, text])),
  },
  gridclusters,
);

async function gridclusters(io: CommandIo, given: Given, grid: Grid): Promise<number> {
  const json = wantsJson(given);
  if (given.operands.length > 0) throw new Misuse(`${given.operands[0]}: an operand is not expected`);
  const actions = ["add", "remove", "disable", "enable"].filter((name) => textOption(given, name) !== undefined);
  if (actions.length > 1) throw new Misuse(`--${actions.join(" and --")} exclude each other`);
  const [action] = actions;
  const name = textOption(given, action ?? "") ?? "";
  if (action === "add") await add(io, given, grid, name);
  else if (action === "remove" || action === "disable" || action === "enable")
    await grid.ask({ kind: "grid-cluster-change", name, action });
  else await show(io, given, grid, json);
  if (json && action !== undefined) io.out(jsonText({ name }));
  return 0;
}

async function add({ cwd }: CommandIo, given: Given, grid: Grid, name: string): Promise<void> {
  const type = textOption(given, "type");
  if (type === undefined) throw new Misuse("--type is missing");
  const options: Record<string, string> = { ...pairsOf(textOption(given, "option") ?? "", "--option") };
  for (const each of PASSED) {
    const value = textOption(given, each);
    if (value !== undefined) options[each] = PATHS.has(each) ? resolve(cwd, value) : value;
  }
  const users = (textOption(given, "users") ?? "").split(",").filter((user) => user !== "");
  const mapping = pairsOf(textOption(given, "mapping") ?? "", "--mapping");
  const resources = textOption(given, "resources");
  await grid.ask({ kind: "grid-cluster-add", name, type, options, users, mapping, ...(resources === undefined ? {} : { resources }) });
}

function pairsOf(list: string, option: string): Record<string, string> {
  const pairs = list.split(",").filter((pair) => pair !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at <= 0) throw new Misuse(`${option} ${pair}: NAME=VALUE is expected`);
      return [pair.slice(0, at), pair.slice(at + 1)] as const;
    }),
  );
}

async function show(io: CommandIo, given: Given, grid: Grid, json: boolean): Promise<void> {
  const answer = await grid.ask({ kind: "grid-clusters" });
  if (json) return io.out(jsonText(answer));
  const bars = given.values["b"] === true;
  const rows = itemsOf<GridClusterView>(answer).map((each) => [
    ...[each.name, each.type, each.state, String(each.resources ?? "-"), String(each.free ?? "-")],
    ...[String(each.campaigns_running), String(each.campaigns_waiting)],
    ...(bars ? [each.resources === null || each.free === null ? "" : barText(1 - each.free / Math.max(1, each.resources))] : []),
    each.text,
  ]);
  const head = ["name", "type", "state", "resources", "free", "running", "waiting", ...(bars ? ["in use"] : []), "says"];
  io.out(tableText(head, rows));
}
