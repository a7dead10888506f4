// One simulated complex: a server, its schedulers and its moms, connected by the network and observed by the checks.

import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import type { Prng } from "#support/prng.ts";
import { attrsOfRun, type Checks } from "./checks/checks.ts";
import { momVnodes, policyBook, type Scenario } from "./drawn/scenario.ts";
import { createDatagrams, type Datagrams } from "./far/datagrams.ts";
import { MomProcess } from "./mom-process.ts";
import { createNetwork, isCutOff, type Network, wayTo } from "./network.ts";
import { PairedServers } from "./paired-servers.ts";
import { type SchedOptions, SchedProcess } from "./sched-process.ts";
import { SchedProcesses } from "./sched-processes.ts";
import type { Servers } from "./server-ports.ts";
import { type ServerOptions, ServerProcess } from "./server-process.ts";
import { type Behaviour, StarterProcess } from "./starter-process.ts";
import { type Disk, emptyDisk } from "./store/disk.ts";
import type { World } from "./world.ts";

export type Complex = {
  readonly world: World;
  readonly scenario: Scenario;
  readonly network: Network;
  readonly datagrams: Datagrams;
  readonly disk: Disk;
  readonly server: Servers;
  /** the two servers; null: the complex has one */
  readonly pair: PairedServers | null;
  /** the schedulers of the server that leads, by name. A scheduler on the server's host is added when the server starts it for the first time */
  readonly scheds: ReadonlyMap<string, SchedProcess>;
  readonly moms: readonly MomProcess[];
  readonly starters: readonly StarterProcess[];
  readonly book: PolicyBook;
  /** true: some programs and files fail */
  failures: boolean;
};

/** Number of process ids for each scheduler, which is started at most that often in one simulation. */
const PIDS_PER_SCHED = 1000;
/** The number of the parent (SchedProcess.parent) of a scheduler that no server has started. */
const NO_PARENT = -1;

export function createComplex(world: World, scenario: Scenario, checks: Checks): Complex {
  const network = createNetwork(world, scenario);
  const isFar = new Set(scenario.hosts.filter(({ is_far }) => is_far).map(({ name }) => name));
  const datagrams = createDatagrams(world, network.cuts, scenario.datagrams);
  const disk = emptyDisk();
  const book = policyBook(scenario.policy, scenario.keeps_plans);
  const complex = { failures: false };
  let scheds_made = 0;
  const schedOptions = () => ({ book, cycle_ms_max: scenario.cycle_ms_max, first_pid: PIDS_PER_SCHED * (1 + scheds_made++) });
  /** for each scheduler on another host: the latest term of a leader that it has heard of */
  const terms = new Map<string, number>();
  /** Returns the schedulers on the host of the server at a seat. */
  const processesAt = (seat: number): SchedProcesses => {
    const makeSched = (name: string): SchedProcess =>
      new SchedProcess(world, name, {
        ...schedOptions(),
        dial: (who, pid, parent) => server.dialSched(who, pid, parent, seat),
        ended: (who, parent, how) => server.schedExited(who, parent, how),
      });
    return new SchedProcesses(world, makeSched, (act) => server.awake(seat, act));
  };
  const isWanted = (name: string, parent: number): boolean =>
    server.life === parent && server.core?.state.scheds.get(name)?.attrs["state"] === "down";
  const optionsAt = (processes: SchedProcesses): ServerOptions => ({
    isFar: (host) => isFar.has(host),
    commit_ms_max: scenario.commit_ms_max,
    startSched: (name, parent) => processes.start(name, parent, () => isWanted(name, parent)),
    isAlive: (pid) => processes.isAlive(pid),
    lookAtSched: (name, pid) => processes.look(name, pid),
    killSched: (name, pid, parent) => processes.kill(name, pid, parent),
    stopSched: (name, parent, pid) => processes.stop(name, parent, pid),
    linkToSched(name, term, end) {
      const sched = processes.byName.get(name);
      if (sched?.alive !== true || term < (terms.get(name) ?? 0)) return false;
      terms.set(name, term);
      sched.accept(end());
      return true;
    },
  });
  const seats = [processesAt(0), processesAt(1)] as const;
  const common = { world, network, datagrams, disk, observer: checks };
  const pair = scenario.pair ? new PairedServers({ common, options: [optionsAt(seats[0]), optionsAt(seats[1])], hosts: [...isFar] }) : null;
  const server: Servers = pair ?? new ServerProcess({ ...common, options: optionsAt(seats[0]) });
  const present = (): SchedProcesses => seats[pair?.leader === 1 ? 1 : 0];
  for (const { name, host } of scenario.scheds) {
    if (host === null) continue;
    const sched = serviced(world, name, schedOptions());
    for (const processes of seats) processes.byName.set(name, sched);
  }
  const behaviour = behaviours(world, scenario, () => complex.failures);
  const attrsOnMom = (host: string, job: string) => moms.find((mom) => mom.host === host)?.attrsOf(job);
  const starterOn = (host: string, called: Set<string>): StarterProcess =>
    new StarterProcess(world, {
      host,
      behaviour,
      called,
      born: (process) => {
        const first = attrsOfRun(attrsOnMom(process.host, process.job));
        checks.born(process, () => attrsOfRun(attrsOnMom(process.host, process.job) ?? first));
      },
      died: (process) => checks.died(process),
    });
  const called = new Set<string>();
  const hosts = scenario.hosts.map((host) => ({ host, starter: starterOn(host.name, called) }));
  const moms = hosts.map(
    ({ host, starter }) =>
      new MomProcess(world, {
        host: host.name,
        vnodes: momVnodes(host),
        starter,
        prepareFailure: (job, run_count) => prepareFailure(world, scenario, complex.failures, job, run_count),
        dial: (name, seat) => {
          const ways = pair === null ? [name] : [name, wayTo(name, seat)];
          return isCutOff(network, ways) ? "unreached" : (server.dialMom(name, seat) ?? "absent");
        },
        leaderAt: pair === null ? null : (name, seat) => (isCutOff(network, [name, wayTo(name, seat)]) ? undefined : pair.leaderAt(seat)),
        datagrams: host.is_far ? datagrams : null,
      }),
  );
  const starters = hosts.map(({ starter }) => starter);
  const made = Object.assign(complex, {
    world,
    scenario,
    network,
    datagrams,
    disk,
    server,
    pair,
    scheds: present().byName,
    moms,
    starters,
    book,
  });
  // After a take-over the schedulers are those of the other server.
  return Object.defineProperty(made, "scheds", { get: () => present().byName });
}

