// Writes nodes as text, dsv and JSON: the long listing, -S and -Sj (docs/reference/commands.md 4). Pure.

import type { WireAttrs } from "#protocol/messages.ts";
import { nth } from "#support/assert.ts";
import { ctimeOfText } from "../dates.ts";
import { jsonObject, jsonValue, quote } from "../json.ts";
import type { NodeFormat } from "./arguments.ts";
import { hostOf, type Node, resourcesOf, text } from "./hosts.ts";

const UNSET = "--";

/** Writes a node with all its attributes, one on each line. */
export function longNode(node: Node): string {
  let lines = `${node.id}\n`;
  eachAttribute(node.attrs, (name, value) => {
    lines += `     ${name} = ${/_time$/.test(name) ? ctimeOfText(value) : value}\n`;
  });
  return `${lines}\n`;
}

/** Writes a node as `Name=node1|Mom=...`. Lists have no blanks. */
export function dsvNode(node: Node, delimiter: string): string {
  const fields = [`Name=${node.id}`];
  eachAttribute(node.attrs, (name, value) => {
    const shown = /_time$/.test(name) ? ctimeOfText(value) : name === "jobs" || name === "resv" ? value.replaceAll(", ", ",") : value;
    fields.push(`${name}=${shown.replaceAll(delimiter, `\\${delimiter}`)}`);
  });
  return `${fields.join(delimiter)}\n`;
}

function eachAttribute(attrs: WireAttrs, line: (name: string, value: string) => void): void {
  for (const [name, value] of Object.entries(attrs)) {
    if (typeof value === "string") line(name, value);
    else if (Array.isArray(value)) line(name, value.join(","));
    else
      for (const [resource, amount] of Object.entries(value))
        line(`${name}.${resource}`, typeof amount === "string" ? amount : amount.join(","));
  }
}

/** Writes a node as JSON. Its members are indented by three levels, as they are in a document of nodes. */
export function jsonNode(node: Node): string {
  const members = Object.entries(node.attrs).map(([name, value]): [string, string] => {
    if (name === "jobs" && typeof value === "string") return [name, jsonList(jobsOf(node))];
    if (typeof value === "string") return [name, jsonValue(value, 3)];
    if (Array.isArray(value)) return [name, quote(value.join(","))];
    const resources = Object.entries(resourcesOf(node, name)).filter(
      ([, amount]) => name !== "resources_assigned" || !/^0[kmgtp]?[bw]?$/.test(amount),
    );
    return [
      name,
      jsonObject(
        resources.map(([resource, amount]) => [resource, jsonValue(amount, 4)] as const),
        3,
      ),
    ];
  });
  return jsonObject(members, 2);
}

const jsonList = (values: readonly string[]): string => `[${values.map(quote).join(", ")}]`;

/** Returns the ids of the jobs on a node, each once. */
export function jobsOf(node: Node): string[] {
  const slots = (text(node, "jobs") ?? "").split(",").map((slot) => slot.trim().replace(/\/[^/]*$/, ""));
  return [...new Set(slots.filter((id) => id !== ""))];
}

/** One field of a summary: its name in dsv, its name in JSON, and its text. */
type Field = { readonly dsv: string; readonly json: string; readonly value: string };

/** Returns the fields of -S. */
function summaryFields(node: Node, uncut: boolean): readonly Field[] {
  const available = resourcesOf(node, "resources_available");
  return [
    { dsv: "state", json: "State", value: stateOf(node, uncut) },
    { dsv: "OS", json: "OS", value: available["OS"] ?? UNSET },
    { dsv: "hardware", json: "hardware", value: available["hardware"] ?? UNSET },
    { dsv: "host", json: "host", value: hostOf(node) },
    { dsv: "queue", json: "queue", value: text(node, "queue") ?? UNSET },
    { dsv: "mem", json: "Memory", value: shortSize(amountOf(available["mem"] ?? "0kb")) },
    ...["ncpus", "nmics", "ngpus"].map((name) => ({ dsv: name, json: name, value: available[name] ?? "0" })),
    { dsv: "comment", json: "comment", value: text(node, "comment") ?? UNSET },
  ];
}

/** Returns the fields of -Sj. suspended: ids of suspended jobs. */
function jobFields(node: Node, uncut: boolean, suspended: ReadonlySet<string>): readonly Field[] {
  const jobs = jobsOf(node);
  const idle = jobs.filter((id) => suspended.has(id)).length;
  const amount = (name: string): Field => ({ dsv: `${name}(f/t)`, json: `${name} f/t`, value: freeOfTotal(node, name) });
  return [
    { dsv: "state", json: "State", value: stateOf(node, uncut) },
    { dsv: "njobs", json: "Total Jobs", value: String(jobs.length) },
    { dsv: "run", json: "Running Jobs", value: String(jobs.length - idle) },
    { dsv: "susp", json: "Suspended Jobs", value: String(idle) },
    ...["mem", "ncpus", "nmics", "ngpus"].map(amount),
  ];
}

function stateOf(node: Node, uncut: boolean): string {
  const state = text(node, "state") ?? UNSET;
  return uncut ? state : nth(state.split(","), 0);
}

function freeOfTotal(node: Node, name: string): string {
  const total = resourcesOf(node, "resources_available")[name] ?? "0";
  const assigned = resourcesOf(node, "resources_assigned")[name] ?? "0";
  if (name !== "mem") return `${Number(total) - Number(assigned) || 0}/${total}`;
  return memoryOfTotal(total, assigned);
}

/** The largest number that is shown; a larger one is shown in the next unit. */
const SHOWN_MAX = 999;
const UNIT_LETTERS = ["", "k", "m", "g", "t", "p"] as const;
const UNIT_BITS = 10;

