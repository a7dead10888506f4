// Fairshare (docs/reference/scheduler.md 10) compares the usage of each entity with its share. This file has the tree of
// resource_group with its usage in memory; usage-file.ts reads and writes the usage.
//
// H1. The usage of a group is 1 plus the usage of the entities below it. An entity that has used nothing has the usage 1,
//     but adds nothing to the usage of its groups.
// H2. An entity that resource_group does not name is added below `unknown` with one share when its first job appears.
// H3. Temporary usage is usage that a cycle adds for jobs that it starts or plans. It affects the order of later jobs in the
//     same cycle and is removed when the cycle ends.
// H4. What a run uses is counted only once. Therefore the amount that was counted already is kept for each run and stored
//     together with the usage.

import { present } from "#support/assert.ts";
import type { FairshareTree } from "./resource-group.ts";

export const UNKNOWN = "unknown";

export const FAIRSHARE_ENTITIES = ["euser", "egroup", "Account_Name", "queue", "egroup:euser"] as const;
export type FairshareEntity = (typeof FAIRSHARE_ENTITIES)[number];

export type ShareNode = {
  readonly name: string;
  /** the number that the entity has in resource_group */
  readonly cresgrp: number;
  readonly shares: number;
  readonly parent: ShareNode | null;
  readonly children: ShareNode[];
  /** the share among the entities of the same group (group_percentage) and in the whole tree (percentage), 0..1 */
  group_percentage: number;
  percentage: number;
  /** the usage of this entity without the entities below it; 1 means that it has used nothing */
  own: number;
  /** the usage, including the usage of the entities below (H1) */
  usage: number;
  /** `usage` plus the temporary usage of the present cycle (H3) */
  temporary: number;
};

/** How much of a run's usage has been counted (H4). run: the run_count of the job. */
export type Counted = { readonly run: number; readonly amount: number };

export type Fairshare = {
  readonly root: ShareNode;
  readonly nodes: Map<string, ShareNode>;
  /** the time when usage was last reduced (decay) */
  last_decay_s: number;
  readonly counted: Map<string, Counted>;
  /** increases with every change of the order of entities, including temporary usage */
  version: number;
  /** increases with every change of usage or percentages */
  usage_version: number;
  /** whether there are changes to write */
  changed: boolean;
};

/** The data that are stored and so survive a restart. */
export type StoredUsage = {
  readonly last_decay_s: number;
  readonly usage: Readonly<Record<string, number>>;
  readonly running: Readonly<Record<string, Counted>>;
};

/**
 * Makes a tree with stored usage. stored null: no entity has used anything, and the first decay period begins now.
 */
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

/** Applies the usage to another tree, after resource_group was read again. */
export function replant(fairshare: Fairshare, tree: FairshareTree): Fairshare {
  const { version, usage_version, changed } = fairshare;
  const planted = createFairshare(tree, storedOf(fairshare), fairshare.last_decay_s);
  return Object.assign(planted, { version: version + 1, usage_version: usage_version + 1, changed });
}

export function storedOf({ nodes, last_decay_s, counted }: Fairshare): StoredUsage {
  const used = [...nodes.values()].filter(({ own }) => own !== 1);
  return { last_decay_s, usage: Object.fromEntries(used.map(({ name, own }) => [name, own])), running: Object.fromEntries(counted) };
}

/** The fields of a job that decide to which entity it belongs. */
export type ShareHolder = { readonly user: string; readonly group: string; readonly account?: string; readonly queue: string };
/** A run of a job. */
export type Run = { readonly id: string; readonly run_count: number };

/** The entity of a job. A job without an account belongs to `unknown`. */
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

/** The entity with this name. If there is none, it is added below `unknown` (H2). */
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

/** Sets an entity's usage to a value given by an administrator (pbsfs -s). */
export function setUsage(fairshare: Fairshare, name: string, usage: number): void {
  entity(fairshare, name).own = Math.max(1, usage);
  sumUp(fairshare.root);
  touch(fairshare);
  fairshare.changed = true;
}

/**
 * Counts the usage of a run. amount: what the run has used until now; only what was not counted before is added (H4).
 */
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

/** Reduces all usage once for every decay period that has passed. Returns the number of these periods, usually 0. */
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

/** Adds temporary usage for a job that the cycle starts or plans; it lasts until the end of the cycle (H3). */
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

/** Computes the usage of a node and of all nodes below it (H1). Returns the amount that they add to the groups above. */
function sumUp(node: ShareNode): number {
  const below = node.children.reduce((sum, child) => sum + sumUp(child), 0);
  const own = node.own === 1 ? 0 : node.own;
  node.usage = node.children.length === 0 ? node.own : 1 + own + below;
  node.temporary = node.usage;
  return own + below;
}

// --- derived values

/** fairshare_tree_usage: the entity's part of all usage, adjusted by the usage of its groups. */
export function treeUsage(fairshare: Fairshare, node: ShareNode): number {
  const { root } = fairshare;
  if (node.parent === null) return 1;
  const usage = node.usage / root.usage;
  if (node.parent === root) return usage;
  return usage + (treeUsage(fairshare, node.parent) - usage) * node.group_percentage;
}

/**
 * fairshare_factor: 1 if the entity has used nothing, 0.5 if it has used its share, near 0 if it has used
 * many times its share.
 */
export function shareFactor(fairshare: Fairshare, node: ShareNode): number {
  return node.percentage <= 0 ? 0 : 2 ** -(treeUsage(fairshare, node) / node.percentage);
}

/** Usage divided by share. Jobs of an entity with a smaller ratio come first. Jobs of an entity without a share come last. */
export const ratio = ({ temporary, percentage }: ShareNode): number =>
  percentage <= 0 ? Number.POSITIVE_INFINITY : temporary / percentage;

/** Compares two entities; returns a negative number if a comes before b. Their groups are compared from the root down; the first difference decides. */
export function compareShares(a: ShareNode, b: ShareNode): number {
  if (a === b) return 0;
  const [left, right] = [pathOf(a), pathOf(b)];
  for (let at = 0; at < left.length && at < right.length; at++) {
    const [one, other] = [ratio(present(left[at], "node")), ratio(present(right[at], "node"))];
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}

/** The nodes from the child of the root down to the node. */
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
