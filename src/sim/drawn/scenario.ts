// Draws the complex of one seed, and what will happen to it. Options are drawn anew for every seed, and many of them are
// off: if everything happened at once, faults would hide one another.

import { parseResourceGroup } from "#model/resource-group.ts";
import { HOOK_EVENTS } from "#model/tables/hook-attributes.ts";
import type { ImportHookRequest, ManagerRequest, Request } from "#protocol/messages.ts";
import type { MomVnode } from "#protocol/mom-link.ts";
import { MODULES_DEFAULT } from "#sched/modules/index.ts";
import { ALWAYS_PRIME } from "#sched/shapes/holidays.ts";
import { UTC } from "#sched/shapes/local-time.ts";
import { POLICY_DEFAULT, type Policy } from "#sched/shapes/policy.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import type { Prng } from "#support/prng.ts";
import { create, set } from "./manager-request.ts";
import { planningPolicy, planningRequests } from "./plan-workload.ts";

/** Options of the command line that reduce the scenario, to examine a failure. */
export type Limits = {
  readonly jobs_max: number;
  /** kinds of faults: true: those that the seed draws; false: none; or only the listed ones */
  readonly faults: boolean | readonly Fault[];
  readonly ops: boolean;
  /** all hosts are across a network that is cut again and again, for long times; jobs run long (--cuts) */
  readonly cuts?: boolean;
  /** two servers, of which one takes over from the other (--pair); the network is cut as with cuts */
  readonly pair?: boolean;
  /** makes the complex larger: the number of jobs and the time are multiplied by this factor, and there are more hosts */
  readonly scale: number;
};

export const FAULTS = [
  "kill-server",
  "kill-server-after-commit",
  "pause-server",
  "kill-sched",
  "pause-sched",
  "kill-mom",
  "kill-mom-in-event",
  "pause-mom",
  "kill-starter",
  "kill-agent",
  "reboot-host",
  "break-link",
  "fail-commit",
  "start-failures",
  "set-clock",
  "stop-sched-fault",
  // only if the moms' hosts are far from the server
  "cut-host",
  "slow-host",
  // only with two servers: cuts off the leading server, or the other one, from the database; from moms and schedulers; from both
  "cut-database",
  "cut-server",
  "cut-server-off",
] as const;
export type Fault = (typeof FAULTS)[number];

export type Host = {
  readonly name: string;
  /** the server is on another host */
  readonly is_far: boolean;
  readonly vnodes: readonly {
    readonly name: string;
    readonly ncpus: number;
    readonly sharing: string;
    readonly partition: string | null;
  }[];
};

export type Scenario = {
  readonly hosts: readonly Host[];
  /** host: the host where the scheduler runs, if it is not the server's; null: the server's host */
  readonly scheds: readonly { readonly name: string; readonly partitions: readonly string[]; readonly host: string | null }[];
  readonly queues: readonly { readonly name: string; readonly partition: string | null; readonly destinations?: readonly string[] }[];
  /** true: the settings make schedulers plan much (plan-workload.ts) */
  readonly plans: boolean;
  /** qmgr requests that set the complex up after the nodes are up */
  readonly setup: readonly Request[];
  readonly policy: Policy;
  /** true: schedulers have `backfill.policy: cons` */
  readonly keeps_plans: boolean;
  readonly jobs: number;
  /** longest run time of a job */
  readonly run_ms_max: number;
  /** time after which clients and faults stop; then the complex must come to rest */
  readonly busy_ms: number;
  /** the network is cut again and again, and jobs run long (--cuts) */
  readonly cuts: boolean;
  /** there are two servers */
  readonly pair: boolean;
  /** longest times in ms for which a host is cut off; one is drawn for each cut */
  readonly cut_ms: readonly number[];
  /** mean time between two requests, and between two faults */
  readonly op_every_ms: number;
  readonly fault_every_ms: number;
  readonly faults: readonly Fault[];
  /** the kinds of requests that occur */
  readonly ops: readonly Op[];
  readonly datagrams: { readonly loss: number; readonly doubled: number; readonly delay_ms_max: number };
  readonly delay_ms_max: number;
  readonly notice_ms_max: number;
  readonly commit_ms_max: number;
  readonly cycle_ms_max: number;
  readonly term_ignored: number;
  readonly start_failures: number;
};

