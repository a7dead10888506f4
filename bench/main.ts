// npm run bench: the rows of the budget (docs/bench.md), as a table and as JSON, with the machine's load.

import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { arrayRows } from "./arrays.ts";
import { curves } from "./curves.ts";
import { freezeRows } from "./freeze.ts";
import { hostRows } from "./hosts.ts";
import { liveRows, machineRows, singleCommandRows } from "./live.ts";
import { momRows } from "./moms.ts";
import { peerFigures } from "./peers.ts";
import { replayRows } from "./replay.ts";
import { isWithin, type Row } from "./row.ts";
import { rowsReadRows } from "./rows-read.ts";
import { runnerRows } from "./runners.ts";
import { rows as cycleRows } from "./sched-cycle.ts";
import { rows as resvRows } from "./sched-resvs.ts";
import { startRows } from "./starts.ts";
import { storeRows } from "./stores.ts";

const NOT_MEASURED = ["the machine's other work: figures of a busy machine are worse"];

const PARTS = [
  "live",
  "commands",
  "starts",
  "arrays",
  "freeze",
  "hosts",
  "moms",
  "runners",
  "cycle",
  "replay",
  "rows",
  "store",
  "peers",
  "curves",
];
const USAGE = `usage: npm run bench [-- --only PART] [--quick] [--json FILE] [--svg FILE]
  --only PART   one part: ${PARTS.join(", ")} (commands and curves run only when named)
  --quick       without the rows of 100,000 jobs
  --json FILE   the figures as JSON, too
  --svg FILE    the picture of curves (default docs/cycle-cost.svg)
`;

const values = readOptions();
const say = (text: string): void => void process.stderr.write(`bench: ${text}\n`);
const wants = (part: string): boolean => values.only === undefined || values.only === part;

if (values.only === "curves") {
  writeFileSync(values.svg, curves(say));
  say(`the picture is ${values.svg}`);
  process.exit(0);
}
const load_before = loadavg()[0] ?? Number.NaN;
const rows: Row[] = [...machineRows()];
if (wants("cycle")) {
  say("scheduling cycles");
  for (const row of [...(await cycleRows()), ...resvRows()])
    rows.push({ work: `cycle: ${row.name}`, value: row.value, unit: row.unit, limit: row.limit });
}
if (wants("replay")) rows.push(...replayRows());
if (wants("rows")) rows.push(...rowsReadRows());
if (wants("live")) rows.push(...(await liveRows({ jobs_large: !values.quick, say })));
if (wants("store")) rows.push(...(await storeRows({ jobs_large: !values.quick, say })));
if (values.only === "commands") rows.push(...(await singleCommandRows()));
if (wants("starts")) rows.push(...(await startRows(say)));
if (wants("arrays")) rows.push(...(await arrayRows(say)));
if (wants("freeze")) rows.push(...(await freezeRows(say)));
if (wants("hosts")) rows.push(...(await hostRows(say)));
if (wants("moms")) rows.push(...(await momRows(say)));
if (wants("runners")) rows.push(...(await runnerRows(say)));
const absent: string[] = [];
if (wants("peers")) {
  say("peers");
  const peers = await peerFigures();
  absent.push(...peers.absent);
  for (const peer of peers.figures) {
    rows.push({ work: `${peer.name}: one submission`, value: peer.submit_ms, unit: "ms", limit: null });
    rows.push({
      work: `${peer.name}: /bin/true one after another, submission to last end`,
      value: peer.jobs_per_s,
      unit: "/s",
      limit: null,
    });
  }
}
const load_after = loadavg()[0] ?? Number.NaN;
process.stdout.write(table(rows));
process.stdout.write(`\nload ${load_before.toFixed(2)} before, ${load_after.toFixed(2)} after; ${cpus().length} cores\n`);
for (const name of absent) process.stdout.write(`not measured: ${name} is not up on this machine\n`);
for (const what of NOT_MEASURED) process.stdout.write(`not measured: ${what}\n`);
if (values.json !== undefined) {
  const result = {
    date: new Date().toISOString(),
    cores: cpus().length,
    load_before,
    load_after,
    rows: rows.map((row) => ({ ...row, ok: isWithin(row) })),
    absent,
    not_measured: NOT_MEASURED,
  };
  writeFileSync(values.json, `${JSON.stringify(result, null, 2)}\n`);
}

function table(all: readonly Row[]): string {
  const width = Math.max(...all.map((row) => row.work.length), 4);
  const line = (work: string, value: string, limit: string, ok: string): string =>
    `${work.padEnd(width)}  ${value.padStart(12)}  ${limit.padStart(12)}  ${ok}\n`;
  let text = line("work", "measured", "budget", "");
  for (const row of all) {
    const ok = isWithin(row);
    text += line(
      row.work,
      figure(row.value, row.unit),
      row.limit === null ? "" : `${row.unit === "/s" ? ">=" : "<="} ${figure(row.limit, row.unit)}`,
      ok === null ? "" : ok ? "ok" : "OVER",
    );
  }
  return text;
}

function figure(value: number, unit: Row["unit"]): string {
  if (Number.isNaN(value)) return "-";
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : unit === "s" ? 3 : 2;
  return `${value.toFixed(digits)}${unit === "/s" ? unit : ` ${unit}`}`;
}

function readOptions(): { json?: string; svg: string; only?: string; quick: boolean } {
  try {
    const { values: given } = parseArgs({
      options: {
        help: { type: "boolean", short: "h" },
        json: { type: "string" },
        svg: { type: "string", default: "docs/cycle-cost.svg" },
        only: { type: "string" },
        quick: { type: "boolean", default: false },
      },
    });
    if (given.help === true) {
      process.stdout.write(USAGE);
      process.exit(0);
    }
    if (given.only !== undefined && !PARTS.includes(given.only)) throw new Error(`no such part: ${given.only}`);
    return given;
  } catch (error) {
    process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    process.exit(2);
  }
}
