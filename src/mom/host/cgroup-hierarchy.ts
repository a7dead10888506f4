// Hierarchies of control groups: where the kernel has mounted them, and the directories of groups in them.

import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JobLimits } from "../job/cgroup-limits.ts";
import { kernelText } from "./proc-table.ts";

const CONTROLLERS = ["memory", "cpuset", "cpu", "cpuacct", "pids", "freezer"] as const;
export type Controller = (typeof CONTROLLERS)[number];
/** The mount point of a hierarchy, and our group in it. */
export type Hierarchy = { readonly version: 1 | 2; readonly controllers: ReadonlySet<string>; readonly own: string; readonly top: string };

/** The hierarchies in /proc/PID/mounts, each with its group in /proc/PID/cgroup. */
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
    // In a container the group's path may be relative to another root than the one mounted here.
    const inside = join(mount, group.path);
    const own = existsSync(inside) ? inside : mount;
    // In version 2 a unit's processes are in a separate leaf (systemd: DelegateSubgroup=daemons), so that groups with limits
    // can exist beside it.
    const parent = version === 2 && own.endsWith("/daemons") ? own.slice(0, -"/daemons".length) : own;
    return [{ version, controllers: version === 1 ? group.controllers : new Set(), own, top: `${parent}/${name}` }];
  });
}

/** Whether the hierarchy has a controller that we use. */
export const isUseful = ({ version, controllers }: Hierarchy): boolean =>
  version === 2 || CONTROLLERS.some((each) => controllers.has(each));

/** Makes the group that the jobs' groups lie in; false: that cannot be done. */
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

/** In version 2 a controller is offered to children by name; the kernel refuses where processes are in the way. */
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

/** Names of the groups in a group. */
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

/** Returns "" if the file cannot be read. */
export function read(path: string): string {
  try {
    return kernelText(path);
  } catch {
    return "";
  }
}

/** Returns false if the work failed. */
export function quietly(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}