const OPS = [
  "hold",
  "release",
  "delete",
  "force-delete",
  "modify",
  "move",
  "order",
  "rerun",
  "force-rerun",
  "release-nodes",
  "run",
  "run-on",
  "signal",
  "suspend",
  "resume",
  "message",
  "wait",
  "status",
  "explain",
  "batch",
  "select",
  "sched-switch",
  "queue-switch",
  "node-offline",
  "node-rack",
  "node-group",
  "node-partition",
  "queue-partition",
  "sched-partition",
  "server-set",
  "limits",
  "history",
  "node-delete",
  "sched-delete",
  "hook",
  "reserve",
  "resv-change",
  "resv-job",
  "plan",
] as const;
export type Op = (typeof OPS)[number];

const some = <T>(random: Prng, items: readonly T[], chance: number): T[] => items.filter(() => random.chance(chance));

export function drawScenario(random: Prng, limits: Limits): Scenario {
  const partitioned = random.chance(0.8);
  const own_scheds = !partitioned
    ? []
    : random.chance(0.5)
      ? [{ name: "s1", partitions: random.chance(0.3) ? ["p1", "p3"] : ["p1"] }]
      : [
          { name: "s1", partitions: ["p1"] },
          { name: "s2", partitions: ["p2"] },
        ];
  const partitions = [null, ...own_scheds.flatMap((sched) => sched.partitions)];
  const far = random.split("far");
  const pair = limits.pair === true;
  const cuts = limits.cuts === true || pair;
  const some_far = far.chance(0.6) || cuts;
  const hosts = drawHosts(random, partitions, limits.scale).map((host) => ({ ...host, is_far: some_far && (far.chance(0.7) || cuts) }));
  const far_hosts = hosts.flatMap(({ name, is_far }) => (is_far ? [name] : []));
  const away = random.split("far schedulers");
  const scheds = own_scheds.map((sched) => ({ ...sched, host: far_hosts.length > 0 && away.chance(0.5) ? away.pick(far_hosts) : null }));
  const levels = random.split("preemption");
  const preempts = levels.chance(0.4);
  const queues = [...drawQueues(random, partitions), ...(preempts ? [{ name: "express", partition: levels.pick(partitions) }] : [])];
  const jobs = Math.min(limits.jobs_max, random.int(cuts ? 12 : 3, random.chance(0.2) || cuts ? 40 : 15) * limits.scale);
  const busy_ms = random.pick(cuts ? [900_000, 1_800_000, 3_600_000] : [20_000, 120_000, 900_000]) * Math.ceil(limits.scale / 4);
  const policy = drawPolicy(random);
  const planning = random.split("planning");
  const plans = planning.chance(0.7);
  return {
    hosts,
    scheds,
    queues,
    plans,
    setup: [
      ...setupRequests(random, hosts, scheds, queues),
      ...(plans ? planningRequests(planning, { scheds, queues }) : []),
      ...hookRequests(random.split("hooks")),
      ...(some_far ? multicastRequests(random.split("multicast")) : []),
      ...(preempts ? levelRequests(levels, scheds, queues) : []),
      ...(cuts ? cutRequests(random.split("cuts")) : []),
    ],
    ...(plans ? planningPolicy(planning, policy) : { policy, keeps_plans: false }),
    cuts,
    pair,
    cut_ms: cuts ? LONG_CUT_MS : CUT_MS,
    jobs,
    run_ms_max: random.pick(cuts ? [120_000, 600_000, 1_200_000] : [500, 20_000, 120_000]),
    busy_ms,
    op_every_ms: Math.ceil(busy_ms / random.pick(cuts ? [5, 20, 60] : [15, 60, 200])),
    fault_every_ms: Math.ceil(busy_ms / random.pick(cuts ? [10, 20, 40] : [3, 10, 60])),
    faults: cuts ? cutFaults(random, limits.faults, pair) : drawFaults(random, limits.faults, some_far && far.chance(0.5)),
    ops: limits.ops ? some(random, OPS, random.pick(cuts ? [0.1, 0.2] : [0.1, 0.3, 0.7])) : [],
    datagrams: { loss: far.pick([0, 0.1, 0.5, 1]), doubled: far.pick([0, 0.1, 0.5]), delay_ms_max: far.pick([2, 800, 60_000]) },
    delay_ms_max: random.pick([2, 30, 800]),
    notice_ms_max: random.pick([0, 50, 1500]),
    commit_ms_max: random.pick([1, 10, 100]),
    cycle_ms_max: random.pick([1, 50, 1000]),
    term_ignored: random.pick([0, 0.3]),
    start_failures: random.pick([0, 0, 0.15]),
  };
}

