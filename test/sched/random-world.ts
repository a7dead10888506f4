// Random universes from a seed, small enough that jobs conflict.

import { sizeKb } from "#model/values/size.ts";
import type { SchedJob, SchedNode, SchedQueue, Snapshot } from "#protocol/sched-link.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import type { Prng } from "#support/prng.ts";
import { queue } from "./world.ts";

export const FAST = { name: "fast", type: "boolean", flags: "h" };

/**
 * A universe in which `running` jobs hold the resources of their exec_vnode. Running jobs were placed by the simplest rule:
 * where there is room.
 */
export function randomSnapshot(random: Prng): Snapshot {
  const queues = randomQueues(random);
  const nodes = randomNodes(random, queues);
  const jobs: SchedJob[] = [];
  const count = random.int(1, 24);
  for (let at = 0; at < count; at++) {
    const job = randomJob(random, at + 1, queues);
    const { schedselect, place, resources } = jobs.length > 0 && random.chance(0.5) ? random.pick(jobs) : job;
    jobs.push({ ...job, schedselect, place, resources });
  }
  const snapshot: Snapshot = {
    revision: 1,
    server: { name: "svr", attrs: randomLimits(random, 8), assigned: {} },
    sched: { name: "default", attrs: { log_events: 767 } },
    resources: [FAST],
    queues,
    nodes,
    jobs,
    resvs: [],
  };
  return withRunning(random, snapshot);
}

export function randomPolicy(random: Prng): Partial<Policy> {
  const sort = random.pick(["none", "ncpus HIGH", "ncpus LOW", "job_priority HIGH"]);
  const amount = random.pick(["total", "unused", "assigned"] as const);
  return {
    by_queue: random.chance(0.5),
    resources: new Set(["ncpus", "mem", "arch", "host", "vnode"]),
    job_sort_key: sort === "none" ? [] : [{ key: sort.split(" ")[0] ?? "", high: sort.endsWith("HIGH") }],
    node_sort_key: random.chance(0.5)
      ? [{ key: "sort_priority", high: true, amount: "total" }]
      : [{ key: "ncpus", high: random.chance(0.5), amount }],
  };
}

function randomQueues(random: Prng): SchedQueue[] {
  const own = random.chance(0.5) ? [queue("own", { Priority: random.int(0, 2), ...randomLimits(random, 5) })] : [];
  return [queue("workq", randomLimits(random, 8)), queue("high", { Priority: 2 }), ...own];
}

function randomLimits(random: Prng, most: number): Record<string, unknown> {
  const limits: Record<string, unknown> = {};
  const run: Record<string, number> = {};
  for (const key of ["u:PBS_GENERIC", "u:alice", "g:PBS_GENERIC", "o:PBS_ALL"]) if (random.int(0, 9) === 0) run[key] = random.int(0, most);
  if (Object.keys(run).length > 0) limits["max_run"] = run;
  if (random.int(0, 5) === 0) limits["max_run_res"] = { ncpus: { "u:PBS_GENERIC": random.int(0, 8) } };
  return limits;
}

function randomNodes(random: Prng, queues: readonly SchedQueue[]): SchedNode[] {
  const nodes: SchedNode[] = [];
  const hosts = random.int(1, 5);
  for (let host = 0; host < hosts; host++) {
    const vnodes = random.pick([1, 1, 2, 3]);
    for (let at = 0; at < vnodes; at++)
      nodes.push(randomNode(random, { host: `h${host}`, name: `h${host}v${at}`, order: nodes.length + 1 }, queues));
  }
  // Vnodes of different hosts are not defined host by host.
  return random.shuffle(nodes).map((node, at) => ({ ...node, order: at + 1 }));
}

