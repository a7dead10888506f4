// Writes objects with all their attributes as text, dsv and JSON (docs/reference/commands.md 2.4-2.6), for qstat -f and
// similar commands.
//
// L1. A line that would have more than LINE_MAX columns is broken after a comma if possible. The next line begins with a
//     TAB.
// L2. Messages of the server have times as epoch seconds; this output has them as dates. Only history_timestamp stays a
//     number.

import type { WireAttrs } from "#protocol/messages.ts";
import { present } from "#support/assert.ts";
import { isList } from "#support/guards.ts";
import { ctimeOfText } from "./dates.ts";
import { jsonValue, memberText, objectText, objectWriter, quote } from "./json.ts";

const LINE_MAX = 78;
/** the column in which the text of a continued line begins, after the TAB */
const CONTINUED = 8;

type WireValue = WireAttrs[string];

const TIMES = new Set([
  "ctime",
  "etime",
  "stime",
  "obittime",
  "mtime",
  "qtime",
  "reserve_start",
  "reserve_end",
  "Execution_Time",
  "start_time",
  "last_state_change_time",
  "last_used_time",
]);
/** Attributes whose value is always text, even if it looks like a number. */
const TEXTS = new Set(["Job_Name", "project", "Account_Name"]);

/** Returns a value as it is printed: a time as a date, and an estimated start of 0 as UNKNOWN, because the scheduler knows no start then. */
function shown(name: string, text: string): string {
  if (!TIMES.has(name)) return text;
  return name === "start_time" && text === "0" ? "UNKNOWN" : ctimeOfText(text);
}

/**
 * Calls `line` for each line of an attribute, with the name (for a resource `name.resource`) and the text as printed. An attribute with limits for users and
 * groups has one line for each limit.
 */
function eachLine(name: string, value: WireValue, line: (name: string, text: string) => void): void {
  if (typeof value === "string") line(name, shown(name, value));
  else if (isList(value)) for (const entry of value) line(name, entry);
  else {
    for (const resource in value) {
      const amount = present(value[resource], resource);
      const full = `${name}.${resource}`;
      if (typeof amount === "string") line(full, shown(resource, amount));
      else for (const entry of amount) line(full, entry);
    }
  }
}

/**
 * Returns a function that renders objects one after the other. If an attribute has the same value as in the object before, its text is used again: neighbours
 * in a listing mostly have equal values.
 */
function likeBefore(render: (name: string, value: WireValue) => string): (attrs: WireAttrs) => readonly string[] {
  const names: string[] = [];
  const values: WireValue[] = [];
  const texts: string[] = [];
  return (attrs) => {
    let at = 0;
    for (const name in attrs) {
      const value = present(attrs[name], name);
      if (names[at] !== name || values[at] !== value) {
        names[at] = name;
        values[at] = value;
        texts[at] = render(name, value);
      }
      at++;
    }
    names.length = values.length = texts.length = at;
    return texts;
  };
}

export type LongWriter = (heading: string, id: string, attrs: WireAttrs) => string;

/**
 * Writes objects as text: a heading, one line for each attribute, an empty line. wide: lines are not broken, and line breaks inside values are written as \n
 * and \f.
 */
export function longWriter(wide: boolean): LongWriter {
  const linesOf = likeBefore((attribute, whole) => {
    let text = "";
    eachLine(attribute, whole, (name, value) => {
      if (wide)
        text += `    ${name} = ${value.includes("\n") || value.includes("\f") ? value.replaceAll("\n", "\\n").replaceAll("\f", "\\f") : value}\n`;
      else if (name.length + 7 + value.length <= LINE_MAX) text += `    ${name} = ${value}\n`;
      else text += brokenLine(name, value);
    });
    return text;
  });
  return (heading, id, attrs) => `${heading}: ${id}\n${linesOf(attrs).join("")}\n`;
}

/** Writes one object as longWriter does. */
export const longText = (heading: string, id: string, attrs: WireAttrs, wide: boolean): string => longWriter(wide)(heading, id, attrs);

/** Breaks the line of an attribute that is longer than LINE_MAX (L1). */
function brokenLine(name: string, value: string): string {
  let text = `    ${name} = `;
  let column = text.length;
  const segments = value.split(",");
  segments.forEach((segment, index) => {
    if (column + segment.length < LINE_MAX) {
      text += segment;
      column += segment.length;
    } else {
      if (index > 0) {
        text += "\n\t";
        column = CONTINUED;
      }
      let rest = segment;
      while (column + rest.length > LINE_MAX + 1) {
        const room = LINE_MAX + 1 - column;
        text += `${rest.slice(0, room)}\n\t`;
        rest = rest.slice(room);
        column = CONTINUED;
      }
      text += rest;
      column += rest.length;
    }
    if (index < segments.length - 1) {
      text += ",";
      column++;
    }
  });
  return `${text}\n`;
}

