// Hierarchies of control groups: where the kernel has mounted them, and the directories of groups in them.

import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JobLimits } from "../job/cgroup-limits.ts";
import { kernelText } from "./proc-table.ts";

const CONTROLLERS = ["memory", "cpuset", "cpu", "cpuacct", "pids", "freezer"] as const;
export type Controller = (typeof CONTROLLERS)[number];
/** A hierarchy. own: directory of the group in which this process is. top: directory in which the groups of our jobs are made. */
export type Hierarchy = { readonly version: 1 | 2; readonly controllers: ReadonlySet<string>; readonly own: string; readonly top: string };

/**
 * Finds the hierarchies listed in /proc/PID/mounts, each with the group that /proc/PID/cgroup gives. name: the name of the
 * directory to be made in each hierarchy.
 */
export function hierarchiesOf(mounts: string, cgroup: string, name: string): Hierarchy[] {
  const groups = cgroup
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => /^\d+:([^:]*):(.*)$/.exec(line))
    .flatMap((match) => (match === null ? [] : [{ controllers: new Set(match[1]?.split(",")), path: match[2] ?? "" }]));
  return mounts.split("\n").flatMap((line): Hierarchy[] => {
    const [, mount = "", type = "", options = ""] = line.split(" ");
    if (type !== "cgroup" && type !== "cgroup2") return [];
    const version = type === "cgroup2" ? 2 : 1;
    const words = new Set(options.split(","));
    const group = groups.find(({ controllers }) =>
      version === 2 ? controllers.size === 1 && controllers.has("") : [...controllers].some((each) => each !== "" && words.has(each)),
    );
    if (group === undefined) return [];
    // In a container, the path of the group may be relative to another root than the one that is mounted here.
    const inside = join(mount, group.path);
    const own = existsSync(inside) ? inside : mount;
    // In version 2, the processes of a systemd unit may be in a group of their own inside the unit's group (DelegateSubgroup=daemons). Our groups are then made
    // beside it, because a group with limits cannot lie in a group with processes.
    const parent = version === 2 && own.endsWith("/daemons") ? own.slice(0, -"/daemons".length) : own;
    return [{ version, controllers: version === 1 ? group.controllers : new Set(), own, top: `${parent}/${name}` }];
  });
}

/** Whether the hierarchy has a controller that is used here. */
export const isUseful = ({ version, controllers }: Hierarchy): boolean =>
  version === 2 || CONTROLLERS.some((each) => controllers.has(each));

/** Makes the group in which the groups of jobs are made. Returns false if that cannot be done. */
export function makeTop({ version, controllers, top }: Hierarchy): boolean {
  try {
    make(top);
    if (version === 1 && controllers.has("cpuset")) inheritCpuset(top);
    if (version === 2) for (const controller of ["memory", "cpuset", "cpu", "pids"]) enable(top, controller);
    return true;
  } catch {
    return false;
  }
}

/** Lets the groups below `top` use a controller (version 2). The kernel refuses this where a group contains processes. */
function enable(top: string, controller: string): void {
  for (const group of [join(top, ".."), top]) {
    try {
      writeFileSync(`${group}/cgroup.subtree_control`, `+${controller}`);
    } catch {
      return;
    }
  }
}

/** Whether groups of this hierarchy may use the controller (version 2). */
export const offers = (top: string, controller: Controller): boolean =>
  read(`${top}/cgroup.subtree_control`).split(/\s+/).includes(controller);

export function makeGroup({ version, controllers, top }: Hierarchy, job: string, { cpus }: JobLimits): void {
  const group = `${top}/${job}`;
  make(group);
  if (version === 1 && controllers.has("cpuset")) inheritCpuset(group);
  if (cpus !== null && existsSync(`${group}/cpuset.cpus`)) writeFileSync(`${group}/cpuset.cpus`, cpus);
}

/** Moves this thread (version 1) or process (version 2) into the group. */
export function enter({ version }: Hierarchy, group: string): void {
  writeFileSync(`${group}/${version === 1 ? "tasks" : "cgroup.procs"}`, "0");
}

/** A new cpuset of version 1 is empty and accepts no process until it has the settings of its parent. */
function inheritCpuset(group: string): void {
  for (const file of ["cpuset.mems", "cpuset.cpus"]) {
    if (read(`${group}/${file}`).trim() === "") writeFileSync(`${group}/${file}`, read(join(group, "..", file)));
  }
}

function make(group: string): void {
  mkdirSync(group, { recursive: true, mode: 0o755 });
}

/** Returns the names of the groups that lie directly in a group. */
export function groupsIn(top: string): string[] {
  try {
    return readdirSync(top, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  } catch {
    return [];
  }
}

export const pidsIn = (group: string): number[] =>
  read(`${group}/cgroup.procs`)
    .split("\n")
    .filter((line) => line !== "")
    .map(Number);

/** Returns the text of a file, or "" if it cannot be read. */
export function read(path: string): string {
  try {
    return kernelText(path);
  } catch {
    return "";
  }
}

/** Does the work and ignores its errors. Returns false if there was one. */
export function quietly(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}
