// pbs_rstat: shows reservations (docs/reference/commands.md 5). `-F json` and `-F dsv` are extensions that follow qstat;
// `json` and `dsv` cannot be the id of a reservation.

import type { Command, CommandIo } from "#cli/command.ts";
import { asCommand, type Complex, statusItems } from "#cli/complex.ts";
import { ctimeOfText } from "#cli/dates.ts";
import { refusalStatus } from "#cli/errors.ts";
import { optionFault, scanOptions } from "#cli/getopt.ts";
import { RESV_STATE_WORDS } from "#model/resv-state.ts";
import type { StatusItem, WireAttrs } from "#protocol/messages.ts";
import { PBS_VERSION } from "#support/version.ts";
import { durationSeconds, shortTime } from "./resv-times.ts";

const USAGE = "Usage:\n\tpbs_rstat [-fFBS] [reservation-id]\n\tpbs_rstat --version\n";

export const run: Command = asCommand("pbs_rstat", USAGE, pbsRstat);

type Resv = Extract<StatusItem, { readonly attrs: unknown }>;
type Layout = "table" | "ids" | "full" | "json" | "dsv";

export async function pbsRstat(io: CommandIo, complex: Complex): Promise<number> {
  const scan = scanOptions(io.argv, "fFBS");
  const faults = scan.events.flatMap((event) => optionFault("pbs_rstat", event) ?? []);
  if (faults.length > 0) {
    io.err(faults.map((fault) => `${fault}\n`).join("") + USAGE);
    return 1;
  }
  const letters = scan.events.flatMap((event) => (event.kind === "option" ? [event.letter] : []));
  const { layout, ids } = layoutOf(letters, scan.operands);
  const link = await complex.connect();
  try {
    const { reply, items } = await statusItems(link, { kind: "status", object: "resv", ids });
    if (!reply.ok) {
      io.err(`pbs_rstat: ${reply.text ?? `Server returned error ${reply.code}`}\n`);
      return refusalStatus(reply.code);
    }
    const wide = layout === "table" && (await hasWideIds(link));
    for (const item of items) if ("code" in item) io.err(`pbs_rstat: ${item.text}\n`);
    const resvs = items.filter((item): item is Resv => "attrs" in item);
    io.out(await shown(resvs, layout, wide, complex));
    return 0;
  } finally {
    link.close();
  }
}

/** Chooses the layout of the output. If there are several option letters, the last one counts. */
function layoutOf(letters: readonly string[], operands: readonly string[]): { readonly layout: Layout; readonly ids: readonly string[] } {
  const letter = letters.at(-1) ?? "S";
  const [first, ...others] = operands;
  if (letter === "F" && (first === "json" || first === "dsv")) return { layout: first, ids: others };
  return { layout: letter === "B" ? "ids" : letter === "S" ? "table" : "full", ids: operands };
}

const SHORT_ID_MAX = 9_999_999;

/** Whether the server may have ids of more than seven digits, which need a wider column. */
async function hasWideIds(link: Parameters<typeof statusItems>[0]): Promise<boolean> {
  const { items } = await statusItems(link, { kind: "status", object: "server", ids: [], attrs: ["max_job_sequence_id"] });
  const [server] = items;
  return server !== undefined && "attrs" in server && Number(server.attrs["max_job_sequence_id"] ?? 0) > SHORT_ID_MAX;
}

async function shown(resvs: readonly Resv[], layout: Layout, wide: boolean, complex: Complex): Promise<string> {
  switch (layout) {
    case "ids":
      return resvs.map(({ id }) => `Resv ID: ${id}\n`).join("");
    case "full":
      return resvs.map(fullText).join("");
    case "table":
      return resvs.length === 0 ? "" : tableText(resvs, wide, complex.now_ms());
    case "json":
    case "dsv":
      return structured(resvs, layout, complex);
    default: {
      const unreachable: never = layout;
      return unreachable;
    }
  }
}

function tableText(resvs: readonly Resv[], wide: boolean, now_ms: number): string {
  const [id_width, queue_width] = wide ? [15, 13] : [10, 8];
  const header = `${"Resv ID".padEnd(id_width)} ${"Queue".padEnd(queue_width)} User     State             Start / Duration / End              \n`;
  const rows = resvs.map(({ id, attrs }) => {
    const cell = (text: string, width: number): string => text.slice(0, width).padEnd(width);
    const time = (name: string): string => (text(attrs, name) === "" ? "--" : shortTime(Number(text(attrs, name)), now_ms));
    const start = time("reserve_start").padStart(17);
    const duration = durationSeconds(text(attrs, "reserve_duration"));
    const state = RESV_STATE_WORDS[Number(text(attrs, "reserve_state"))]?.[0] ?? "";
    return `${cell(id, id_width)} ${cell(text(attrs, "queue"), queue_width)} ${cell(text(attrs, "Authorized_Users"), 8)} ${cell(state, 5)} ${start} / ${duration} / ${time("reserve_end").padEnd(17)}\n`;
  });
  return `${header}${"-".repeat(wide ? 79 : 69)}\n${rows.join("")}`;
}

function text(attrs: WireAttrs, name: string): string {
  const value = attrs[name];
  return typeof value === "string" ? value : Array.isArray(value) ? value.join(",") : "";
}

/** Attributes that PBS leaves out of the full listing. */
const UNSHOWN: ReadonlySet<string> = new Set(["reserve_execvnodes", "reserve_standing", "reserve_timezone"]);
const TIMES: ReadonlySet<string> = new Set(["reserve_start", "reserve_end", "ctime", "mtime", "reserve_retry"]);

function fullText({ id, attrs }: Resv): string {
  let lines = `Resv ID: ${id}\n`;
  for (const [name, value] of Object.entries(attrs)) {
    if (UNSHOWN.has(name)) continue;
    if (typeof value === "string" || Array.isArray(value))
      lines += `${name} = ${valueText(name, typeof value === "string" ? value : value.join(","))}\n`;
    else for (const [resource, amount] of Object.entries(value)) lines += `${name}.${resource} = ${amount}\n`;
  }
  return `${lines}\n`;
}

function valueText(name: string, value: string): string {
  if (TIMES.has(name)) return ctimeOfText(value);
  if (name === "reserve_duration") return durationSeconds(value);
  return name === "reserve_state" ? (RESV_STATE_WORDS[Number(value)]?.[1] ?? value) : value;
}

/** Writes reservations with all attributes, in the form that qstat uses for jobs. */
async function structured(resvs: readonly Resv[], layout: "json" | "dsv", complex: Complex): Promise<string> {
  const { dsvLine, jsonAttrs, jsonDocument } = await import("#cli/long-format.ts");
  const plain = resvs.map(({ id, attrs }) => ({
    id,
    attrs: Object.fromEntries(
      Object.entries(attrs).map(([name, value]) => [name, typeof value === "string" ? valueText(name, value) : value]),
    ) as WireAttrs,
  }));
  if (layout === "dsv") return plain.map(({ id, attrs }) => dsvLine("Resv ID: ", id, attrs, "|")).join("");
  const document = jsonDocument("resvs", {
    now_s: Math.floor(complex.now_ms() / 1000),
    version: PBS_VERSION,
    server: complex.conf().server,
  });
  return plain.map(({ id, attrs }) => document.object(id, jsonAttrs(attrs, 2))).join("") + document.end();
}
