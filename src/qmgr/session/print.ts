// Writes the texts of `list` and `print` exactly as PBS does (docs/reference/qmgr.md 6 and 7). qmgr can execute the output
// of `print`. Pure.

import type { AttributeDef } from "#model/attribute.ts";
import { resourceLimitLines } from "#model/values/entity-limit.ts";
import type { ManagedObject, WireAttrs } from "#protocol/messages.ts";
import { tableOf } from "../language/attribute-lookup.ts";

/** Writes a time for users. The shell supplies it, because it needs the local time zone. */
export type Ctime = (epoch_s: number) => string;

const HEADER: Record<ManagedObject, string> = {
  server: "Server",
  queue: "Queue",
  node: "Node",
  resource: "Resource",
  sched: "Sched",
  hook: "Hook",
  pbshook: "Hook",
  backend: "Backend",
};

/** One line of output before it is laid out: `attr[.resource] = value`. */
type Line = { readonly def: AttributeDef | undefined; readonly name: string; readonly resource?: string; readonly value: string };

/** Writes an object as `list` shows it, with an empty line after it. wanted: only these attributes, in this order; undefined: all attributes. */
export function listObject(
  object: ManagedObject,
  id: string,
  attrs: WireAttrs,
  wanted: readonly string[] | undefined,
  ctime: Ctime,
): string {
  let text = `${HEADER[object]} ${id}\n`;
  for (const line of linesOf(object, attrs, wanted)) text += listLine(line, ctime);
  return `${text}\n`;
}

function listLine({ def, name, resource, value }: Line, ctime: Ctime): string {
  const label = resource === undefined ? name : `${name}.${resource}`;
  const shown = def?.type === "time" && /^\d+$/.test(value) ? ctime(Number(value)) : value;
  return `    ${label} = ${wrapValue(shown, name.length + 8 + (resource === undefined ? 0 : resource.length + 1) + 3)}\n`;
}

/**
 * Breaks a value at commas. If the line has reached 80 characters, a newline and a tab come before the next piece. The first piece is never moved to a new
 * line.
 */
function wrapValue(value: string, used: number): string {
  let text = "";
  let length = used;
  for (const [index, piece] of value.split(",").entries()) {
    const clean = visible(piece);
    if (index === 0) {
      text = clean;
      length += clean.length;
    } else if (length + clean.length + 1 >= 80) {
      text += `,\n\t${clean.trimStart()}`;
      length = clean.trimStart().length + 8;
    } else {
      text += `,${clean}`;
      length += clean.length + 1;
    }
  }
  return text;
}

/** Writes control characters, except newline and tab, as ^X. */
function visible(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, (char) => `^${String.fromCharCode(char.charCodeAt(0) ^ 0x40)}`);
}

/** Returns the framed comment that `print` shows before the objects of a type. For schedulers there is none. */
export function banner(object: ManagedObject): string {
  const text: Partial<Record<ManagedObject, string>> = {
    server: "Set server attributes.",
    queue: "Create queues and set their attributes.",
    node: "Create nodes and set their properties.",
    resource: "Create resources and set their properties.",
    hook: "Create hooks and set their properties.",
    pbshook: "Set PBS hooks properties.",
    backend: "Create backends and set their attributes.",
  };
  return text[object] === undefined ? "" : frame(text[object]);
}
function frame(text: string): string {
  return `#\n# ${text}\n#\n`;
}

/** Writes an object as `print` shows it: the commands that create it and set its attributes. arrays: names of the resources of type string_array. */
export function printObject(
  object: ManagedObject,
  id: string,
  attrs: WireAttrs,
  wanted: readonly string[] | undefined,
  arrays: ReadonlySet<string> = new Set(),
): string {
  let text = object === "server" ? "" : createLines(object, id, attrs);
  const target = object === "server" ? "server" : object === "sched" && id === "default" ? "sched" : `${object} ${id}`;
  const begun = new Set<string>();
  for (const line of linesOf(object, attrs, wanted)) {
    if (!isPrinted(object, line)) continue;
    const label = line.resource === undefined ? line.name : `${line.name}.${line.resource}`;
    for (const [op, value] of printedValues(line, begun.has(label), arrays)) text += `set ${target} ${label} ${op} ${value}\n`;
    begun.add(label);
  }
  return text;
}

