// Control groups of jobs, versions 1 and 2. A process that starts in its job's group cannot leave the job, whatever sessions and environments it makes. The
// group is killed as a whole. The kernel counts the cpu time of all processes in it, and enforces limits on it (job/cgroup-limits.ts).
//
// G1. The groups of jobs are in a directory below the mom's own group, which this mom has made (cgroup-identity.ts). No other groups are touched.
// G2. The starter's thread enters a job's group before it makes the top process, so that no process of the job is ever outside of the group. Later it enters
//     the next job's group, or leaves (a change of group costs as much as a small program). The limits of a group are set only after the thread has left it, so
//     that they never apply to the starter. No group is killed or removed while the thread is inside. When a task is started, the job's group already has
//     limits, and a job at its limit could have the starter killed or stopped for lack of memory. So the thread does not enter the groups for memory and cpu,
//     and moves the task into them. Version 2 has a single hierarchy: there these limits are lifted while the thread is inside.
// G3. If the kernel does not offer a controller, its limits are not enforced, and this is reported (missing). No job is refused because of it.
// G4. The first change of group after a pause takes 10 to 20 ms, because the kernel waits (a grace period of its RCU). Changes within the next milliseconds do
//     not wait. So while jobs start in quick succession, this thread again and again changes to the group in which it already is, and no start of a job has
//     that wait.

import { existsSync, rmdirSync, writeFileSync } from "node:fs";
import { messageOf } from "#support/caught.ts";
import type { CgroupLimit, JobLimits } from "../job/cgroup-limits.ts";
import type { GroupUsage } from "../job/process.ts";
import { cputOf, lift, limit, memoryOf } from "./cgroup-files.ts";
import {
  type Controller,
  enter,
  groupsIn,
  type Hierarchy,
  hierarchiesOf,
  isUseful,
  makeGroup,
  makeTop,
  offers,
  pidsIn,
  quietly,
  read,
} from "./cgroup-hierarchy.ts";
import { type GroupIdentity, groupIdentity, saveIdentity } from "./cgroup-identity.ts";

const KILL_ROUNDS = 50;
/** Interval of the repeated changes of group (G4). The kernel forgets a change after 10 ms at the earliest. */
const REMIND_MS = 6;
/** Time after a job's start in which further starts are expected (G4). */
const REMIND_FOR_MS = 150;

/**
 * Opens the groups of a mom's jobs. directory: mom_priv, in which the name of our directory is kept. proc: directory of a process in /proc from which mounts
 * and cgroup are read (another one only in tests). Returns null if no groups can be made here: the kernel has none, or they are not writable.
 */
export function openGroups(directory: string, complain: (text: string) => void, proc = "/proc/self"): JobGroups | null {
  const mounts = read(`${proc}/mounts`);
  const cgroup = read(`${proc}/cgroup`);
  const named = (name: string): Hierarchy[] => hierarchiesOf(mounts, cgroup, name).filter(isUseful);
  const identity = groupIdentity(directory, read("/proc/sys/kernel/random/boot_id").trim(), (name) => named(name).map(({ top }) => top));
  const hierarchies = named(identity.name).filter(makeTop);
  if (hierarchies.length > 0) keepIdentity(directory, identity, hierarchies, complain);
  const roles = rolesOf(hierarchies);
  return roles === null ? null : new JobGroups(roles, hierarchies, complain);
}

/**
 * Keeps the identity of our directories. If that fails, it is reported: the next starter then cannot know which processes the jobs of this starter have left.
 */
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
    complain(`the name of the control groups cannot be kept: ${messageOf(error)}`);
  }
}

/** The hierarchy of each controller; undefined: none has it. tracker: the hierarchy whose groups tell which processes belong to a job. */
type Roles = { readonly tracker: Hierarchy } & { readonly [C in Exclude<Controller, "freezer">]: Hierarchy | undefined };

/** Chooses the hierarchies. Returns null if none of them can track jobs. */
function rolesOf(hierarchies: readonly Hierarchy[]): Roles | null {
  const tracker =
    hierarchies.find(({ version, top }) => version === 2 && existsSync(`${top}/cgroup.procs`)) ??
    hierarchies.find(({ controllers }) => controllers.has("freezer") || controllers.has("pids")) ??
    hierarchies[0];
  if (tracker === undefined) return null;
  const of = (controller: Controller): Hierarchy | undefined =>
    hierarchies.find(({ version, controllers, top }) => (version === 1 ? controllers.has(controller) : offers(top, controller)));
  return { tracker, memory: of("memory"), cpuset: of("cpuset"), cpu: of("cpu"), cpuacct: of("cpuacct"), pids: of("pids") };
}