function randomNode(
  random: Prng,
  { host, name, order }: { host: string; name: string; order: number },
  queues: readonly SchedQueue[],
): SchedNode {
  const available = {
    arch: "linux",
    host,
    vnode: name,
    ncpus: random.int(0, 4),
    mem: `${random.int(0, 4)}gb`,
    ...(random.chance(0.5) ? { fast: random.chance(0.5) } : {}),
  };
  const own = queues.some(({ name: queueName }) => queueName === "own") && random.int(0, 4) === 0;
  return {
    name,
    order,
    attrs: {
      resources_available: available,
      state: random.int(0, 9) === 0 ? ["offline"] : [],
      sharing: random.pick(["default_shared", "default_shared", "default_shared", "ignore_excl"]),
      Priority: random.int(0, 2),
      ...(own ? { queue: "own" } : {}),
    },
    assigned: {},
    jobs: [],
  };
}

export function randomJob(random: Prng, rank: number, queues: readonly SchedQueue[]): SchedJob {
  const chunks = Array.from({ length: random.pick([1, 1, 1, 2, 3]) }, () => {
    const mem = random.chance(0.5) ? `:mem=${random.int(0, 2)}gb` : "";
    const fast = random.int(0, 5) === 0 ? `:fast=${random.chance(0.5) ? "True" : "False"}` : "";
    return `${random.pick([1, 1, 2])}:ncpus=${random.int(0, 3)}${mem}${fast}`;
  });
  const sharing = random.pick(["", "", "", ":excl", ":exclhost", ":shared"]);
  const schedselect = chunks.join("+");
  return {
    id: `${rank}.svr`,
    state: "Q",
    substate: 10,
    queue: random.pick(queues).name,
    rank,
    user: random.pick(["alice", "bob"]),
    group: random.pick(["users", "staff"]),
    project: "_pbs_project_default",
    name: "j",
    priority: random.int(-1, 1),
    schedselect,
    place: `${random.pick(["free", "free", "pack", "scatter", "vscatter"])}${sharing}`,
    resources: { ncpus: total(schedselect, "ncpus") },
    ctime_s: 0,
    qtime_s: 0,
    run_count: 0,
    rerunable: true,
  };
}

function total(select: string, name: string): number {
  let sum = 0;
  for (const chunk of select.split("+")) {
    const parts = chunk.split(":");
    for (const part of parts.slice(1)) if (part.startsWith(`${name}=`)) sum += Number(parts[0]) * Number(part.slice(name.length + 1));
  }
  return sum;
}

/** Some jobs already run, shared, on one vnode each. */
function withRunning(random: Prng, snapshot: Snapshot): Snapshot {
  let { nodes, jobs } = snapshot;
  for (const node of snapshot.nodes) {
    const available = node.attrs["resources_available"] as { ncpus: number };
    if (random.chance(0.5) || available.ncpus === 0) continue;
    const ncpus = random.int(1, available.ncpus);
    const id = `${1000 + node.order}.svr`;
    const running: SchedJob = {
      ...randomJob(random, 1000 + node.order, snapshot.queues),
      id,
      state: "R",
      schedselect: `1:ncpus=${ncpus}`,
      place: "free",
      resources: { ncpus },
      exec_vnode: `(${node.name}:ncpus=${ncpus})`,
    };
    jobs = [...jobs, running];
    nodes = nodes.map((other) => (other.name === node.name ? taking(other, running, false) : other));
  }
  return { ...snapshot, nodes, jobs };
}

/** A vnode with one more job on it, as the server would report it. */
export function taking(node: SchedNode, job: SchedJob, exclusive: boolean): SchedNode {
  const assigned: Record<string, number> = { ...node.assigned };
  const available = node.attrs["resources_available"] as { ncpus: number };
  for (const piece of (job.exec_vnode ?? "").replaceAll(/[()]/g, "").split("+")) {
    const [name, ...parts] = piece.split(":");
    if (name !== node.name) continue;
    for (const part of parts) {
      const [resource = "", value = ""] = part.split("=");
      assigned[resource] = (assigned[resource] ?? 0) + (value.endsWith("b") ? sizeKb(value) : Number(value));
    }
  }
  const states = new Set(node.attrs["state"] as string[]);
  if (available.ncpus > 0 && (assigned["ncpus"] ?? 0) >= available.ncpus) states.add("job-busy");
  if (exclusive) states.add("job-exclusive");
  return { ...node, assigned, attrs: { ...node.attrs, state: [...states] }, jobs: [...node.jobs, job.id] };
}
