// What an attribute is: one row per attribute of every object says its name, type, who may read and set it, its default and what it does.
// Parsing, permission checks, qmgr set/list/print, qstat -f, JSON, the store, completion and the reference documentation derive from the rows.
//
// I1. The order of the rows is the order of output everywhere.
// I2. Names are matched without regard to case; they are written as the row spells them.

import { PBSE, reject } from "./pbse.ts";

export type ObjectType = "server" | "sched" | "queue" | "node" | "job" | "resv" | "hook";

/**
 * How a value is typed, kept in memory and shown (value in memory -> text):
 * boolean: boolean -> True | False · integer, long64, float: number · duration: seconds -> HH:MM:SS · time: epoch seconds, shown as a date
 * by the client · size: canonical text `20mb` · string, name, formula, char: text · keyword: one word of a list · hold: letters `sou` or `n`
 * · string_array, acl_user, acl_group, acl_host, acl_manager, node_state: string[] · resource_list: record typed by the resource
 * · entity_limit: record `u:alice -> 5` · entity_limit_res: record resource -> record entity -> number or size text
 * · interactive: number, shown True when not 0.
 */
export type AttributeType =
  | "boolean"
  | "integer"
  | "long64"
  | "float"
  | "duration"
  | "time"
  | "size"
  | "string"
  | "name"
  | "formula"
  | "char"
  | "keyword"
  | "hold"
  | "node_state"
  | "string_array"
  | "acl_user"
  | "acl_group"
  | "acl_host"
  | "acl_manager"
  | "resource_list"
  | "entity_limit"
  | "entity_limit_res"
  | "interactive";

/** Who sees a value: everybody, operators and managers, managers, nobody (internal). */
export type ReadLevel = "all" | "op" | "mgr" | "none";
/** Who sets it: users for their own jobs, operators, managers, root on the server host, or only the daemons. */
export type SetLevel = "user" | "op" | "mgr" | "root" | "pbs";

export type ResourceValue = string | number | boolean;
export type ResourceValues = { readonly [resource: string]: ResourceValue };
export type EntityLimits = { readonly [entity: string]: number };
export type ResourceEntityLimits = { readonly [resource: string]: { readonly [entity: string]: number | string } };
/** A value as memory holds it; which form belongs to which type: see AttributeType. */
export type AttributeValue = boolean | number | string | readonly string[] | ResourceValues | EntityLimits | ResourceEntityLimits;

/** What a row may say besides name, type, levels and help. */
export type AttributeOptions = {
  /** in a fresh system this value is set (shown, stored, printed) */
  readonly default?: AttributeValue;
  /** unset restores `default`; otherwise unset removes the value (docs/reference/attributes.md 10) */
  readonly restored?: boolean;
  /** resource_list: unset of one of these resources gives its value back; unset of the whole attribute removes it (docs/reference/attributes.md 10) */
  readonly restoredResources?: ResourceValues;
  /** not shown while unset, but the system behaves as if it had this value */
  readonly assumed?: AttributeValue;
  /** may only be given when the object is made */
  readonly createOnly?: boolean;
  /** of a job: may be changed while it runs */
  readonly runAlterable?: boolean;
  /** never shown unless the server's show_hidden_attribs is set */
  readonly hidden?: boolean;
  /** keyword: the legal words, written as shown */
  readonly keywords?: readonly string[];
  /** keyword: a prefix of a word will do */
  readonly prefix?: boolean;
  /** numbers, durations and sizes (bytes): bounds */
  readonly min?: number;
  readonly max?: number;
  /** error number of a value out of bounds, when it is not 15014; its text stands alone */
  readonly rangeError?: number;
  /** texts, elements of lists and integers, as typed: false makes it 15014 */
  readonly check?: (text: string) => boolean;
  /**
   * texts and lists: which characters they may hold. Absent: no control characters, which would end lines of files, mails and logs or steer a terminal;
   * lines: newlines and tabs too; any: whatever a program's environment or arguments may hold
   */
  readonly characters?: "lines" | "any";
  /** string_array: a value is kept once */
  readonly unique?: boolean;
  /** string_array: blanks around an element belong to it (environment variables) */
  readonly verbatim?: boolean;
  /** queue: the attribute makes sense for this type of queue only (another type: a warning, 15026) */
  readonly only?: "Execution" | "Route";
  /** limits: old and new style must not be mixed on server and queues (15141) */
  readonly limitStyle?: "old" | "new";
  /** names the same attribute */
  readonly alias?: string;
  /** a manager may set the attribute to its present value, although he may not change it: otherwise the output of `print` could not be read back */
  readonly restatable?: boolean;
};