const FAR_FAULTS = ["cut-host", "slow-host"] as const satisfies readonly Fault[];
const PAIR_FAULTS = ["cut-database", "cut-server", "cut-server-off"] as const satisfies readonly Fault[];
const isFarFault = (fault: Fault): boolean => [...FAR_FAULTS, ...PAIR_FAULTS].some((far) => far === fault);

function drawFaults(random: Prng, faults: Limits["faults"], cuts: boolean): readonly Fault[] {
  const anywhere = FAULTS.filter((fault) => !isFarFault(fault));
  const drawn: Fault[] = some(random, anywhere, random.pick([0, 0.2, 0.5]));
  if (cuts) drawn.push(...FAR_FAULTS);
  return typeof faults === "boolean" ? (faults ? drawn : []) : faults;
}

/**
 * Returns the faults of a complex whose network is cut again and again. Cuts and, with two servers, the faults of such servers (PAIR_FAULTS) are in the list
 * several times, so that they are drawn more often than the others.
 */
function cutFaults(random: Prng, faults: Limits["faults"], pair: boolean): readonly Fault[] {
  if (typeof faults !== "boolean") return faults;
  const others = FAULTS.filter((fault) => !isFarFault(fault) && fault !== "start-failures");
  if (!faults) return [];
  const servers: readonly Fault[] = pair ? [...PAIR_FAULTS, ...PAIR_FAULTS, "kill-server", "pause-server", "pause-server"] : [];
  return ["cut-host", "cut-host", "cut-host", "slow-host", ...servers, ...some(random, others, random.pick([0, 0.2, 0.4]))];
}

const CUT_MS = [500, 5000, 20_000, 60_000, 400_000, 1_200_000] as const;
const LONG_CUT_MS = [20_000, 400_000, 800_000, 1_200_000] as const;

/** Draws requests that set after how many seconds the server gives up a host that is cut off: from less than node_requeue_min, over the default, to never. */
function cutRequests(random: Prng): ManagerRequest[] {
  const requests = [set("server", "", ["node_fail_requeue", String(random.pick([-1, 5, 20, 60, 60, 310, 0]))])];
  if (random.chance(0.3)) requests.push(set("server", "", ["node_requeue_min", String(random.pick([2, 5, 60]))]));
  return requests;
}

function drawHosts(random: Prng, partitions: readonly (string | null)[], scale: number): Omit<Host, "is_far">[] {
  const sharing = ["default_shared", "default_shared", "default_shared", "default_excl", "ignore_excl", "force_excl", "default_exclhost"];
  return Array.from({ length: random.int(1, 3) * Math.ceil(scale / 10) }, (_, at) => {
    const name = `n${at + 1}`;
    const several = random.chance(0.4) ? random.int(1, 2) : 0;
    const one = (vnode: string) => ({
      name: vnode,
      ncpus: random.int(1, 4),
      sharing: random.chance(0.7) ? "default_shared" : random.pick(sharing),
      partition: random.pick(partitions),
    });
    return { name, vnodes: [one(name), ...Array.from({ length: several }, (_none, index) => one(`${name}[${index}]`))] };
  });
}

function drawQueues(random: Prng, partitions: readonly (string | null)[]): Scenario["queues"] {
  const execution = [
    { name: "workq", partition: null as string | null },
    ...partitions.flatMap((partition) => (partition === null ? [] : [{ name: `q_${partition}`, partition }])),
  ];
  if (random.chance(0.3)) execution.push({ name: "second", partition: random.pick(partitions) });
  if (!random.chance(0.4)) return execution;
  return [...execution, { name: "route", partition: null, destinations: random.shuffle(execution.map((queue) => queue.name)).slice(0, 2) }];
}

