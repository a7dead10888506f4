// Parses vnode definition files (docs/reference/execution.md 7), and makes a mom's report about its vnodes. Pure.
//
//     $configversion 2
//     n1[0]: resources_available.ncpus = 4
//     n1: sharing = ignore_excl

import { type AttributeValue, attributeOf } from "#model/attribute.ts";
import { Reject } from "#model/pbse.ts";
import { builtinResources, customResource, type ResourceDef } from "#model/resource-table.ts";
import { NODE_ATTRIBUTES } from "#model/tables/node-attributes.ts";
import { parseValue } from "#model/values/index.ts";
import { parseResourceValue } from "#model/values/resource-value.ts";
import type { MomVnode } from "#protocol/mom-link.ts";

export type VnodeDefs = ReadonlyMap<string, VnodeDef>;
export type VnodeDef = {
  readonly attrs: { readonly [name: string]: AttributeValue };
  readonly resources: { readonly [name: string]: string | number | boolean };
};

/** The error for a line that is not a definition. Its message names the line. */
class VnodeDefError extends Error {
  override readonly name = "VnodeDefError";
}

const LINE = /^([^\s:=]+)\s*:\s*([A-Za-z_]\w*)(?:\.([\w-]+))?\s*=\s*(.*)$/;
const RESOURCES = builtinResources();

/** Parses a vnode definition file. Throws VnodeDefError. */
export function parseVnodeDefs(text: string): Map<string, VnodeDef> {
  const found = new Map<string, VnodeDef>();
  const lines = text.split("\n").map((line, at) => [line.trim(), at + 1] as const);
  const [first, ...rest] = lines.filter(([line]) => line !== "" && !line.startsWith("#"));
  if (first === undefined || !/^\$configversion\s+2$/.test(first[0])) throw new VnodeDefError("the first line must be $configversion 2");
  for (const [line, number] of rest) {
    const match = LINE.exec(line);
    if (match === null) throw new VnodeDefError(`line ${number}: not VNODE: ATTRIBUTE = VALUE`);
    const [, vnode = "", attribute = "", resource, value = ""] = match;
    found.set(vnode, withAttribute(found.get(vnode) ?? { attrs: {}, resources: {} }, attribute, resource, unquoted(value.trim()), number));
  }
  return found;
}

const unquoted = (text: string): string => (/^"[^"]*"$/.test(text) ? text.slice(1, -1) : text);

function withAttribute(def: VnodeDef, attribute: string, resource: string | undefined, text: string, line: number): VnodeDef {
  try {
    const row = attributeOf(NODE_ATTRIBUTES, attribute);
    if (row.name === "resources_available" && resource !== undefined) {
      return { ...def, resources: { ...def.resources, [resource]: resourceValue(resource, text) } };
    }
    return { ...def, attrs: { ...def.attrs, [row.name]: parseValue(row, text, RESOURCES, resource) } };
  } catch (error) {
    if (!(error instanceof Reject)) throw error;
    throw new VnodeDefError(`line ${line}: ${(error.text ?? error.message).trim()}`);
  }
}

/** Returns the value of a resource. The mom does not know the site's own resources (only the server does), so it guesses their types from the values. */
function resourceValue(name: string, text: string): string | number | boolean {
  const def = RESOURCES.get(name) ?? guessed(name, text);
  const value = parseResourceValue(def, text);
  if (value === null) throw new Reject(0, `${name} cannot be ${JSON.stringify(text)}`);
  return value;
}

function guessed(name: string, text: string): ResourceDef {
  if (/^-?\d+$/.test(text)) return customResource(name, "long");
  if (/^-?\d+\.\d+$/.test(text)) return customResource(name, "float");
  if (/^\d+[kmgtp]?[bw]$/i.test(text)) return customResource(name, "size");
  if (/^(true|false)$/i.test(text)) return customResource(name, "boolean");
  return customResource(name, "string");
}

export type HostFacts = { readonly host: string; readonly arch: string; readonly ncpus: number; readonly mem_kb: number };

/** Merges definition files in their order: attributes of a later file replace attributes of an earlier file. */
export function mergeVnodeDefs(files: readonly VnodeDefs[]): Map<string, VnodeDef> {
  const merged = new Map<string, VnodeDef>();
  for (const file of files) {
    for (const [name, def] of file) {
      const before = merged.get(name);
      merged.set(
        name,
        before === undefined ? def : { attrs: { ...before.attrs, ...def.attrs }, resources: { ...before.resources, ...def.resources } },
      );
    }
  }
  return merged;
}

/**
 * Returns the natural vnode (named as the host, with the resources of the machine) and the vnodes that were defined. A definition may also set values of the
 * natural vnode.
 */
export function reportedVnodes(facts: HostFacts, defs: VnodeDefs): MomVnode[] {
  const several = [...defs.keys()].some((name) => name !== facts.host);
  const common = { sharing: "default_shared", pcpus: facts.ncpus, ...(several ? { in_multivnode_host: 1 } : {}) };
  const natural = defs.get(facts.host);
  const own = { arch: facts.arch, host: facts.host, mem: `${facts.mem_kb}kb`, ncpus: facts.ncpus, vnode: facts.host };
  const vnodes: MomVnode[] = [
    { name: facts.host, attrs: { ...common, ...natural?.attrs, resources_available: { ...own, ...natural?.resources } } },
  ];
  for (const [name, def] of defs) {
    if (name === facts.host) continue;
    vnodes.push({
      name,
      attrs: { ...common, ...def.attrs, resources_available: { arch: facts.arch, host: facts.host, vnode: name, ...def.resources } },
    });
  }
  return vnodes;
}
