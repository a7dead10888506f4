// Makes the fairshare tree from the text of a resource_group file (docs/reference/scheduler.md 10). Pure. Usage and its
// decay are in fairshare.ts.
//
// R1. Names are unique, and a group precedes its members. R2. The root is TREEROOT. Entities that the file does not name
//     belong to the group `unknown`.

/** A fault in the file. line: the number of the line. */
export type ResourceGroupFault = { readonly line: number; readonly text: string };

export type FairshareNode = {
  readonly name: string;
  readonly cresgrp: number;
  readonly shares: number;
  /** the share of the node in the whole tree, 0..1 */
  readonly percentage: number;
  readonly children: readonly FairshareNode[];
};
export type FairshareTree = FairshareNode;

type Entry = { readonly name: string; readonly cresgrp: number; readonly shares: number; readonly children: Entry[] };

/** Parses a resource_group file. Lines with faults are reported and skipped. */
export function parseResourceGroup(
  text: string,
  unknown_shares: number,
): { readonly tree: FairshareTree; readonly messages: readonly ResourceGroupFault[] } {
  const messages: ResourceGroupFault[] = [];
  const root: Entry = { name: "TREEROOT", cresgrp: 0, shares: -1, children: [] };
  const unknown: Entry = { name: "unknown", cresgrp: 1, shares: unknown_shares, children: [] };
  root.children.push(unknown);
  const entries = new Map<string, Entry>([
    ["root", root],
    ["TREEROOT", root],
    ["unknown", unknown],
  ]);
  text.split("\n").forEach((raw, at) => {
    const line = raw.trim();
    if (line === "" || line.startsWith("#") || line.startsWith("*")) return;
    const fault = addLine(entries, line.split(/\s+/));
    if (fault !== null) messages.push({ line: at + 1, text: fault });
  });
  return { tree: withPercentages(root, 1), messages };
}

/** The share of each entity in the whole tree, by name. */
export function percentagesOf(tree: FairshareTree): Map<string, number> {
  const percentages = new Map([[tree.name, tree.percentage]]);
  for (const child of tree.children) for (const [name, percentage] of percentagesOf(child)) percentages.set(name, percentage);
  return percentages;
}

function addLine(entries: Map<string, Entry>, [name = "", cresgrp = "", parentName = "", shares = ""]: readonly string[]): string | null {
  if (!/^[0-9]+$/.test(cresgrp) || !/^[0-9]+$/.test(shares)) return "";
  if (entries.has(name)) return `entity ${name} is not unique`;
  const parent = entries.get(parentName);
  if (parent === undefined) return `Parent ginfo of ${name} doesnt exist.`;
  const entry: Entry = { name, cresgrp: Number(cresgrp), shares: Number(shares), children: [] };
  parent.children.push(entry);
  entries.set(name, entry);
  return null;
}

function withPercentages(entry: Entry, percentage: number): FairshareNode {
  const sum = entry.children.reduce((total, child) => total + child.shares, 0);
  return {
    name: entry.name,
    cresgrp: entry.cresgrp,
    shares: entry.shares,
    percentage,
    children: entry.children.map((child) => withPercentages(child, sum === 0 ? 0 : (child.shares / sum) * percentage)),
  };
}