/**
 * The job in whose groups this thread is. entered: the hierarchies in which the thread has entered the job's group. avoided: those in which it stays out of
 * that group (G2).
 */
type Inside = {
  readonly job: string;
  readonly limits: JobLimits;
  readonly entered: ReadonlySet<Hierarchy>;
  readonly avoided: readonly Hierarchy[];
};

export class JobGroups {
  /** Limits that the kernel cannot enforce here. */
  readonly missing: readonly CgroupLimit[];
  readonly #roles: Roles;
  readonly #tops: readonly string[];
  readonly #complain: (text: string) => void;
  readonly #all: readonly Hierarchy[];
  /** For each job, the hierarchies in which this starter has made a group. Groups of an earlier starter are searched for in every hierarchy. */
  readonly #made = new Map<string, Set<Hierarchy>>();
  readonly #reminder: Reminder;
  #inside: Inside | null = null;

  constructor(roles: Roles, hierarchies: readonly Hierarchy[], complain: (text: string) => void) {
    const { tracker, memory, cpuset, cpu, cpuacct, pids } = roles;
    this.#roles = roles;
    this.#tops = hierarchies.map(({ top }) => top);
    this.#complain = complain;
    this.#all = [...new Set([tracker, cpuacct, memory, cpuset, cpu, pids].filter((each) => each !== undefined))];
    this.#reminder = new Reminder(() => {
      if (this.#inside === null) quietly(() => enter(tracker, tracker.own));
    });
    this.missing = (["memory", "cpuset", "cpu", "pids"] as const).filter((name) => roles[name] === undefined);
  }

  /**
   * Runs `work` with this thread in the job's groups, which are made first. If that fails, the failure is reported and `work` runs outside of the missing
   * groups. leave() must follow soon.
   */
  within<T>(job: string, limits: JobLimits, work: () => T): T {
    const entered = new Set<Hierarchy>();
    const avoided: Hierarchy[] = [];
    const known = this.#made.get(job) ?? new Set();
    this.#made.set(job, known);
    try {
      for (const hierarchy of this.#needed(limits)) {
        if (this.#isAvoided(hierarchy, known)) {
          avoided.push(hierarchy);
          continue;
        }
        if (this.#isLimited(hierarchy, known)) lift(job, hierarchy);
        if (!known.has(hierarchy)) makeGroup(hierarchy, job, limits);
        known.add(hierarchy);
        enter(hierarchy, `${hierarchy.top}/${job}`);
        entered.add(hierarchy);
      }
    } catch (error) {
      this.#complain(`${job}: its control group cannot be made: ${messageOf(error)}`);
    }
    this.#moveOn(entered);
    this.#inside = { job, limits, entered, avoided };
    return work();
  }

  #needed(limits: JobLimits): ReadonlySet<Hierarchy> {
    const { tracker, memory, cpuset, cpu, cpuacct, pids } = this.#roles;
    const wanted = [
      tracker,
      tracker.version === 1 ? cpuacct : undefined,
      limits.memory_bytes === null ? undefined : memory,
      limits.cpus === null ? undefined : cpuset,
      limits.ncpus === null ? undefined : cpu,
      limits.pids_max === null ? undefined : pids,
    ];
    return new Set(wanted.filter((each) => each !== undefined));
  }

  /** Whether the job's group in this hierarchy already limits memory or cpu, which the starter itself would need (G2). */
  #isLimited(hierarchy: Hierarchy, known: ReadonlySet<Hierarchy>): boolean {
    return known.has(hierarchy) && (hierarchy === this.#roles.memory || hierarchy === this.#roles.cpu);
  }

  #isAvoided(hierarchy: Hierarchy, known: ReadonlySet<Hierarchy>): boolean {
    return this.#isLimited(hierarchy, known) && hierarchy !== this.#roles.tracker;
  }

  /**
   * Moves a process that `work` has started into those groups of the job that this thread stayed out of (G2). This must be called at once, before the process
   * executes the user's program.
   */
  bringIn(pid: number): void {
    if (this.#inside === null) return;
    const { job, avoided } = this.#inside;
    for (const { top } of avoided) quietly(() => writeFileSync(`${top}/${job}/cgroup.procs`, String(pid)));
  }

  /** Moves this thread back into its own group, and sets the limits of the last job. */
  leave(): void {
    if (this.#inside === null) return;
    this.#moveOn(new Set());
    this.#reminder.start();
  }

  /** Leaves the groups of the present job, and sets their limits. next: hierarchies in which the thread has entered another group already. */
  #moveOn(next: ReadonlySet<Hierarchy>): void {
    if (this.#inside === null) return;
    const { job, limits, entered } = this.#inside;
    this.#inside = null;
    for (const hierarchy of entered) {
      if (!next.has(hierarchy) && !quietly(() => enter(hierarchy, hierarchy.own)))
        this.#complain(`${job}: its control group cannot be left`);
    }
    limit(limits, job, this.#roles);
  }

  pids(job: string): number[] {
    if (this.#inside?.job === job) this.leave();
    return pidsIn(this.#groupOf(job));
  }

  /** Returns the directory of the job's group in the tracking hierarchy. */
  #groupOf(job: string): string {
    return `${this.#roles.tracker.top}/${job}`;
  }

  /** Moves a process into the job's groups. The process was not started by this starter. */
  adopt(job: string, pid: number): void {
    for (const { top } of this.#groupsOf(job)) quietly(() => writeFileSync(`${top}/${job}/cgroup.procs`, String(pid)));
  }

  #groupsOf(job: string): readonly Hierarchy[] {
    const known = this.#made.get(job);
    return this.#all.filter((each) => (known === undefined ? existsSync(`${each.top}/${job}`) : known.has(each)));
  }

  /** Sends SIGKILL to all processes in the job's group. Returns their number. */
  kill(job: string): number {
    const found = this.pids(job);
    if (found.length === 0) return 0;
    const { tracker } = this.#roles;
    const group = this.#groupOf(job);
    if (tracker.version === 2 && quietly(() => writeFileSync(`${group}/cgroup.kill`, "1"))) return found.length;
    if (tracker.controllers.has("freezer")) killFrozen(found, `${group}/freezer.state`);
    else this.#killInRounds(job, found);
    return found.length;
  }

  #killInRounds(job: string, found: readonly number[]): void {
    for (let round = 0, left = found; left.length > 0 && round < KILL_ROUNDS; round++) {
      for (const pid of left) quietly(() => process.kill(pid, "SIGKILL"));
      const killed = left;
      left = this.pids(job).filter((pid) => !killed.includes(pid));
    }
  }

  /** Removes the job's groups. Returns what they recorded, or null if there were none or processes are still in them. */
  close(job: string): GroupUsage | null {
    if (this.#inside?.job === job) this.leave();
    const { tracker, cpuacct, memory } = this.#roles;
    const groups = this.#groupsOf(job);
    if (!groups.includes(tracker)) {
      this.#made.delete(job);
      return null;
    }
    const usage = { cput_s: cputOf(job, tracker, cpuacct), ...memoryOf(job, memory, groups) };
    for (const each of [...groups.filter((group) => group !== tracker), tracker]) {
      if (!quietly(() => rmdirSync(`${each.top}/${job}`))) return null;
      this.#made.get(job)?.delete(each);
    }
    this.#made.delete(job);
    return usage;
  }

  /** Returns the jobs that have groups, including jobs of earlier starters. */
  jobs(): string[] {
    return [...new Set(this.#all.flatMap(({ top }) => groupsIn(top)))];
  }

  /** Removes our directories if no job has a group in them. */
  dissolve(): void {
    for (const top of this.#tops) quietly(() => rmdirSync(top));
  }
}

/** Kills processes in a group that is frozen meanwhile, so that a fork bomb cannot create new processes. state: the file that freezes the group. */
function killFrozen(pids: readonly number[], state: string): void {
  quietly(() => writeFileSync(state, "FROZEN"));
  for (const pid of pids) quietly(() => process.kill(pid, "SIGKILL"));
  quietly(() => writeFileSync(state, "THAWED"));
}

/** Changes groups again and again for a short time after start() (G4). */
class Reminder {
  readonly #change: () => void;
  #until_ms = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(change: () => void) {
    this.#change = change;
  }

  start(): void {
    this.#until_ms = performance.now() + REMIND_FOR_MS;
    this.#schedule();
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => this.#remind(), REMIND_MS).unref();
  }

  #remind(): void {
    this.#timer = null;
    if (performance.now() > this.#until_ms) return;
    this.#change();
    this.#schedule();
  }
}
