// Control groups of jobs, versions 1 and 2: born in its group, a process cannot leave the job whatever sessions and environments it makes for itself; the
// group is killed whole, knows the cpu time of all that ever ran in it, and enforces limits (job/cgroup-limits.ts).
//
// G1. Groups lie below our own, in a directory that this mom has made (cgroup-identity.ts): nobody else's are touched.
// G2. The starter's thread is in a job's group while it makes the top process: there is no moment in which a process of the job is outside. From there it
//     goes on to the next job's, or leaves (a change of group costs what a small program costs). Limits are set afterwards, so that they never meet the
//     starter; no group is killed or removed while it is inside.
//     A task's group has them already: a job that is at its limit would have the starter killed for want of memory, or held up. There it stays out of what
//     limits memory and cpu and brings the task in; in version 2, where that is one with the rest, these limits are lifted as long as it is inside.
// G3. What the kernel does not offer here is not enforced, and said (missing): a job is never refused for it.
// G4. After a pause the first change of group waits 10 to 20 ms for the kernel (a grace period of its RCU), those that follow within some milliseconds do
//     not. While jobs start in quick succession this thread therefore changes to where it is already, again and again: no batch of starts has that wait.

import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CgroupLimit, JobLimits } from "../job/cgroup-limits.ts";
import type { GroupUsage } from "../job/process.ts";
import { type GroupIdentity, groupIdentity, saveIdentity } from "./cgroup-identity.ts";
import { kernelText } from "./proc-table.ts";

export type JobGroups = {
  /** runs `work` with this thread in the job's group, which is made first; without one where it cannot be made (told). leave() must follow before long */
  within<T>(job: string, limits: JobLimits, work: () => T): T;
  /** what `work` has made comes into those of the job's groups that this thread stayed out of (G2): at once, before it is the user's program */
  bringIn(pid: number): void;
  /** this thread is back in its own group, and the last job's limits hold */
  leave(): void;
  pids(job: string): number[];
  /** a process that was made elsewhere comes in */
  adopt(job: string, pid: number): void;
  /** SIGKILL to all that is in it; how many there were */
  kill(job: string): number;
  /** removes the group; null: there was none, or something is in it still */
  close(job: string): GroupUsage | null;
  /** jobs with groups, of earlier starters too */
  jobs(): string[];
  /** no job is left: our directories go */
  dissolve(): void;
  /** limits that cannot be enforced here */
  readonly missing: readonly CgroupLimit[];
};

const CONTROLLERS = ["memory", "cpuset", "cpu", "cpuacct", "pids", "freezer"] as const;
type Controller = (typeof CONTROLLERS)[number];
/** Where a hierarchy is mounted, and which group of it is ours. */
type Hierarchy = { readonly version: 1 | 2; readonly controllers: ReadonlySet<string>; readonly own: string; readonly top: string };

const CPU_PERIOD_US = 100_000;
const KB = 1024;
const KILL_ROUNDS = 50;
/** G4. The kernel forgets the last change after 10 ms at the earliest. */
const REMIND_MS = 6;
/** So long after a job's start the next ones are reckoned with. */
const REMIND_FOR_MS = 150;

/**
 * The groups of a mom's jobs. directory: its mom_priv, which keeps their name. proc: where mounts and cgroup of a process are read (others only for
 * tests). null: none can be made here (no cgroups, or not ours to write).
 */
export function openGroups(directory: string, complain: (text: string) => void, proc = "/proc/self"): JobGroups | null {
  const mounts = read(`${proc}/mounts`);
  const cgroup = read(`${proc}/cgroup`);
  const named = (name: string): Hierarchy[] => hierarchiesOf(mounts, cgroup, name).filter(isUseful);
  const identity = groupIdentity(directory, read("/proc/sys/kernel/random/boot_id").trim(), (name) => named(name).map(({ top }) => top));
  const hierarchies = named(identity.name).filter(makeTop);
  if (hierarchies.length > 0) keepIdentity(directory, identity, hierarchies, complain);
  const tracker =
    hierarchies.find(({ version, top }) => version === 2 && existsSync(`${top}/cgroup.procs`)) ??
    hierarchies.find(({ controllers }) => controllers.has("freezer") || controllers.has("pids")) ??
    hierarchies[0];
  if (tracker === undefined) return null;
  const of = (controller: Controller): Hierarchy | undefined =>
    hierarchies.find(({ version, controllers, top }) => (version === 1 ? controllers.has(controller) : offers(top, controller)));
  return { ...groupsOf(tracker, of, complain), dissolve: () => hierarchies.forEach(({ top }) => void quietly(() => rmdirSync(top))) };
}