function setupRequests(random: Prng, hosts: Scenario["hosts"], scheds: Scenario["scheds"], queues: Scenario["queues"]): ManagerRequest[] {
  const requests: ManagerRequest[] = [];
  for (const { name, partitions, host } of scheds) {
    requests.push(
      create("sched", name, ...(host === null ? [] : [["sched_host", host] as const])),
      set("sched", name, ["partition", partitions.join(",")]),
      set("sched", name, ["scheduling", "True"]),
    );
  }
  for (const host of hosts) {
    for (const vnode of host.vnodes) if (vnode.partition !== null) requests.push(set("node", vnode.name, ["partition", vnode.partition]));
  }
  for (const { name, partition, destinations } of queues) {
    if (name !== "workq") requests.push(create("queue", name, ["queue_type", destinations === undefined ? "Execution" : "Route"]));
    if (partition !== null) requests.push(set("queue", name, ["partition", partition]));
    if (destinations !== undefined)
      requests.push(set("queue", name, ["route_destinations", destinations.join(",")], ["route_retry_time", "5"]));
    requests.push(set("queue", name, ["enabled", "True"], ["started", "True"], ["Priority", String(random.int(0, 5))]));
  }
  requests.push(set("server", "", ["default_queue", "workq"], ["job_history_enable", random.chance(0.7) ? "True" : "False"]));
  if (random.chance(0.3)) requests.push(set("server", "", ["job_accumulation_time", String(random.int(1, 5))]));
  if (random.chance(0.3)) requests.push(set("server", "", ["node_silence_timeout", String(random.pick([0, 10, 20]))]));
  if (random.chance(0.3)) requests.push(set("server", "", ["sched_silence_timeout", String(random.pick([0, 5, 20]))]));
  if (random.chance(0.3)) requests.push(set("server", "", ["node_fail_requeue", String(random.pick([0, 5, 60]))]));
  // Allows root to make maintenance reservations, and sets a retry time that is over before the simulation ends.
  if (random.chance(0.5)) requests.push(set("server", "", ["acl_roots", "root@*"], ["reserve_retry_time", String(random.pick([5, 30]))]));
  if (random.chance(0.3)) requests.push(set("server", "", ["max_run", `[u:PBS_GENERIC=${random.int(1, 4)}]`]));
  if (random.chance(0.3)) requests.push(...groupRequests(random, hosts, scheds));
  for (const { name, destinations } of queues) {
    if (destinations === undefined && random.chance(0.2)) requests.push(set("queue", name, ["max_run", `[o:PBS_ALL=${random.int(1, 4)}]`]));
  }
  return requests;
}

/** Draws settings for commands by multicast: as many commands as possible go that way. */
function multicastRequests(random: Prng): ManagerRequest[] {
  if (random.chance(0.4)) return [];
  const numbers = { multicast_moms_min: 1, multicast_repeats: random.int(0, 3), multicast_interval: random.pick([10, 200, 5000]) };
  return [set("server", "", ["multicast", "True"], ...Object.entries(numbers).map(([name, value]) => [name, String(value)] as const))];
}

/**
 * Draws settings for preemption: express queues, soft limits, levels and methods of all kinds. Also draws how long schedulers
 * wait for jobs that they start.
 */