function createLines(object: ManagedObject, id: string, attrs: WireAttrs): string {
  if (object === "pbshook") return frame(`Set pbshook ${id}`);
  const kind = object === "sched" ? "scheduler" : object;
  let create = `create ${object} ${id}`;
  if (object === "node") {
    const mom = typeof attrs["Mom"] === "string" ? attrs["Mom"] : id;
    const differs = mom.split(".")[0]?.toLowerCase() !== id.toLowerCase() && mom.toLowerCase() !== id.toLowerCase();
    if (differs) create += ` Mom=${mom.includes(",") ? `"${mom}"` : mom}`;
    if (typeof attrs["Port"] === "string" && attrs["Port"] !== "15002") create += `${differs ? "," : " "}Port=${attrs["Port"]}`;
  }
  return `${frame(`Create and define ${kind} ${id}`)}${create}\n`;
}

/** Whether `print` shows an attribute: it shows those that can be set. For the state of nodes and schedulers see docs/reference/qmgr.md 7. */
function isPrinted(object: ManagedObject, { def, name, value }: Line): boolean {
  if (object === "resource") return true;
  if (object === "node" && (name === "Mom" || name === "Port")) return false;
  if (object === "node" && name === "state") return !value.includes("down") && !value.startsWith("state-unknown");
  if (object === "sched" && name === "state") return value !== "down";
  return def !== undefined && def.set !== "pbs";
}

function printedValues(
  { def, value, resource }: Line,
  again: boolean,
  arrays: ReadonlySet<string>,
): readonly (readonly [op: string, value: string])[] {
  if (def?.type === "entity_limit" || def?.type === "entity_limit_res") return [[again ? "+=" : "=", value]];
  // The attributes event and fail_action of a hook are plain texts in PBS.
  const list =
    (resource !== undefined && arrays.has(resource)) ||
    (def?.type === "string_array" && def.object !== "hook") ||
    def?.type.startsWith("acl_") === true ||
    def?.type === "node_state";
  const elements = list ? value.split(",").map((element) => element.trim()) : [value];
  return elements.map((element, index) => [index === 0 && !again ? "=" : "+=", quoteValue(element)]);
}

/** Quotes a value that contains a quote, a comma or white space: with ' if it contains ", otherwise with ". */
function quoteValue(value: string): string {
  if (!/["',\s]/.test(value)) return value;
  return value.includes('"') ? `'${value}'` : `"${value}"`;
}

function linesOf(object: ManagedObject, attrs: WireAttrs, wanted: readonly string[] | undefined): readonly Line[] {
  const table = tableOf(object);
  const lines: Line[] = [];
  const names =
    wanted === undefined || object === "resource" ? Object.keys(attrs) : wanted.map((name) => table?.byName(name)?.name ?? name);
  for (const name of names) {
    const value = attrs[name];
    if (value === undefined) continue;
    const def = table?.byName(name);
    if (typeof value === "string") lines.push({ def, name, value });
    else if (isList(value)) for (const entry of value) lines.push({ def, name, value: entry });
    else for (const [resource, text] of flattened(value)) lines.push({ def, name, resource, value: text });
  }
  return lines;
}

/** Returns the resources of a list with their values. Limits on resources are sorted by entity, as in PBS. */
function flattened(value: { readonly [resource: string]: string | readonly string[] }): readonly (readonly [string, string])[] {
  const entries = Object.entries(value);
  if (!entries.some(([, text]) => Array.isArray(text))) return entries as [string, string][];
  const lists = Object.fromEntries(entries.map(([resource, text]) => [resource, typeof text === "string" ? [text] : text]));
  return resourceLimitLines(lists).map(({ resource, text }) => [resource, text]);
}

function isList(value: WireAttrs[string]): value is readonly string[] {
  return Array.isArray(value);
}
