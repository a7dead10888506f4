// Fairshare (docs/reference/scheduler.md 10): who has used how much of what is his. The tree of resource_group with usage on it, in memory; usage-file.ts keeps it.
//
// H1. A group's usage is 1 and what the entities below have used; an entity that has used nothing counts 1 itself and adds nothing to its groups.
// H2. Entities that the file does not name stand below `unknown`, one share each, from their first job on.
// H3. Temporary usage is what a cycle adds for jobs it starts or plans: it orders the cycle's further jobs and is gone when the cycle ends.
// H4. Usage of a run counts once: what was counted of it is kept beside the usage, and written with it.

import type { FairshareTree } from "./resource-group.ts";

export const UNKNOWN = "unknown";

export const FAIRSHARE_ENTITIES = ["euser", "egroup", "Account_Name", "queue", "egroup:euser"] as const;
export type FairshareEntity = (typeof FAIRSHARE_ENTITIES)[number];

export type ShareNode = {
  readonly name: string;
  /** number in resource_group */
  readonly cresgrp: number;
  readonly shares: number;
  readonly parent: ShareNode | null;
  readonly children: ShareNode[];
  /** share of the siblings' shares, and of the whole tree: 0..1 */
  group_percentage: number;
  percentage: number;
  /** counted for this name itself; 1: nothing yet */
  own: number;
  /** H1 */
  usage: number;
  /** H3 */
  temporary: number;
};

/** What of a run is counted already. run: its run_count. */
export type Counted = { readonly run: number; readonly amount: number };

export type Fairshare = {
  readonly root: ShareNode;
  readonly nodes: Map<string, ShareNode>;
  /** when usage was last decayed */
  last_decay_s: number;
  readonly counted: Map<string, Counted>;
  /** grows with every change of the order of entities, temporary usage included */
  version: number;
  /** grows with every change of usage and percentages */
  usage_version: number;
  /** there is something to write */
  changed: boolean;
};

/** What is kept over restarts. */
export type StoredUsage = {
  readonly last_decay_s: number;
  readonly usage: Readonly<Record<string, number>>;
  readonly running: Readonly<Record<string, Counted>>;
};

/** The tree with stored usage on it. stored null: nobody has used anything, and the time of decay begins now. */
export function createFairshare(tree: FairshareTree, stored: StoredUsage | null, now_s: number): Fairshare {
  const nodes = new Map<string, ShareNode>();
  const root = nodeOf(tree, null, nodes);
  const fairshare: Fairshare = {
    root,
    nodes,
    last_decay_s: stored?.last_decay_s ?? now_s,
    counted: new Map(Object.entries(stored?.running ?? {})),
    version: 0,
    usage_version: 0,
    changed: false,
  };
  for (const [name, usage] of Object.entries(stored?.usage ?? {})) entity(fairshare, name).own = Math.max(1, usage);
  sumUp(root);
  return fairshare;
}

/** The same usage on another tree (resource_group was read again). */
export function replant(fairshare: Fairshare, tree: FairshareTree): Fairshare {
  const { version, usage_version, changed } = fairshare;
  const planted = createFairshare(tree, storedOf(fairshare), fairshare.last_decay_s);
  return Object.assign(planted, { version: version + 1, usage_version: usage_version + 1, changed });
}

export function storedOf({ nodes, last_decay_s, counted }: Fairshare): StoredUsage {
  const used = [...nodes.values()].filter(({ own }) => own !== 1);
  return { last_decay_s, usage: Object.fromEntries(used.map(({ name, own }) => [name, own])), running: Object.fromEntries(counted) };
}

/** What of a job decides whose shares it uses. */
export type ShareHolder = { readonly user: string; readonly group: string; readonly account?: string; readonly queue: string };
/** A run of a job. */
export type Run = { readonly id: string; readonly run_count: number };

/** The entity of a job. A job without account belongs to `unknown`. */
export function entityOf(job: ShareHolder, kind: FairshareEntity): string {
  switch (kind) {
    case "euser":
      return job.user;
    case "egroup":
      return job.group;
    case "Account_Name":
      return job.account === undefined || job.account === "" ? UNKNOWN : job.account;
    case "queue":
      return job.queue;
    case "egroup:euser":
      return `${job.group}:${job.user}`;
    default: {
      const unreachable: never = kind;
      return unreachable;
    }
  }
}

/** An entity by its name; one that is new comes below `unknown` (H2). */
export function entity(fairshare: Fairshare, name: string): ShareNode {
  const known = fairshare.nodes.get(name);
  if (known !== undefined) return known;
  const parent = fairshare.nodes.get(UNKNOWN) ?? fairshare.root;
  const node: ShareNode = {
    name,
    cresgrp: -1,
    shares: 1,
    parent,
    children: [],
    group_percentage: 0,
    percentage: 0,
    own: 1,
    usage: 1,
    temporary: 1,
  };
  parent.children.push(node);
  fairshare.nodes.set(name, node);
  for (const child of parent.children) {
    child.group_percentage = 1 / parent.children.length;
    child.percentage = parent.percentage * child.group_percentage;
  }
  touch(fairshare);
  return node;
}

// --- usage

