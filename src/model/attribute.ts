// What defines an attribute. Each type of object has a table with one row for each attribute. A row gives the name, the
// type, who may read and set the attribute, its default and its purpose. Parsing, permission checks, qmgr set/list/print,
// qstat -f, JSON, the store, completion and the reference documentation all use these rows.
//
// I1. All output lists attributes in the order of the rows.
// I2. Users may write names in upper or lower case. Output has the spelling of the row.

import { PBSE, reject } from "./pbse.ts";

export type ObjectType = "server" | "sched" | "queue" | "node" | "job" | "resv" | "hook" | "backend";

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

/** Who may see a value: everybody; operators and managers; only managers; nobody, because it is internal. */
export type ReadLevel = "all" | "op" | "mgr" | "none";
/**
 * Who may set a value: users (for their own jobs), operators, managers, root on the server's host, or only the daemons of
 * PBS.
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
  /** the value that the attribute has in a new system; it is shown, stored and printed */
  readonly default?: AttributeValue;
  /** true: unset restores `default`; false: unset removes the value (docs/reference/attributes.md 10) */
  readonly restored?: boolean;
  /**
   * for a resource_list: resources that get these values back when they are unset one by one; if the whole attribute is unset, these resources are removed as
   * well (docs/reference/attributes.md 10)
   */
  readonly restoredResources?: ResourceValues;
  /** the value that applies while the attribute is unset; it is not shown */
  readonly assumed?: AttributeValue;
  /** the attribute can be set only when the object is created */
  readonly createOnly?: boolean;
  /** for jobs: the attribute may be changed while the job runs */
  readonly runAlterable?: boolean;
  /** the attribute is shown only if show_hidden_attribs of the server is set */
  readonly hidden?: boolean;
  /** for a keyword: the legal words in the spelling of output */
  readonly keywords?: readonly string[];
  /** for a keyword: whether an abbreviation (the beginning of a word) is accepted as well */
  readonly prefix?: boolean;
  /** bounds of numbers, durations (seconds) and sizes (bytes) */
  readonly min?: number;
  readonly max?: number;
  /** the error number for a value out of bounds, if it is not 15014; no suffix is added to its text */
  readonly rangeError?: number;
  /**
   * checks a text, each element of a list, or an integer as the user has typed it. If it returns false, the value is refused
   * with 15014
   */
  readonly check?: (text: string) => boolean;
  /**
   * the characters that texts and lists may contain. Absent: all except control characters, which could end lines of files,
   * mails and logs or control a terminal. lines: also newlines and tabs. any: every character that a program's environment
   * or arguments may contain
   */
  readonly characters?: "lines" | "any";
  /** for a string_array: the list contains each value only once */
  readonly unique?: boolean;
  /** for a string_array: blanks around an element belong to it (environment variables) */
  readonly verbatim?: boolean;
  /**
   * for queues: the type of queue that the attribute is meant for. If it is set on a queue of the other type, there is a
   * warning (15026)
   */
  readonly only?: "Execution" | "Route";
  /** for limits: the style of the limit. Server and queues must not mix the two styles (15141) */
  readonly limitStyle?: "old" | "new";
  /** another name of the same attribute */
  readonly alias?: string;
  /**
   * managers may not change the attribute, but may set it to its present value; otherwise qmgr could not read the output of
   * `print` again
   */
  readonly restatable?: boolean;
};

export type AttributeDef = AttributeOptions & {
  readonly object: ObjectType;
  readonly name: string;
  readonly type: AttributeType;
  readonly read: ReadLevel;
  readonly set: SetLevel;
  /** one line of text for completion, inline help and the reference */
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
  /** the row with a name or alias, in upper or lower case */
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

/** The row with a name. Refuses an unknown name with 15002. */
export function attributeOf(table: AttributeTable, name: string): AttributeDef {
  const def = table.byName(name);
  if (def === undefined) throw reject(PBSE.NOATTR);
  return def;
}

/** The rights of a caller. root: whether the caller is root on the server's host, or in user mode the user of the complex. */
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
 * Refuses with 15003 an attribute that the caller may not set. The refusal names the attribute (and the resource), but not
 * if only root may set it (docs/reference/qmgr.md 5). resource: a resource of the attribute, which the caller must also be
 * allowed to set.
 */
export function checkSettable(def: AttributeDef, caller: Caller, resource?: { readonly name: string; readonly set: SetLevel }): void {
  if (!maySet(def, caller)) throw def.set === "root" ? reject(PBSE.ATTRRO) : reject(PBSE.ATTRRO, valueName(def, resource?.name));
  if (resource !== undefined && !maySet(resource, caller)) throw reject(PBSE.ATTRRO, valueName(def, resource.name));
}

/** The name of a value: `attribute` or `attribute.resource`. */
export function valueName(def: { readonly name: string }, resource?: string): string {
  return resource === undefined ? def.name : `${def.name}.${resource}`;
}

/** The values of a new object: a copy of every default of the table. */
export function defaultAttributes(table: AttributeTable): { [name: string]: AttributeValue } {
  const attrs: { [name: string]: AttributeValue } = {};
  for (const def of table.rows) if (def.default !== undefined) attrs[def.name] = structuredClone(def.default) as AttributeValue;
  return attrs;
}

/** The value of an attribute after `unset`: its default, if unset restores it; undefined: the attribute then has no value. */
export function valueAfterUnset(def: AttributeDef): AttributeValue | undefined {
  return def.restored === true && def.default !== undefined ? (structuredClone(def.default) as AttributeValue) : undefined;
}