export type AttributeDef = AttributeOptions & {
  readonly object: ObjectType;
  readonly name: string;
  readonly type: AttributeType;
  readonly read: ReadLevel;
  readonly set: SetLevel;
  /** one line for people: completion, inline help, reference */
  readonly help: string;
  /** position in the table */
  readonly order: number;
};

export type AttributeRow = readonly [
  name: string,
  type: AttributeType,
  read: ReadLevel,
  set: SetLevel,
  help: string,
  options?: AttributeOptions,
];

export type AttributeTable = {
  readonly object: ObjectType;
  readonly rows: readonly AttributeDef[];
  /** the row of a name or alias, in any case */
  byName(name: string): AttributeDef | undefined;
};

/** Rows become a table. A name given twice is a programmer's error. */
export function attributeTable(object: ObjectType, rows: readonly AttributeRow[]): AttributeTable {
  const defs: AttributeDef[] = rows.map(([name, type, read, set, help, options], order) => ({
    ...options,
    object,
    name,
    type,
    read,
    set,
    help,
    order,
  }));
  const exact = new Map<string, AttributeDef>();
  const folded = new Map<string, AttributeDef>();
  for (const def of defs) {
    for (const name of def.alias === undefined ? [def.name] : [def.name, def.alias]) {
      if (folded.has(name.toLowerCase())) throw new Error(`attribute ${name} of ${object} is defined twice`);
      exact.set(name, def);
      folded.set(name.toLowerCase(), def);
    }
  }
  return { object, rows: defs, byName: (name) => exact.get(name) ?? folded.get(name.toLowerCase()) };
}

/** The row of a name. Refuses an unknown one with 15002. */
export function attributeOf(table: AttributeTable, name: string): AttributeDef {
  const def = table.byName(name);
  if (def === undefined) throw reject(PBSE.NOATTR);
  return def;
}

/** A caller's rights; root means root on the server host (user mode: the complex's own user). */
export type Caller = { readonly level: "user" | "operator" | "manager"; readonly root?: boolean };

/** Whether the caller may see values of this row. */
export function mayRead(def: { readonly read: ReadLevel }, caller: Caller): boolean {
  switch (def.read) {
    case "all":
      return true;
    case "op":
      return caller.level !== "user";
    case "mgr":
      return caller.level === "manager";
    case "none":
      return false;
    default: {
      const unreachable: never = def.read;
      return unreachable;
    }
  }
}

/** Whether the caller may set values of this row. */
export function maySet(def: { readonly set: SetLevel }, caller: Caller): boolean {
  switch (def.set) {
    case "user":
      return true;
    case "op":
      return caller.level !== "user";
    case "mgr":
      return caller.level === "manager";
    case "root":
      return caller.root === true;
    case "pbs":
      return false;
    default: {
      const unreachable: never = def.set;
      return unreachable;
    }
  }
}

/**
 * Refuses with 15003 what the caller may not set. The name (and resource) is told, but not for what only root may set (docs/reference/qmgr.md 5).
 * A resource's own level counts too: pass it as `resource`.
 */
export function checkSettable(def: AttributeDef, caller: Caller, resource?: { readonly name: string; readonly set: SetLevel }): void {
  if (!maySet(def, caller)) throw def.set === "root" ? reject(PBSE.ATTRRO) : reject(PBSE.ATTRRO, valueName(def, resource?.name));
  if (resource !== undefined && !maySet(resource, caller)) throw reject(PBSE.ATTRRO, valueName(def, resource.name));
}

/** `attribute` or `attribute.resource`. */
export function valueName(def: { readonly name: string }, resource?: string): string {
  return resource === undefined ? def.name : `${def.name}.${resource}`;
}

/** The values of a fresh object: every default of the table, copied. */
export function defaultAttributes(table: AttributeTable): { [name: string]: AttributeValue } {
  const attrs: { [name: string]: AttributeValue } = {};
  for (const def of table.rows) if (def.default !== undefined) attrs[def.name] = structuredClone(def.default) as AttributeValue;
  return attrs;
}

/** What `unset` leaves: the restored default, or undefined when the value simply goes. */
export function valueAfterUnset(def: AttributeDef): AttributeValue | undefined {
  return def.restored === true && def.default !== undefined ? (structuredClone(def.default) as AttributeValue) : undefined;
}
