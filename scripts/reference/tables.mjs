// The tables of docs/reference that are made from the tables of the sources. A page holds each between two comments:
//
//   <!-- table: NAME -->
//   ...
//   <!-- end of table -->

import {
  CHECKPOINTING_FIELDS,
  CLUSTER_FIELDS,
  DUPLICATION_FIELDS,
  ERROR_BUDGET_FIELDS,
  INPUT_FIELDS,
  TOP_FIELDS,
} from "../../src/grid/jdl/fields.ts";
import { jdlSchema } from "../../src/grid/jdl/schema.ts";
import { JOB_STATES, SUBSTATE } from "../../src/model/job-state.ts";
import { PBSE, pbseText } from "../../src/model/pbse.ts";
import { BUILTIN_RESOURCES } from "../../src/model/resource-table.ts";
import { RESV_STATE_WORDS } from "../../src/model/resv-state.ts";
import { HOOK_EVENTS } from "../../src/model/tables/hook-attributes.ts";
import { ATTRIBUTE_TABLES } from "../../src/model/tables/tables.ts";
import { OBSOLETE, SCHED_CONFIG_KEYS } from "../../src/sched/policy/sched-config-keys.ts";
import { REASONS } from "../../src/sched/shapes/reasons.ts";
import { LOG_EVENT } from "../../src/support/log-event.ts";

const BLOCK = /^<!-- table: (.+) -->\n[\s\S]*?^<!-- end of table -->$/gm;

const READ = { all: "all", op: "operator", mgr: "manager", none: "nobody" };
const SET = { user: "user", op: "operator", mgr: "manager", root: "root", pbs: "PBS" };

/** Texts of the tables by name. */
export const TABLES = new Map([
  ...Object.entries(ATTRIBUTE_TABLES).map(([object, table]) => [`attributes of ${object}`, () => attributes(table)]),
  ["resources", resources],
  ["hook events", () => `\`${HOOK_EVENTS.join("`, `")}\``],
  ["errors", errors],
  [
    "job states",
    () =>
      markdown(
        ["letter", "state"],
        Object.entries(JOB_STATES).map(([letter, text]) => [letter, text]),
      ),
  ],
  [
    "job substates",
    () =>
      markdown(
        ["substate", "name"],
        Object.entries(SUBSTATE).map(([name, number]) => [number, name]),
      ),
  ],
  [
    "reservation states",
    () =>
      markdown(
        ["number", "short", "long"],
        RESV_STATE_WORDS.map(([short, long], at) => [at, short, long]),
      ),
  ],
  ["reasons", reasons],
  ["sched_config", schedConfig],
  [
    "obsolete sched_config",
    () =>
      markdown(
        ["name", "the log says to use instead"],
        Object.entries(OBSOLETE).map(([name, use]) => [code(name), use || "-"]),
      ),
  ],
  ["log events", logEvents],
  ["campaign keys", () => fields(TOP_FIELDS)],
  ["campaign keys of clusters", () => fields(CLUSTER_FIELDS)],
  [
    "campaign keys of parts",
    () =>
      fields({
        ...prefixed("checkpointing", CHECKPOINTING_FIELDS),
        ...prefixed("duplication", DUPLICATION_FIELDS),
        ...prefixed("error_budget", ERROR_BUDGET_FIELDS),
        ...prefixed("inputs[]", INPUT_FIELDS),
      }),
  ],
]);

/** Files in docs/reference that are made as a whole, by name. */
export const FILES = new Map([["campaign.schema.json", () => `${JSON.stringify(jdlSchema(), null, 2)}\n`]]);

/** The page with up-to-date tables. An unknown table name is an error. */
export function withTables(page) {
  return page.replace(BLOCK, (_, name) => {
    const table = TABLES.get(name);
    if (table === undefined) throw new Error(`there is no table "${name}": ${[...TABLES.keys()].join(", ")}`);
    return `<!-- table: ${name} -->\n${table()}\n<!-- end of table -->`;
  });
}

/** Names of the tables that a page holds. */
export function tablesOf(page) {
  return [...page.matchAll(BLOCK)].map(([, name]) => name);
}

