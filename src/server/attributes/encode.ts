// Attributes in the form of status replies: in the order of the table, restricted to those that the caller requested and may
// read.
//
// I1. The cost of an object depends only on the requested attributes: a plain qstat of 10,000 jobs encodes six attributes each.
// I2. Values in memory are never changed in place (state/state.ts I3), so the text of a record or list is made once, however
//     many jobs share it.

import { type AttributeDef, type AttributeTable, type AttributeValue, attributeOf, mayRead } from "#model/attribute.ts";
import type { ResourceDef } from "#model/resource-table.ts";
import { renderValue, type WireValue } from "#model/values/index.ts";
import type { WireAttrs } from "#protocol/messages.ts";
import type { Identity } from "../engine/transaction.ts";
import { shownExecHost } from "../state/node-names.ts";
import type { Attrs, ServerState } from "../state/state.ts";

type Resources = ReadonlyMap<string, ResourceDef>;
/** undefined: the attribute is not shown. */
type Render = (value: unknown) => WireValue;

export type Columns = readonly { readonly name: string; readonly render: Render }[];

/**
 * The attributes to show of a type of objects. names: only these, in any case and order (15002 for an unknown one);
 * absent: all that the caller may read.
 * Hidden attributes are shown only while the server's show_hidden_attribs is set.
 */
export function columnsOf(state: ServerState, who: Identity, table: AttributeTable, names: readonly string[] | undefined): Columns {
  const wanted = names === undefined ? null : new Set(names.map((name) => attributeOf(table, name).name));
  const hidden = state.server["show_hidden_attribs"] === true;
  const rows = table.rows.filter(
    (def) => mayRead(def, who) && (hidden || def.hidden !== true) && (wanted === null || wanted.has(def.name)),
  );
  return rows.map((def) => ({
    name: def.name,
    render: def.name === "exec_host" ? hostRenderer(state) : renderer(def, state.resources, who),
  }));
}

/** attrs: the stored values. computed: they take precedence. */
export function encode(columns: Columns, attrs: Attrs, computed?: Attrs): WireAttrs {
  const wire: { [name: string]: WireValue } = {};
  for (const { name, render } of columns) {
    const value = computed?.[name] ?? attrs[name];
    if (value === undefined || value === null) continue;
    wire[name] = render(value);
  }
  return wire;
}

/**
 * An encoder for many objects of one type. Neighbours mostly have the same attributes, so each record begins as a copy of
 * the record before it. Records that are built attribute by attribute cost V8 a third of the time of qstat -f.
 */
export function encoder(columns: Columns): (attrs: Attrs, computed?: Attrs | null) => WireAttrs {
  let last: { [name: string]: WireValue } = {};
  let present: string[] = [];
  return (attrs, computed) => {
    const wire = { ...last };
    let at = 0;
    for (const { name, render } of columns) {
      const value = computed?.[name] ?? attrs[name];
      if (value === undefined || value === null) continue;
      if (present[at] !== name) return startAfresh(attrs, computed);
      wire[name] = render(value);
      at++;
    }
    return at === present.length ? wire : startAfresh(attrs, computed);
  };

  function startAfresh(attrs: Attrs, computed: Attrs | null | undefined): WireAttrs {
    last = encode(columns, attrs, computed ?? undefined) as typeof last;
    present = Object.keys(last);
    return last;
  }
}

const hostRenderer =
  (state: ServerState): Render =>
  (value) =>
    shownExecHost(state, String(value));

function renderer(def: AttributeDef, resources: Resources, who: Identity): Render {
  switch (def.type) {
    case "string":
    case "name":
    case "char":
    case "keyword":
    case "hold":
      return (value) => (typeof value === "string" ? value : String(value));
    case "integer":
    case "long64":
    case "time":
      return (value) => String(value);
    case "resource_list":
    case "string_array":
      return who.level === "user" && def.type === "resource_list" ? visibleTo(def, resources, who) : once(def, resources);
    default:
      return (value) => renderValue(def, value as AttributeValue, resources);
  }
}

const TEXTS = new WeakMap<object, WireValue>();

/** Rendered once per value. A resource in use keeps its type (requests/manager/manager-resource.ts I2), so a text stays right. */
function once(def: AttributeDef, resources: Resources): Render {
  return (value) => {
    const key = value as object;
    let text = TEXTS.get(key);
    if (text === undefined) {
      text = renderValue(def, value as AttributeValue, resources);
      TEXTS.set(key, text);
    }
    return text;
  };
}

/** Resources with flag i are hidden from users. */
function visibleTo(def: AttributeDef, resources: Resources, who: Identity): Render {
  const invisible = [...resources.values()].filter((resource) => !mayRead(resource, who)).map(({ name }) => name);
  const render = once(def, resources);
  if (invisible.length === 0) return render;
  return (value) => {
    const text = render(value) as { readonly [resource: string]: string };
    if (!invisible.some((name) => Object.hasOwn(text, name))) return text;
    return Object.fromEntries(Object.entries(text).filter(([name]) => !invisible.includes(name)));
  };
}