/** Writes one object as a line: `Job Id: 1.svr|Job_Name=STDIN|...`. A delimiter inside a value gets a backslash. tag: `Job Id: ` or `Name=`. */
export function dsvLine(tag: string, id: string, attrs: WireAttrs, delimiter: string): string {
  let text = `${tag}${id}`;
  for (const attribute in attrs)
    eachLine(attribute, present(attrs[attribute], attribute), (name, value) => {
      text += `${delimiter}${name}=${value.includes(delimiter) ? value.replaceAll(delimiter, `\\${delimiter}`) : value}`;
    });
  return `${text}\n`;
}

/** Writes the attributes of objects as JSON objects. Their members are indented by level+1. */
export function jsonWriter(level: number): (attrs: WireAttrs) => string {
  const membersOf = likeBefore((name, value) => {
    if (typeof value === "string") return memberText(name, jsonScalar(name, value, level + 1), level + 1);
    if (isList(value)) return memberText(name, quote(value.join(",")), level + 1);
    return memberText(name, jsonResources(value, level + 1), level + 1);
  });
  return (attrs) => objectText(membersOf(attrs), level);
}

/** Writes the attributes of one object as JSON. */
export const jsonAttrs = (attrs: WireAttrs, level: number): string => jsonWriter(level)(attrs);

function jsonScalar(name: string, value: string, level: number): string {
  if (TIMES.has(name)) return quote(ctimeOfText(value));
  if (name === "Variable_List") return jsonVariables(value, level);
  return TEXTS.has(name) ? quote(value) : jsonValue(value, level);
}

function jsonResources(list: { readonly [resource: string]: string | readonly string[] }, level: number): string {
  const object = objectWriter(level);
  for (const resource in list) {
    const amount = present(list[resource], resource);
    if (typeof amount !== "string") object.add(resource, quote(amount.join(",")));
    else object.add(resource, TIMES.has(resource) ? quote(shown(resource, amount)) : jsonValue(amount, level + 1));
  }
  return object.end();
}

let lastVariables = { list: "", level: -1, rendered: "" };

/** Writes Variable_List as an object of names and unescaped values. The last result is kept, because neighbouring jobs of one user often have the same list. */
function jsonVariables(list: string, level: number): string {
  if (lastVariables.list !== list || lastVariables.level !== level) lastVariables = { list, level, rendered: renderVariables(list, level) };
  return lastVariables.rendered;
}

function renderVariables(list: string, level: number): string {
  const object = objectWriter(level);
  for (const variable of splitVariables(list)) {
    const equals = variable.indexOf("=");
    if (equals < 0) object.add(variable, quote(""));
    else object.add(variable.slice(0, equals), jsonValue(variable.slice(equals + 1), level + 1));
  }
  return object.end();
}

/** Splits a list of variables at the commas that have no backslash before them, and removes the backslashes. */
export function splitVariables(list: string): string[] {
  if (!list.includes("\\")) return list.split(",");
  const variables: string[] = [];
  let current = "";
  for (let i = 0; i < list.length; i++) {
    const char = list.charAt(i);
    if (char === "\\" && i + 1 < list.length) current += list[++i];
    else if (char === ",") {
      variables.push(current);
      current = "";
    } else current += char;
  }
  variables.push(current);
  return variables;
}

export type JsonDocument = {
  /** returns the text of the next object; the text of the first object includes the beginning of the document */
  object(id: string, rendered: string): string;
  /** returns the end of the document; if there was no object, the whole document */
  end(): string;
};

/** Writes a document whose objects arrive one by one. section: Jobs, Queue, Server or nodes. */
export function jsonDocument(
  section: string,
  about: { readonly now_s: number; readonly version: string; readonly server: string },
): JsonDocument {
  const prologue = `{\n\t"timestamp":\t${about.now_s},\n\t"pbs_version":\t${quote(about.version)},\n\t"pbs_server":\t${quote(about.server)}`;
  let empty = true;
  return {
    object(id, rendered) {
      const before = empty ? `${prologue},\n\t${quote(section)}:\t{\n` : ",\n";
      empty = false;
      return `${before}\t\t${quote(id)}:\t${rendered}`;
    },
    end: () => (empty ? `${prologue}\n}\n` : "\n\t}\n}\n"),
  };
}