function attributes({ object, rows }) {
  const only = rows.some((row) => row.only !== undefined);
  const head = ["attribute", "type", "default", "read", "set", ...(only ? ["queues"] : []), "meaning"];
  return markdown(
    head,
    rows.map((row) => [
      code(row.alias === undefined ? row.name : `${row.name}, ${row.alias}`),
      row.type,
      defaultOf(row, object),
      READ[row.read],
      SET[row.set],
      ...(only ? [row.only ?? "both"] : []),
      [row.help, ...notes(row)].join("; "),
    ]),
  );
}

/** `(x)`: the value x applies while the attribute is unset, but is not shown. */
function defaultOf(row, object) {
  if (row.default !== undefined) return code(valueText(row.default, object));
  return row.assumed === undefined ? "-" : `(${code(valueText(row.assumed, object))})`;
}

function valueText(value, object) {
  if (typeof value === "boolean") return object === "hook" ? String(value) : value ? "True" : "False";
  if (Array.isArray(value)) return value.join(",");
  if (typeof value === "object")
    return Object.entries(value)
      .map(([name, amount]) => `${name}=${amount}`)
      .join(",");
  return String(value);
}

function notes(row) {
  const words = row.keywords === undefined || row.keywords.length < 2 ? [] : [`one of ${row.keywords.map(code).join(", ")}`];
  const lowest = row.min === undefined ? [] : [`at least ${row.min}`];
  const highest = row.max === undefined ? [] : [`at most ${row.max}`];
  return [
    ...words,
    ...lowest,
    ...highest,
    ...(row.rangeError === undefined ? [] : [`beyond that: error ${row.rangeError}`]),
    ...(row.createOnly ? ["only when the object is made"] : []),
    ...(row.runAlterable ? ["may be altered while the job runs"] : []),
    ...(row.hidden ? ["hidden"] : []),
    ...(row.restored ? ["unset restores the default"] : []),
  ];
}

function resources() {
  return markdown(
    ["resource", "type", "flags", "set", "meaning"],
    BUILTIN_RESOURCES.map(({ name, type, flags, set, help, runAlterable }) => [
      code(name),
      type,
      flags || "-",
      SET[set],
      runAlterable ? `${help}; may be altered while the job runs` : help,
    ]),
  );
}

function errors() {
  const rows = Object.entries(PBSE).map(([symbol, number]) => {
    const text = pbseText(number);
    return [number, `PBSE_${symbol}`, text === null ? "(none)" : code(text), number % 256];
  });
  return markdown(
    ["number", "symbol", "text", "exit status"],
    rows.sort(([a], [b]) => a - b),
  );
}

function reasons() {
  return markdown(
    ["code", "comment of the job", "log of the scheduler, if different"],
    Object.entries(REASONS).map(([name, [comment, log]]) => [code(name), comment, log ?? ""]),
  );
}

function schedConfig() {
  return markdown(
    ["key", "value", "default", "prime time", "meaning"],
    SCHED_CONFIG_KEYS.map((key) => [
      code(key.name),
      key.kind,
      key.default === "" ? "-" : code(key.default),
      key.prime ? "yes" : "",
      key.later === undefined ? key.help : `${key.help}; not obeyed yet: ${key.later}`,
    ]),
  );
}

const prefixed = (key, part) => Object.fromEntries(Object.entries(part).map(([name, field]) => [`${key}.${name}`, field]));

/** Keys of a campaign file. */
function fields(table) {
  return markdown(
    ["key", "value", "meaning"],
    Object.entries(table).map(([key, { shape, about, isRequired }]) => [
      code(key),
      wordsOf(shape),
      isRequired ? `${about} Required.` : about,
    ]),
  );
}

function wordsOf(shape) {
  const one = { text: "text", flag: "true or false", duration: "duration", record: "object", map: "object" }[shape.kind];
  if (one !== undefined) return one;
  if (shape.kind === "choice") return shape.values.map(code).join(" or ");
  return shape.kind === "list" ? `list of ${wordsOf(shape.of)}s` : `${shape.min} to ${shape.max}`;
}

function logEvents() {
  const hex = (number) => number.toString(16).padStart(4, "0");
  return markdown(
    ["event", "hexadecimal", "decimal"],
    Object.entries(LOG_EVENT)
      .filter(([name]) => name !== "FORCE")
      .map(([name, bit]) => [name, hex(bit), bit]),
  );
}

const code = (text) => `\`${text}\``;

function markdown(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}