/** Without it the next starter does not know what this one's jobs left in their groups. */
function keepIdentity(
  directory: string,
  identity: GroupIdentity,
  hierarchies: readonly Hierarchy[],
  complain: (text: string) => void,
): void {
  try {
    saveIdentity(
      directory,
      identity,
      hierarchies.map(({ top }) => top),
    );
  } catch (error) {
    complain(`the name of the control groups cannot be kept: ${(error as Error).message}`);
  }
}

/** Those named by /proc/PID/mounts, each with the group that /proc/PID/cgroup tells for it. */
export function hierarchiesOf(mounts: string, cgroup: string, name: string): Hierarchy[] {
  const groups = cgroup
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => /^\d+:([^:]*):(.*)$/.exec(line))
    .flatMap((match) => (match === null ? [] : [{ controllers: new Set((match[1] as string).split(",")), path: match[2] as string }]));
  return mounts.split("\n").flatMap((line): Hierarchy[] => {
    const [, mount = "", type = "", options = ""] = line.split(" ");
    if (type !== "cgroup" && type !== "cgroup2") return [];
    const version = type === "cgroup2" ? 2 : 1;
    const words = new Set(options.split(","));
    const group = groups.find(({ controllers }) =>
      version === 2 ? controllers.size === 1 && controllers.has("") : [...controllers].some((each) => each !== "" && words.has(each)),
    );
    if (group === undefined) return [];
    // In a container the group's path may name what is mounted here as the root.
    const inside = join(mount, group.path);
    const own = existsSync(inside) ? inside : mount;
    // A unit's processes in version 2 stay in a leaf of their own (systemd: DelegateSubgroup=daemons), beside which groups with limits may be.
    const parent = version === 2 && own.endsWith("/daemons") ? own.slice(0, -"/daemons".length) : own;
    return [{ version, controllers: version === 1 ? group.controllers : new Set(), own, top: `${parent}/${name}` }];
  });
}

const isUseful = ({ version, controllers }: Hierarchy): boolean => version === 2 || CONTROLLERS.some((each) => controllers.has(each));