function levelRequests(random: Prng, scheds: Scenario["scheds"], queues: Scenario["queues"]): ManagerRequest[] {
  const requests = [set("queue", "express", ["Priority", String(random.int(150, 200))])];
  const softly = (name: string): readonly [string, string] => [name, `[u:PBS_GENERIC=${random.int(0, 2)}]`];
  if (random.chance(0.4)) requests.push(set("server", "", softly("max_run_soft")));
  for (const { name, destinations } of queues)
    if (destinations === undefined && random.chance(0.2)) requests.push(set("queue", name, softly("max_run_soft")));
  if (random.chance(0.3)) requests.push(set("server", "", ["restrict_res_to_release_on_suspend", "ncpus"]));
  for (const { name } of [{ name: "default" }, ...scheds]) {
    requests.push(
      set(
        "sched",
        name,
        ["preempt_prio", random.pick(PREEMPT_PRIOS)],
        ["preempt_order", random.pick(PREEMPT_ORDERS)],
        ["sched_preempt_enforce_resumption", random.chance(0.3) ? "True" : "False"],
        ["job_run_wait", random.pick(["none", "runjob_hook", "execjob_hook"])],
      ),
    );
  }
  return requests;
}
const PREEMPT_ORDERS = ["SCR", "S", "R", "CR", "SD", "D", "RS 50 S"];
const PREEMPT_PRIOS = [
  "express_queue, normal_jobs",
  "express_queue, normal_jobs, server_softlimits, queue_softlimits",
  "express_queue, queue_softlimits, normal_jobs, server_softlimits+queue_softlimits",
];

/** Draws placement sets: vnodes in racks, for all jobs or for jobs that ask for them. */
function groupRequests(random: Prng, hosts: Scenario["hosts"], scheds: Scenario["scheds"]): ManagerRequest[] {
  const requests = [create("resource", "rack", ["type", "string_array"], ["flag", "h"])];
  for (const { name } of hosts.flatMap((host) => host.vnodes)) {
    const rack = random.pick(["", "A", "B", "A,B"]);
    if (rack !== "") requests.push(set("node", name, ["resources_available", rack, "=", "rack"]));
  }
  if (random.chance(0.7)) requests.push(set("server", "", ["node_group_key", "rack"], ["node_group_enable", "True"]));
  for (const { name } of [{ name: "default" }, ...scheds]) {
    if (random.chance(0.3)) requests.push(set("sched", name, ["do_not_span_psets", "True"]));
    if (random.chance(0.3)) requests.push(set("sched", name, ["only_explicit_psets", "True"]));
  }
  return requests;
}

/** Draws some of the hook events, occasionally all. */
export function drawEvents(random: Prng): string {
  const events = HOOK_EVENTS.filter((event) => event !== "provision");
  return (random.chance(0.1) ? events : some(random, events, 0.2)).join(",");
}

export const importHook = (hook: string): ImportHookRequest => ({
  kind: "import-hook",
  object: "hook",
  hook,
  content_type: "application/x-python",
  encoding: "default",
  content: "cGFzcw==",
  suffix: "",
});

/** Draws requests that create hooks. Their contents do not matter, because hook-play.ts answers for them. */
function hookRequests(random: Prng): Request[] {
  if (!random.chance(0.3)) return [];
  const freq = ["freq", String(random.int(1, 60))] as const;
  return [create("hook", "h1", ["event", drawEvents(random)], freq), importHook("h1")];
}

function drawPolicy(random: Prng): Policy {
  return {
    ...POLICY_DEFAULT,
    by_queue: random.chance(0.7),
    round_robin: random.chance(0.2),
    strict_ordering: random.chance(0.2),
    smp_cluster_dist: random.chance(0.2) ? "round_robin" : "pack",
    job_sort_key: random.chance(0.2) ? [{ key: "ncpus", high: random.chance(0.5) }] : [],
    node_sort_key: random.chance(0.3)
      ? [{ key: "ncpus", high: random.chance(0.5), amount: random.pick(["total", "assigned", "unused"]) }]
      : POLICY_DEFAULT.node_sort_key,
  };
}

/** Returns a policy book without prime time, dedicated time and fairshare. */
export function policyBook(policy: Policy, keeps_plans = false): PolicyBook {
  return {
    prime: policy,
    non_prime: policy,
    holidays: ALWAYS_PRIME,
    dedicated: [],
    fairshare: parseResourceGroup("", 0).tree,
    modules: MODULES_DEFAULT,
    module_options: new Map(keeps_plans ? [["backfill", new Map([["policy", "cons"]])]] : []),
    local: UTC,
  };
}

export function momVnodes(host: Host): MomVnode[] {
  return host.vnodes.map(({ name, ncpus, sharing }) => ({
    name,
    attrs: { resources_available: { ncpus, mem: "8gb", arch: "linux" }, pcpus: ncpus, sharing },
  }));
}
