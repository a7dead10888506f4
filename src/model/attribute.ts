// Definition of an attribute. One row for each attribute of each object gives its name, its type, who may
// read and set it, its default and its purpose. Parsing, permission checks, qmgr set/list/print, qstat -f,
// JSON, the store, completion and the reference documentation all use these rows.
//
// I1. The order of the rows is the order of output everywhere.
// I2. Names are matched without regard to case and written as the row spells them.

import { PBSE, reject } from "./pbse.ts";

export type ObjectType = "server" | "sched" | "queue" | "node" | "job" | "resv" | "hook";

/**
 * The type of a value. It decides how the value is kept in memory and shown as text (value in memory ->
 * text): boolean: boolean -> True | False · integer, long64, float: number · duration: seconds -> HH:MM:SS ·
 * time: epoch seconds, which the client shows as a date · size: canonical text `20mb` · string, name,
 * formula, char: text · keyword: one word of a list · hold: letters `sou` or `n` · string_array, acl_user,
 * acl_group, acl_host, acl_manager, node_state: string[] · resource_list: record typed by the resource ·
 * entity_limit: record `u:alice -> 5` · entity_limit_res: record resource -> record entity -> number or size
 * text · interactive: number, shown as True if it is not 0.
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

/** The callers who may see a value: everybody, operators and managers, managers, nobody (internal). */
export type ReadLevel = "all" | "op" | "mgr" | "none";
/**
 * The callers who may set a value: users for their own jobs, operators, managers, root on the server host, or only the
 * daemons.
 */
export type SetLevel = "user" | "op" | "mgr" | "root" | "pbs";

export type ResourceValue = string | number | boolean;
export type ResourceValues = { readonly [resource: string]: ResourceValue };
export type EntityLimits = { readonly [entity: string]: number };
export type ResourceEntityLimits = { readonly [resource: string]: { readonly [entity: string]: number | string } };
/** A value in memory. AttributeType gives the form for each type. */
export type AttributeValue = boolean | number | string | readonly string[] | ResourceValues | EntityLimits | ResourceEntityLimits;

/** The optional fields of a row; name, type, levels and help are required. */
export type AttributeOptions = {
  /** the value of this attribute in a fresh system; it is shown, stored and printed */
  readonly default?: AttributeValue;
  /** true: unset restores `default`; false: unset removes the value (docs/reference/attributes.md 10) */
  readonly restored?: boolean;
  /**
   * resource_list: unset of one of these resources restores its value; unset of the whole attribute removes
   * them (docs/reference/attributes.md 10)
   */
  readonly restoredResources?: ResourceValues;
  /** the value the system assumes while the attribute is unset; it is not shown */
  readonly assumed?: AttributeValue;
  /** the attribute can only be given when the object is created */
  readonly createOnly?: boolean;
  /** for jobs: the attribute may be changed while the job runs */
  readonly runAlterable?: boolean;
  /** shown only if the server's show_hidden_attribs is set */
  readonly hidden?: boolean;
  /** keyword: the legal words, written as shown */
  readonly keywords?: readonly string[];
  /** keyword: a prefix of a word is accepted */
  readonly prefix?: boolean;
  /** bounds of numbers, durations (seconds) and sizes (bytes) */
  readonly min?: number;
  readonly max?: number;
  /** error number for a value out of bounds, if it is not 15014; its text is sent without a suffix */
  readonly rangeError?: number;
  /**
   * for texts, elements of lists and integers as typed; a value for which the check returns false is refused
   * with 15014
   */
  readonly check?: (text: string) => boolean;
  /**
   * the characters that texts and lists may contain. Absent: no control characters, because these could end
   * lines of files, mails and logs or control a terminal; lines: also newlines and tabs; any: every character
   * that a program's environment or arguments may contain
   */
  readonly characters?: "lines" | "any";
  /** string_array: the list contains each value only once */
  readonly unique?: boolean;
  /** string_array: blanks around an element are part of it (environment variables) */
  readonly verbatim?: boolean;
  /**
   * queue: the attribute is meant for this type of queue; setting it on the other type gives a warning
   * (15026)
   */
  readonly only?: "Execution" | "Route";
  /** limits: server and queues must not mix the old and the new style (15141) */
  readonly limitStyle?: "old" | "new";
  /** another name of the same attribute */
  readonly alias?: string;
  /**
   * a manager may set the attribute to its present value, although managers may not change it; otherwise qmgr
   * could not read the output of `print` back
   */
  readonly restatable?: boolean;
};

export type AttributeDef = AttributeOptions & {
  readonly object: ObjectType;
  readonly name: string;
  readonly type: AttributeType;
  readonly read: ReadLevel;
  readonly set: SetLevel;
  /** one line of help for completion, inline help and the reference */
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
  /** the row of a name or alias; case does not count */
  byName(name: string): AttributeDef | undefined;
};

/** Builds a table from rows. Two rows with the same name are a programmer's error. */
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

/** The row of a name. An unknown name is refused with 15002. */
export function attributeOf(table: AttributeTable, name: string): AttributeDef {
  const def = table.byName(name);
  if (def === undefined) throw reject(PBSE.NOATTR);
  return def;
}

/** The rights of a caller. root means root on the server host, or in user mode the user who owns the complex. */
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
 * Refuses with 15003 an attribute that the caller may not set. The refusal names the attribute (and the
 * resource), except where only root may set it (docs/reference/qmgr.md 5). The level of a resource counts
 * too: pass it as `resource`.
 */
export function checkSettable(def: AttributeDef, caller: Caller, resource?: { readonly name: string; readonly set: SetLevel }): void {
  if (!maySet(def, caller)) throw def.set === "root" ? reject(PBSE.ATTRRO) : reject(PBSE.ATTRRO, valueName(def, resource?.name));
  if (resource !== undefined && !maySet(resource, caller)) throw reject(PBSE.ATTRRO, valueName(def, resource.name));
}

/** The name of a value: `attribute` or `attribute.resource`. */
export function valueName(def: { readonly name: string }, resource?: string): string {
  return resource === undefined ? def.name : `${def.name}.${resource}`;
}

/** The values of a fresh object: a copy of every default of the table. */
export function defaultAttributes(table: AttributeTable): { [name: string]: AttributeValue } {
  const attrs: { [name: string]: AttributeValue } = {};
  for (const def of table.rows) if (def.default !== undefined) attrs[def.name] = structuredClone(def.default) as AttributeValue;
  return attrs;
}

/** The value after `unset`: the restored default, or undefined if the attribute has no value then. */
export function valueAfterUnset(def: AttributeDef): AttributeValue | undefined {
  return def.restored === true && def.default !== undefined ? (structuredClone(def.default) as AttributeValue) : undefined;
}
