// Hooks' view of the jobs and vnodes of this host, and the values that hooks may set. Pure.

import type { AttrChanges, HookInput, HookObject } from "#hooks/run/hook-input.ts";
import type { AttributeDef, AttributeValue } from "#model/attribute.ts";
import { Reject } from "#model/pbse.ts";
import { parseExecVnode } from "#model/request/exec-vnode.ts";
import { builtinResources, customResource, type ResourceDef, type ResourceType } from "#model/resource-table.ts";
import { JOB_ATTRIBUTES } from "#model/tables/job-attributes.ts";
import { NODE_ATTRIBUTES } from "#model/tables/node-attributes.ts";
import { parseDuration } from "#model/values/duration.ts";
import { parseValue, renderValue } from "#model/values/index.ts";
import { canonicalSize } from "#model/values/size.ts";
import type { WireAttrs } from "#protocol/messages.ts";
import type { MomJob, MomVnode, Usage } from "#protocol/mom-link.ts";
import type { Attrs } from "../job/attrs.ts";

export type ResourceTypes = { readonly [name: string]: string };

/** Returns the built-in resources together with those that the server has sent. */
export function resourcesOfTypes(types: ResourceTypes): ReadonlyMap<string, ResourceDef> {
  const known = builtinResources();
  for (const [name, type] of Object.entries(types)) if (!known.has(name)) known.set(name, customResource(name, type as ResourceType));
  return known;
}

/** Makes the job object that hooks get. more: facts of this host that job.attrs does not have (usage, session, exit status). */
export function jobObject(job: MomJob, more: Attrs, resources: ReadonlyMap<string, ResourceDef>): HookObject {
  const all: Attrs = { ...job.attrs, ...more };
  const attrs: { [name: string]: WireAttrs[string] } = {};
  for (const def of JOB_ATTRIBUTES.rows) {
    const value = all[def.name];
    if (value === undefined || value === null || def.read === "none" || def.hidden === true) continue;
    attrs[def.name] = renderValue(def, value as AttributeValue, resources) as WireAttrs[string];
  }
  return { id: job.id, attrs };
}

/** Makes the object that hooks get for a vnode of this host, in the form in which vnodes are reported to the server. */
export function vnodeObject({ name, attrs }: MomVnode, resources: ReadonlyMap<string, ResourceDef>): HookObject {
  const texts: { [name: string]: WireAttrs[string] } = {};
  for (const def of NODE_ATTRIBUTES.rows) {
    const value = attrs[def.name];
    if (value === undefined || value === null) continue;
    try {
      texts[def.name] = renderValue(def, value as AttributeValue, resources) as WireAttrs[string];
    } catch {
      // The resource is not known here: a definition file may name any resource.
    }
  }
  return { id: name, attrs: texts };
}

/** Returns the vnodes of this host that the job uses; for an event without a job, all vnodes of the host. */
export function vnodesOf(job: MomJob | null, own: readonly MomVnode[]): readonly MomVnode[] {
  if (job === null) return own;
  const names = new Set(parseExecVnode(job.exec_vnode).flatMap((chunk) => chunk.map(({ vnode }) => vnode)));
  const used = own.filter(({ name }) => names.has(name));
  return used.length > 0 ? used : own.slice(0, 1);
}

const settable = (rows: readonly { readonly name: string; readonly set: string }[]): string[] =>
  rows.filter((row) => row.set !== "pbs" && row.set !== "root").map((row) => row.name);

/** The attributes of a job that hooks may set. The mom computes resources_used, but a hook may add resources to it. */
const JOB_WRITABLE: readonly string[] = [...settable(JOB_ATTRIBUTES.rows), "resources_used"];
const VNODE_WRITABLE: readonly string[] = settable(NODE_ATTRIBUTES.rows);
export const MOM_WRITABLE: HookInput["writable"] = { job: JOB_WRITABLE, vnode: VNODE_WRITABLE };

/** Returns the resources_used that hooks have set, in the value types of the server. Values of the wrong type are left out. */
export function usedByHooks(changes: AttrChanges | undefined, resources: ReadonlyMap<string, ResourceDef>): Usage {
  const set = changes?.["resources_used"];
  if (typeof set !== "object" || set === null) return {};
  const used: { [resource: string]: string | number } = {};
  for (const [name, text] of Object.entries(set)) {
    const value = text === null ? null : usedValue(resources.get(name)?.type, text);
    if (value !== null) used[name] = value;
  }
  return used;
}

function usedValue(type: ResourceType | undefined, text: string): string | number | null {
  switch (type) {
    case "long":
    case "float": {
      const value = Number(text);
      return text.trim() !== "" && Number.isFinite(value) ? value : null;
    }
    case "duration":
      return parseDuration(text);
    case "size":
      return canonicalSize(text);
    case "string":
    case "string_array":
      return text;
    default:
      return null;
  }
}

/** Returns the job attributes that hooks have set. Values of the wrong type are passed on as they are; the server refuses them. */
export function changedAttrs(present: Attrs, changes: AttrChanges, resources: ReadonlyMap<string, ResourceDef>): Attrs {
  const attrs: { [name: string]: unknown } = {};
  for (const [name, wanted] of Object.entries(withoutUsage(changes))) {
    const def = JOB_ATTRIBUTES.byName(name);
    if (def === undefined || wanted === null) continue;
    try {
      attrs[def.name] = typeof wanted === "string" ? parseValue(def, wanted, resources) : mixed(def, present[def.name], wanted, resources);
    } catch (error) {
      if (!(error instanceof Reject)) throw error;
    }
  }
  return attrs;
}

function mixed(
  def: AttributeDef,
  present: unknown,
  wanted: { readonly [resource: string]: string | null },
  resources: ReadonlyMap<string, ResourceDef>,
): unknown {
  const record: { [resource: string]: unknown } = { ...(present as object | undefined) };
  for (const [resource, text] of Object.entries(wanted)) {
    if (text === null) delete record[resource];
    else Object.assign(record, parseValue(def, text, resources, resource));
  }
  return record;
}

/** Returns the changed attributes without resources_used: those that the server must change in the job. */
export function withoutUsage(changes: AttrChanges | undefined): AttrChanges {
  return Object.fromEntries(Object.entries(changes ?? {}).filter(([name]) => name !== "resources_used"));
}
