// `partita report`: sums the accounting records of a period.

import { join } from "node:path";
import { GROUPINGS, type Grouping, UsageTable } from "#report/usage-table.ts";
import { usageCsv, usageObjects, usageTable } from "#report/usage-text.ts";
import type { Conf } from "#support/conf.ts";
import { AdminError, isMember } from "../complex/complex-home.ts";
import { askServer } from "../complex/daemons.ts";
import { table } from "../hosts/table.ts";
import { accountingFiles, readPieces, utf8Of } from "./accounting-files.ts";

type ReportOptions = {
  /** groupings with commas between them */
  readonly by: string;
  readonly from: string | null;
  readonly to: string | null;
  /** only jobs of these users; empty: all */
  readonly users: readonly string[];
  /** a directory of accounting files; null: the complex's own */
  readonly accounting: string | null;
  readonly format: "text" | "json" | "csv";
};

/** Returns the report as text. progress: called with the share of the files that was read, from 0 to 1. Throws AdminError. */
export async function usageReport(conf: () => Conf, options: ReportOptions, progress: (share: number) => void): Promise<string> {
  const by = groupingsOf(options.by);
  const [from, to] = [dayOf(options.from, "from"), dayOf(options.to, "to")];
  if (from !== null && to !== null && from > to) throw new AdminError(`--from ${options.from} is after --to ${options.to}`);
  const files = accountingFiles(options.accounting ?? ownDirectory(conf()), from, to);
  const partitions = by.includes("partition") ? await partitionsOfVnodes(conf()) : null;
  const users = options.users.length === 0 ? null : new Set(options.users);
  const usage = new UsageTable(by, { from, to, users }, (vnode) => partitions?.get(vnode) ?? "");
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  let done = 0;
  for (const file of files) {
    await readPieces(file, (text) => usage.add(text));
    done += file.bytes;
    progress(bytes === 0 ? 1 : done / bytes);
  }
  const rows = usage.rows().map((row) => ({ ...row, key: row.key.map(utf8Of) }));
  if (options.format === "csv") return usageCsv(by, rows);
  if (options.format === "json")
    return `${JSON.stringify({ by, from, to, records: usage.records, rows: usageObjects(by, rows) }, null, 2)}\n`;
  if (rows.length === 0) return "No job has ended in this period.\n";
  const [head = [], ...body] = usageTable(by, rows);
  return `${table(head, body).join("\n")}\n`;
}

function groupingsOf(text: string): readonly Grouping[] {
  const words = text.split(",");
  const wrong = words.find((word) => !isGrouping(word));
  if (wrong !== undefined) throw new AdminError(`--by ${wrong}: there are ${GROUPINGS.join(", ")}; several with commas between them`);
  return words.filter(isGrouping);
}

const isGrouping = (word: string): word is Grouping => (GROUPINGS as readonly string[]).includes(word);

/** Returns the first or last day that an option names: YYYY-MM-DD, or a whole month YYYY-MM. */
function dayOf(text: string | null, option: "from" | "to"): string | null {
  if (text === null) return null;
  const match = /^(\d{4})-(\d\d)(?:-(\d\d))?$/.exec(text);
  const [month, day] = [Number(match?.[2]), Number(match?.[3] ?? 1)];
  if (match === null || month < 1 || month > 12 || day < 1 || day > 31)
    throw new AdminError(`--${option} ${text} is not a day YYYY-MM-DD or a month YYYY-MM`);
  if (match[3] !== undefined) return text;
  return option === "from" ? `${text}-01` : `${text}-31`;
}

function ownDirectory(conf: Conf): string {
  if (isMember(conf))
    throw new AdminError("the accounting files are on the server's host: call partita report there, or use --accounting DIR");
  return join(conf.home, "server_priv", "accounting");
}

/** Returns the present partition of each vnode, because accounting records do not name partitions. Throws AdminError if the server does not answer. */
async function partitionsOfVnodes(conf: Conf): Promise<ReadonlyMap<string, string>> {
  const seen = await askServer(conf);
  if (seen === null) throw new AdminError("--by partition asks the server for the partitions of vnodes, but the server does not answer");
  return new Map(
    seen.nodes.flatMap((node) => {
      const partition = "attrs" in node ? node.attrs["partition"] : undefined;
      return "attrs" in node ? [[node.id, typeof partition === "string" ? partition : "pbs-default"] as const] : [];
    }),
  );
}