function makeTop({ version, controllers, top }: Hierarchy): boolean {
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

const offers = (top: string, controller: Controller): boolean => read(`${top}/cgroup.subtree_control`).split(/\s+/).includes(controller);

function groupsOf(
  tracker: Hierarchy,
  of: (controller: Controller) => Hierarchy | undefined,
  complain: (text: string) => void,
): Omit<JobGroups, "dissolve"> {
  const [memory, cpuset, cpu, cpuacct, pids] = (["memory", "cpuset", "cpu", "cpuacct", "pids"] as const).map(of);
  const limiting: readonly (readonly [CgroupLimit, Hierarchy | undefined])[] = [
    ["memory", memory],
    ["cpuset", cpuset],
    ["cpu", cpu],
    ["pids", pids],
  ];
  const needed = (limits: JobLimits): Set<Hierarchy> => {
    const wanted = [
      tracker,
      tracker.version === 1 ? cpuacct : undefined,
      limits.memory_bytes === null ? undefined : memory,
      limits.cpus === null ? undefined : cpuset,
      limits.ncpus === null ? undefined : cpu,
      limits.pids_max === null ? undefined : pids,
    ];
    return new Set(wanted.filter((each) => each !== undefined));
  };
  const all: readonly Hierarchy[] = [...new Set([tracker, cpuacct, memory, cpuset, cpu, pids].filter((each) => each !== undefined))];
  /** Where jobs of ours have groups; those of an earlier starter are looked for everywhere. */
  const made = new Map<string, Set<Hierarchy>>();
  const groupsOfJob = (job: string): readonly Hierarchy[] => {
    const known = made.get(job);
    return all.filter((each) => (known === undefined ? existsSync(`${each.top}/${job}`) : known.has(each)));
  };
  /** The job in whose groups this thread is now. */
  let inside: {
    readonly job: string;
    readonly limits: JobLimits;
    readonly entered: ReadonlySet<Hierarchy>;
    readonly avoided: readonly Hierarchy[];
  } | null = null;
  const moveOn = (next: ReadonlySet<Hierarchy>): void => {
    if (inside === null) return;
    const { job, limits, entered } = inside;
    inside = null;
    for (const hierarchy of entered) {
      if (!next.has(hierarchy) && !quietly(() => enter(hierarchy, hierarchy.own))) complain(`${job}: its control group cannot be left`);
    }
    limit(limits, job, { memory, cpu, pids });
  };
  let remind_until_ms = 0;
  let reminder: NodeJS.Timeout | null = null;
  /** G4. */
  const remindLater = (): void => {
    if (reminder === null) reminder = setTimeout(remind, REMIND_MS).unref();
  };
  const remind = (): void => {
    reminder = null;
    if (performance.now() > remind_until_ms) return;
    if (inside === null) quietly(() => enter(tracker, tracker.own));
    remindLater();
  };
  const leave = (): void => {
    if (inside === null) return;
    moveOn(new Set());
    remind_until_ms = performance.now() + REMIND_FOR_MS;
    remindLater();
  };
  const members = (job: string): number[] => {
    if (inside?.job === job) leave();
    return pidsIn(`${tracker.top}/${job}`);
  };

  return {
    missing: limiting.flatMap(([limit, hierarchy]) => (hierarchy === undefined ? [limit] : [])),
    within(job, limits, work) {
      const entered = new Set<Hierarchy>();
      const avoided: Hierarchy[] = [];
      const known = made.get(job) ?? new Set();
      made.set(job, known);
      try {
        for (const hierarchy of needed(limits)) {
          const limited = known.has(hierarchy) && (hierarchy === memory || hierarchy === cpu);
          if (limited && hierarchy !== tracker) {
            avoided.push(hierarchy);
            continue;
          }
          if (limited) lift(job, hierarchy);
          if (!known.has(hierarchy)) makeGroup(hierarchy, job, limits);
          known.add(hierarchy);
          enter(hierarchy, `${hierarchy.top}/${job}`);
          entered.add(hierarchy);
        }
      } catch (error) {
        complain(`${job}: its control group cannot be made: ${(error as Error).message}`);
      }
      moveOn(entered);
      inside = { job, limits, entered, avoided };
      return work();
    },
    bringIn(pid) {
      for (const { top } of inside?.avoided ?? []) quietly(() => writeFileSync(`${top}/${inside?.job}/cgroup.procs`, String(pid)));
    },
    leave,
    pids: members,
    adopt(job, pid) {
      for (const { top } of groupsOfJob(job)) quietly(() => writeFileSync(`${top}/${job}/cgroup.procs`, String(pid)));
    },
    kill(job) {
      const found = members(job);
      if (found.length === 0) return 0;
      if (tracker.version === 2 && quietly(() => writeFileSync(`${tracker.top}/${job}/cgroup.kill`, "1"))) return found.length;
      // A fork bomb makes new ones while old ones are killed: frozen it does not.
      const freezer = tracker.controllers.has("freezer") ? `${tracker.top}/${job}/freezer.state` : null;
      if (freezer !== null) quietly(() => writeFileSync(freezer, "FROZEN"));
      for (let round = 0, left = found; left.length > 0 && round < KILL_ROUNDS; round++) {
        for (const pid of left) quietly(() => process.kill(pid, "SIGKILL"));
        if (freezer !== null) break;
        left = members(job).filter((pid) => !left.includes(pid));
      }
      if (freezer !== null) quietly(() => writeFileSync(freezer, "THAWED"));
      return found.length;
    },
    close(job) {
      if (inside?.job === job) leave();
      const groups = groupsOfJob(job);
      if (!groups.includes(tracker)) {
        made.delete(job);
        return null;
      }
      const usage = { cput_s: cputOf(job, tracker, cpuacct), ...memoryOf(job, memory, groups) };
      for (const each of [...groups.filter((group) => group !== tracker), tracker]) {
        if (!quietly(() => rmdirSync(`${each.top}/${job}`))) return null;
        made.get(job)?.delete(each);
      }
      made.delete(job);
      return usage;
    },
    jobs: () => [...new Set(all.flatMap(({ top }) => groupsIn(top)))],
  };
}

function makeGroup({ version, controllers, top }: Hierarchy, job: string, { cpus }: JobLimits): void {
  const group = `${top}/${job}`;
  make(group);
  if (version === 1 && controllers.has("cpuset")) inheritCpuset(group);
  if (cpus !== null && existsSync(`${group}/cpuset.cpus`)) writeFileSync(`${group}/cpuset.cpus`, cpus);
}

/** Of this thread (version 1) or process (version 2). */
function enter({ version }: Hierarchy, group: string): void {
  writeFileSync(`${group}/${version === 1 ? "tasks" : "cgroup.procs"}`, "0");
}

/** Until limit() sets them again. */
function lift(job: string, { version, top }: Hierarchy): void {
  if (version === 1) return;
  quietly(() => writeFileSync(`${top}/${job}/memory.max`, "max"));
  quietly(() => writeFileSync(`${top}/${job}/cpu.max`, `max ${CPU_PERIOD_US}`));
}

type Limiting = { readonly memory: Hierarchy | undefined; readonly cpu: Hierarchy | undefined; readonly pids: Hierarchy | undefined };

/** A limit that the kernel does not take leaves the job without it (G3). */
function limit(limits: JobLimits, job: string, { memory, cpu, pids }: Limiting): void {
  const set = (hierarchy: Hierarchy | undefined, file: string, value: string): void => {
    if (hierarchy !== undefined) quietly(() => writeFileSync(`${hierarchy.top}/${job}/${file}`, value));
  };
  if (limits.memory_bytes !== null) {
    const bytes = String(limits.memory_bytes);
    set(memory, memory?.version === 2 ? "memory.max" : "memory.limit_in_bytes", bytes);
    set(memory, memory?.version === 2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes", memory?.version === 2 ? "0" : bytes);
  }
  if (limits.ncpus !== null) {
    const quota = String(Math.round(limits.ncpus * CPU_PERIOD_US));
    if (cpu?.version === 2) set(cpu, "cpu.max", `${quota} ${CPU_PERIOD_US}`);
    else {
      set(cpu, "cpu.cfs_period_us", String(CPU_PERIOD_US));
      set(cpu, "cpu.cfs_quota_us", quota);
    }
  }
  if (limits.pids_max !== null) set(pids, "pids.max", String(limits.pids_max));
}

function cputOf(job: string, tracker: Hierarchy, cpuacct: Hierarchy | undefined): number | null {
  if (tracker.version === 2) {
    const usec = /^usage_usec (\d+)/m.exec(read(`${tracker.top}/${job}/cpu.stat`))?.[1];
    return usec === undefined ? null : Number(usec) / 1e6;
  }
  const nsec = cpuacct === undefined ? "" : read(`${cpuacct.top}/${job}/cpuacct.usage`).trim();
  return nsec === "" ? null : Number(nsec) / 1e9;
}

/** groups: in which hierarchies the job has one. */
function memoryOf(
  job: string,
  memory: Hierarchy | undefined,
  groups: readonly Hierarchy[],
): { readonly mem_peak_kb: number | null; readonly oom: boolean } {
  if (memory === undefined || !groups.includes(memory)) return { mem_peak_kb: null, oom: false };
  const group = `${memory.top}/${job}`;
  const [peak, events] = memory.version === 2 ? ["memory.peak", "memory.events"] : ["memory.max_usage_in_bytes", "memory.oom_control"];
  const bytes = read(`${group}/${peak}`).trim();
  const kills = Number(/^oom_kill (\d+)/m.exec(read(`${group}/${events}`))?.[1] ?? 0);
  return { mem_peak_kb: bytes === "" ? null : Math.floor(Number(bytes) / KB), oom: kills > 0 };
}

/** A new cpuset of version 1 is empty, and takes no process until it has what its parent has. */
function inheritCpuset(group: string): void {
  for (const file of ["cpuset.mems", "cpuset.cpus"]) {
    if (read(`${group}/${file}`).trim() === "") writeFileSync(`${group}/${file}`, read(join(group, "..", file)));
  }
}

function make(group: string): void {
  mkdirSync(group, { recursive: true, mode: 0o755 });
}

function groupsIn(top: string): string[] {
  try {
    return readdirSync(top, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  } catch {
    return [];
  }
}

const pidsIn = (group: string): number[] =>
  read(`${group}/cgroup.procs`)
    .split("\n")
    .filter((line) => line !== "")
    .map(Number);

function read(path: string): string {
  try {
    return kernelText(path);
  } catch {
    return "";
  }
}

function quietly(work: () => unknown): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}
