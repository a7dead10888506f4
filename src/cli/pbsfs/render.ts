// Writes the texts of pbsfs (docs/reference/commands.md 6): the list, the tree, one entity.

import { type Fairshare, pathOf, type ShareNode, treeUsage } from "#model/fairshare.ts";

/** Goes through the tree: each entity comes before its children. Children come in the reverse order of resource_group; `unknown` is the last one. */
function* inOrder(node: ShareNode, level = 0): Iterable<{ readonly node: ShareNode; readonly level: number }> {
  yield { node, level };
  for (const child of [...node.children].reverse()) yield* inOrder(child, level + 1);
}

/** Writes the list of -p. units: the unit of usage. */
export function listText({ root }: Fairshare, units: string): string {
  return `Fairshare usage units are in: ${units}\n${[...inOrder(root)].map(({ node }) => listLine(node)).join("")}`;
}

function listLine(node: ShareNode): string {
  const cell = (value: number | string, width: number): string => String(value).padEnd(width);
  const cells = `Grp: ${cell(groupOf(node), 5)}  cgrp: ${cell(node.cresgrp, 5)}Shares: ${cell(node.shares, 6)} Usage: ${cell(whole(node.usage), 6)}`;
  return `${node.name.padEnd(10)}: ${cells} Perc: ${(node.percentage * 100).toFixed(3).padStart(6)}%\n`;
}

/** Writes the tree of -t. */
export function treeText({ root }: Fairshare): string {
  return [...inOrder(root)].map(({ node, level }) => `${" ".repeat(level === 0 ? 1 : 5 * level)}${node.name}(${node.cresgrp})\n`).join("");
}

/** Writes what -g shows about one entity. */
export function entityText(fairshare: Fairshare, node: ShareNode, units: string): string {
  const path = [fairshare.root, ...pathOf(node)];
  const line = (each: ShareNode): string =>
    `${each.name.padEnd(10)}: ${String(each.cresgrp).padStart(5)} ${whole(each.usage).padStart(10)} / ${each.percentage.toFixed(3)} = ${perShare(each)}\n`;
  return `fairshare entity: ${node.name}
Resgroup\t\t: ${groupOf(node)}
cresgroup\t\t: ${node.cresgrp}
Shares\t\t\t: ${node.shares}
Percentage\t\t: ${Math.fround(singlePercentage(node) * 100).toFixed(6)}%
fairshare_tree_usage\t: ${treeUsage(fairshare, node).toFixed(6)}
usage\t\t\t: ${whole(node.usage)} (${units})
usage/perc\t\t: ${perShare(node)}
Path from root: 
${path.map(line).join("")}`;
}

const groupOf = ({ parent }: ShareNode): number => parent?.cresgrp ?? -1;
const whole = (usage: number): string => usage.toFixed(0);
const perShare = ({ usage, percentage }: ShareNode): string => (percentage === 0 ? "0" : whole(usage / percentage));

/** Returns the percentage of an entity in single precision. PBS computes it in this way, which is visible in the six decimals that are printed. */
function singlePercentage({ parent, group_percentage }: ShareNode): number {
  return parent === null ? 1 : Math.fround(singlePercentage(parent) * Math.fround(group_percentage));
}