export function addUsage(fairshare: Fairshare, name: string, amount: number): void {
  if (amount <= 0) return;
  const node = entity(fairshare, name);
  const added = amount + (node.own === 1 && node.children.length === 0 ? 1 : 0);
  node.own += amount;
  for (let at: ShareNode | null = node; at !== null; at = at.parent) {
    at.usage += at === node ? amount : added;
    at.temporary += at === node ? amount : added;
  }
  touch(fairshare);
  fairshare.changed = true;
}

/** What an administrator says an entity has used (pbsfs -s). */
export function setUsage(fairshare: Fairshare, name: string, usage: number): void {
  entity(fairshare, name).own = Math.max(1, usage);
  sumUp(fairshare.root);
  touch(fairshare);
  fairshare.changed = true;
}

/** Usage of a run in all: what is new of it is added. Rerun, it begins anew. */
export function countRun(fairshare: Fairshare, name: string, { id, run_count }: Run, amount: number): void {
  const before = fairshare.counted.get(id);
  const counted = before?.run === run_count ? before.amount : 0;
  if (amount <= counted) return;
  fairshare.counted.set(id, { run: run_count, amount });
  addUsage(fairshare, name, amount - counted);
}

export function forgetRun(fairshare: Fairshare, id: string): void {
  if (fairshare.counted.delete(id)) fairshare.changed = true;
}

export type DecayRule = { readonly time_s: number; readonly factor: number };

/** Decays once for every period that is over. Returns how often: usually 0. */
export function decayDue(fairshare: Fairshare, { time_s, factor }: DecayRule, now_s: number): number {
  if (time_s <= 0 || now_s < fairshare.last_decay_s + time_s) return 0;
  const times = Math.floor((now_s - fairshare.last_decay_s) / time_s);
  decay(fairshare, factor ** times);
  fairshare.last_decay_s += times * time_s;
  return times;
}

export function decay(fairshare: Fairshare, factor: number): void {
  for (const node of fairshare.nodes.values()) node.own = Math.max(1, node.own * factor);
  sumUp(fairshare.root);
  touch(fairshare);
  fairshare.changed = true;
}

/** Usage of a job that is about to run, for the rest of the cycle (H3). */
export function addTemporary(fairshare: Fairshare, name: string, amount: number): void {
  if (amount <= 0) return;
  for (let at: ShareNode | null = entity(fairshare, name); at !== null; at = at.parent) at.temporary += amount;
  fairshare.version++;
}

export function forgetTemporary(fairshare: Fairshare): void {
  for (const node of fairshare.nodes.values()) node.temporary = node.usage;
  fairshare.version++;
}

function touch(fairshare: Fairshare): void {
  fairshare.version++;
  fairshare.usage_version++;
}

/** H1, from below. Returns what the subtree adds to the groups above. */
function sumUp(node: ShareNode): number {
  const below = node.children.reduce((sum, child) => sum + sumUp(child), 0);
  const own = node.own === 1 ? 0 : node.own;
  node.usage = node.children.length === 0 ? node.own : 1 + own + below;
  node.temporary = node.usage;
  return own + below;
}

// --- what follows from it

/** fairshare_tree_usage: usage as seen from the root, weighed with what the groups around have used. */
export function treeUsage(fairshare: Fairshare, node: ShareNode): number {
  const { root } = fairshare;
  if (node.parent === null) return 1;
  const usage = node.usage / root.usage;
  if (node.parent === root) return usage;
  return usage + (treeUsage(fairshare, node.parent) - usage) * node.group_percentage;
}

/** fairshare_factor: 1 has used nothing, 0.5 his share, near 0 many times as much. */
export function shareFactor(fairshare: Fairshare, node: ShareNode): number {
  return node.percentage <= 0 ? 0 : 2 ** -(treeUsage(fairshare, node) / node.percentage);
}

/** Usage for what one is entitled to; smaller comes first. Without a share: last of all. */
export const ratio = ({ temporary, percentage }: ShareNode): number =>
  percentage <= 0 ? Number.POSITIVE_INFINITY : temporary / percentage;

/** Negative: a has the better claim. Compared from the root down; the first difference decides. */
export function compareShares(a: ShareNode, b: ShareNode): number {
  if (a === b) return 0;
  const [left, right] = [pathOf(a), pathOf(b)];
  for (let at = 0; at < left.length && at < right.length; at++) {
    const [one, other] = [ratio(left[at] as ShareNode), ratio(right[at] as ShareNode)];
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}

/** From the root's child down to the node. */
export function pathOf(node: ShareNode): ShareNode[] {
  const path: ShareNode[] = [];
  for (let at = node; at.parent !== null; at = at.parent) path.push(at);
  return path.reverse();
}

function nodeOf(tree: FairshareTree, parent: ShareNode | null, nodes: Map<string, ShareNode>): ShareNode {
  const { name, cresgrp, shares, percentage } = tree;
  const group_percentage = parent === null ? 1 : parent.percentage === 0 ? 0 : percentage / parent.percentage;
  const node: ShareNode = { name, cresgrp, shares, parent, children: [], group_percentage, percentage, own: 1, usage: 1, temporary: 1 };
  nodes.set(name, node);
  for (const child of tree.children) node.children.push(nodeOf(child, node, nodes));
  return node;
}