/**
 * Writes free and total memory, each in a unit in which it has at most three digits. The assigned amount is first converted to the unit of the total. Each
 * conversion to a larger unit rounds to the nearest number, as in PBS: if 200mb of 32gb are assigned, 32gb are free; if 33000mb of 64gb are assigned, 32gb are
 * free.
 */
function memoryOfTotal(total_text: string, assigned_text: string): string {
  const total = amountOf(total_text);
  const assigned = inUnit(amountOf(assigned_text), total.unit);
  return `${shortSize({ count: Math.max(0, total.count - assigned), unit: total.unit })}/${shortSize(total)}`;
}

type Amount = { readonly count: number; readonly unit: number };

/** Returns the number and the unit of a size (unit 0: bytes). A word counts as 8 bytes. A text that is not a size counts as 0kb. */
function amountOf(text: string): Amount {
  const match = /^(\d+)([kmgtp]?)([bw]?)$/i.exec(text);
  if (match === null) return { count: 0, unit: 1 };
  const unit = UNIT_LETTERS.indexOf(nth(match, 2).toLowerCase() as (typeof UNIT_LETTERS)[number]);
  return { count: Number(match[1]) * (/w/i.test(nth(match, 3)) ? 8 : 1), unit };
}

function inUnit({ count, unit }: Amount, wanted: number): number {
  if (unit >= wanted) return count * 2 ** (UNIT_BITS * (unit - wanted));
  return inUnit({ count: nextUnit(count), unit: unit + 1 }, wanted);
}

const nextUnit = (count: number): number => Math.round(count / 2 ** UNIT_BITS);

function shortSize({ count, unit }: Amount): string {
  if (unit < UNIT_LETTERS.length - 1 && (count > SHOWN_MAX || unit === 0)) return shortSize({ count: nextUnit(count), unit: unit + 1 });
  return `${count}${UNIT_LETTERS[unit]}b`;
}

const SUMMARY_HEADER =
  "vnode           state           OS       hardware host            queue        mem     ncpus   nmics   ngpus  comment\n" +
  "--------------- --------------- -------- -------- --------------- ---------- -------- ------- ------- ------- ---------\n";
const JOBS_HEADER =
  "                                                        mem       ncpus   nmics   ngpus\n" +
  "vnode           state           njobs   run   susp      f/t        f/t     f/t     f/t   jobs\n" +
  "--------------- --------------- ------ ----- ------ ------------ ------- ------- ------- -------\n";

// Widths of the columns. A negative width means that the column is left-aligned.
const SUMMARY_WIDTHS = [-15, -15, -8, -8, -15, -10, 8, 7, 7, 7];
const JOBS_WIDTHS = [-15, -15, 6, 5, 6, 12, 7, 7, 7];

/**
 * Writes the summary. For text and dsv, returns the finished text. For JSON, returns a pair (id, rendered value) for each node, which the caller inserts into
 * the document.
 */
export function summary(
  nodes: readonly Node[],
  how: {
    readonly jobs: boolean;
    readonly uncut: boolean;
    readonly format: NodeFormat;
    readonly delimiter: string;
    readonly suspended: ReadonlySet<string>;
  },
): string | readonly (readonly [id: string, rendered: string])[] {
  const fieldsOf = (node: Node): readonly Field[] =>
    how.jobs ? jobFields(node, how.uncut, how.suspended) : summaryFields(node, how.uncut);
  switch (how.format) {
    case "json":
      return nodes.map((node) => [node.id, jsonFields(node, fieldsOf(node), how.jobs)] as const);
    case "dsv":
      return nodes
        .map((node) => {
          const fields = [
            { dsv: "vnode", value: node.id },
            ...fieldsOf(node),
            ...(how.jobs ? [{ dsv: "jobs", value: jobsOf(node).join(",") }] : []),
          ];
          return `${fields.map(({ dsv, value }) => `${dsv}=${value.replaceAll(how.delimiter, `\\${how.delimiter}`)}`).join(how.delimiter)}\n`;
        })
        .join("");
    case "text": {
      const rows = nodes.map((node) =>
        row([node.id, ...fieldsOf(node).map(({ value }) => value), ...(how.jobs ? [jobNumbers(node)] : [])], how),
      );
      return (how.jobs ? JOBS_HEADER : SUMMARY_HEADER) + rows.join("");
    }
    default: {
      const unreachable: never = how.format;
      return unreachable;
    }
  }
}

function jsonFields(node: Node, fields: readonly Field[], jobs: boolean): string {
  const members = fields.map(({ json, value }) => [json, jsonValue(value, 3)] as const);
  return jsonObject(jobs ? [...members, ["jobs", jsonList(jobsOf(node))] as const] : members, 2);
}

/** Writes the numbers of the jobs on a node: `1.svr` -> `1`. */
function jobNumbers(node: Node): string {
  const numbers = jobsOf(node).map((id) => id.replace(/\..*$/, ""));
  return numbers.length === 0 ? UNSET : numbers.join(",");
}

function row(cells: readonly string[], how: { readonly jobs: boolean; readonly uncut: boolean }): string {
  const widths = how.jobs ? JOBS_WIDTHS : SUMMARY_WIDTHS;
  const shown = cells.map((cell, index) => {
    const width = widths[index];
    if (width === undefined) return cell;
    const cut = how.uncut ? cell : cell.slice(0, Math.abs(width));
    return width < 0 ? cut.padEnd(-width) : cut.padStart(width);
  });
  return `${shown.join(" ")}\n`;
}
