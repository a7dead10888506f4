// Combines the vnodes of a host: amounts are added up, and other values that differ are shown as <various>
// (docs/reference/commands.md 4). Pure.

import type { WireAttrs } from "#protocol/messages.ts";
import { sizeBytes } from "../columns.ts";

export type Node = { readonly id: string; readonly attrs: WireAttrs };

const VARIOUS = "<various>";
/** The built-in consumable resources of a host. */
const CONSUMABLE = ["ncpus", "mem", "vmem", "hbmem", "naccelerators", "accelerator_memory", "nmics", "ngpus"];
/** Attributes that are lists. The lists of several vnodes are joined, not compared. */
const LISTS = new Set(["jobs", "resv"]);

type Resources = { readonly [resource: string]: string };

/** Returns the host of a vnode. */
export function hostOf(node: Node): string {
  return resourcesOf(node, "resources_available")["host"] ?? text(node, "Mom") ?? node.id;
}

export function resourcesOf(node: Node, list: string): Resources {
  const value = node.attrs[list];
  return typeof value === "object" && !Array.isArray(value) ? (value as Resources) : {};
}

export function text(node: Node, name: string): string | null {
  const value = node.attrs[name];
  return typeof value === "string" ? value : null;
}

/** Groups vnodes by host, in the order in which the first vnode of each host comes. */
export function groupByHost(nodes: readonly Node[]): Map<string, Node[]> {
  const hosts = new Map<string, Node[]>();
  for (const node of nodes) {
    const host = hostOf(node);
    const group = hosts.get(host);
    if (group === undefined) hosts.set(host, [node]);
    else group.push(node);
  }
  return hosts;
}

/** Combines the vnodes of a host into one record. consumable: names of further resources that are added up. */
export function mergeHost(host: string, nodes: readonly Node[], consumable: ReadonlySet<string>): Node {
  const [first] = nodes;
  if (nodes.length === 1 && first !== undefined) return { id: host, attrs: first.attrs };
  const names = [...new Set(nodes.flatMap((node) => Object.keys(node.attrs)))];
  const attrs: { [name: string]: string | Resources } = {};
  for (const name of names) {
    if (typeof first?.attrs[name] === "object" || nodes.some((node) => typeof node.attrs[name] === "object")) {
      const isSummed = (resource: string): boolean =>
        name === "resources_assigned" || CONSUMABLE.includes(resource) || consumable.has(resource);
      attrs[name] = mergeResources(
        nodes.map((node) => resourcesOf(node, name)),
        isSummed,
      );
      continue;
    }
    const values = nodes.flatMap((node) => text(node, name) ?? []);
    attrs[name] = LISTS.has(name) ? values.filter((value) => value !== "").join(", ") : same(values);
  }
  return { id: host, attrs };
}

function mergeResources(lists: readonly Resources[], isSummed: (resource: string) => boolean): Resources {
  const merged: { [resource: string]: string } = {};
  for (const resource of new Set(lists.flatMap((list) => Object.keys(list)))) {
    const values = lists.flatMap((list) => list[resource] ?? []);
    merged[resource] = isSummed(resource) ? sum(values) : same(values);
  }
  return merged;
}

const same = (values: readonly string[]): string => (values.every((value) => value === values[0]) ? (values[0] ?? "") : VARIOUS);

/** Adds up values: numbers, or sizes, whose sum is in kilobytes. */
function sum(values: readonly string[]): string {
  if (values.every((value) => /^-?\d+(?:\.\d+)?$/.test(value))) return String(values.reduce((total, value) => total + Number(value), 0));
  const bytes = values.map(sizeBytes);
  if (bytes.includes(null)) return same(values);
  return `${Math.ceil((bytes as number[]).reduce((total, each) => total + each, 0) / 1024)}kb`;
}