/** Makes a scheduler on another host than the server. A service of that host starts the scheduler, and starts it again whenever it has ended. */
function serviced(world: World, name: string, options: Omit<SchedOptions, "dial" | "ended">): SchedProcess {
  const random = world.random.split(`service/${name}`);
  const begin = (): void => sched.start(NO_PARENT);
  const sched = new SchedProcess(world, name, {
    ...options,
    dial: null,
    ended: () => world.after(random.int(0, random.pick([100, 5000, 60_000])), begin),
  });
  world.after(random.int(0, 2000), begin);
  return sched;
}

/** Returns how the program of a job behaves in each of its starts. It depends only on the seed. */
function behaviours(world: World, scenario: Scenario, failing: () => boolean): (job: string, run_count: number) => Behaviour {
  const known = new Map<string, Behaviour>();
  return (job, run_count) => {
    const key = `${job}/${run_count}`;
    let found = known.get(key);
    if (found === undefined) {
      const random = world.random.split(`program ${key}`);
      found = {
        run_ms: random.chance(0.3) ? random.int(0, 50) : random.int(0, scenario.run_ms_max),
        exit_code: random.chance(0.8) ? 0 : random.pick([1, 3, 255]),
        term_ms: random.chance(scenario.term_ignored) ? null : random.int(0, 500),
        load: random.pick([0, 0.5, 1]),
        terminal: terminalOf(random.split("terminal"), scenario),
        start_failure: failing() && random.chance(scenario.start_failures) ? random.pick([254, -1, -2, -3]) : null,
      };
      known.set(key, found);
    }
    return found;
  };
}

/** Draws how the terminal of an interactive job behaves: whether qsub refuses the job's relay, and when the terminal is lost. Mostly neither happens. */
function terminalOf(random: Prng, { run_ms_max }: Scenario): Behaviour["terminal"] {
  return { refused: random.chance(0.1), goes_ms: random.chance(0.3) ? random.int(0, run_ms_max) : null };
}

function prepareFailure(world: World, scenario: Scenario, failing: boolean, job: string, run_count: number): number | null {
  const random = world.random.split(`files ${job}/${run_count}`);
  return failing && random.chance(scenario.start_failures) ? random.pick([-1, -3, -21]) : null;
}
