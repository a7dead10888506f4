// The simplest possible scheduler, for comparison: no buckets, no classes, no increments. It tries every job on every vnode in
// order. It supports ncpus, mem, the boolean fast, arrangement, exclusive use, vnode states, queues' vnodes and limits on
// numbers of jobs, but no reasons.

import { sizeKb } from "#model/values/size.ts";
import type { SchedJob, Snapshot } from "#protocol/sched-link.ts";
import type { Policy } from "#sched/shapes/policy.ts";

type Node = {
  name: string;
  host: string;
  set: string;
  order: number;
  priority: number;
  avail: Amounts;
  used: Amounts;
  fast: boolean;
  free: boolean;
  inUse: boolean;
  /** vnodes of its host in other sets were in use before the cycle */
  crowded: boolean;
  sharing: string;
};
type Amounts = { ncpus: number; mem: number };
type Chunk = { amounts: Amounts; text: string[]; fast: boolean | undefined };

export type Started = { readonly job: string; readonly exec_vnode: string };

/** once: a request that could not be placed is not tried again in the cycle. This can matter, because first fit is not monotone. */
export function naiveCycle(snapshot: Snapshot, policy: Policy, once: boolean): Started[] {
  const failed = new Set<string>();
  const nodes = snapshot.nodes.map((node): Node => {
    const available = node.attrs["resources_available"] as Record<string, unknown>;
    return {
      name: node.name,
      host: String(available["host"]),
      set: String(node.attrs["queue"] ?? ""),
      order: node.order,
      priority: Number(node.attrs["Priority"] ?? 0),
      avail: { ncpus: Number(available["ncpus"] ?? 0), mem: sizeKb(String(available["mem"] ?? "0kb")) },
      used: { ncpus: node.assigned["ncpus"] ?? 0, mem: node.assigned["mem"] ?? 0 },
      fast: available["fast"] === true,
      free: (node.attrs["state"] as string[]).length === 0,
      inUse: node.jobs.length > 0,
      crowded: false,
      sharing: String(node.attrs["sharing"]),
    };
  });
  for (const node of nodes)
    node.crowded = nodes.some(
      ({ host, set, inUse, sharing }) => host === node.host && set !== node.set && inUse && sharing !== "ignore_excl",
    );
  const running = snapshot.jobs.filter((job) => job.state === "R");
  const queues = [...snapshot.queues].sort((a, b) => Number(b.attrs["Priority"] ?? 0) - Number(a.attrs["Priority"] ?? 0));
  const started: Started[] = [];
  for (const queue of policy.by_queue ? queues.map((one) => [one.name]) : [queues.map((one) => one.name)]) {
    const jobs = snapshot.jobs.filter((job) => job.state === "Q" && queue.includes(job.queue)).sort((a, b) => compareJobs(policy, a, b));
    for (const job of jobs) {
      if (isLimited(snapshot, running, job)) continue;
      const own = nodes.filter((node) => node.set === job.queue);
      const request = `${job.schedselect} ${job.place} ${own.length > 0 ? job.queue : ""}`;
      if (once && failed.has(request)) continue;
      const where = place(policy, own.length > 0 ? own : nodes.filter((node) => node.set === ""), job);
      if (where === null) {
        failed.add(request);
        continue;
      }
      running.push(job);
      started.push({ job: job.id, exec_vnode: where });
    }
  }
  return started;
}

function compareJobs(policy: Policy, a: SchedJob, b: SchedJob): number {
  for (const { key, high } of policy.job_sort_key) {
    const value = (job: SchedJob): number => (key === "job_priority" ? job.priority : Number(job.resources[key] ?? 0));
    if (value(a) !== value(b)) return (value(a) - value(b)) * (high ? -1 : 1);
  }
  return a.rank - b.rank;
}

function isLimited(snapshot: Snapshot, running: readonly SchedJob[], job: SchedJob): boolean {
  const scopes = [{ attrs: snapshot.server.attrs, jobs: running }];
  const queue = snapshot.queues.find((one) => one.name === job.queue);
  if (queue !== undefined) scopes.push({ attrs: queue.attrs, jobs: running.filter((other) => other.queue === job.queue) });
  return scopes.some(({ attrs, jobs }) => {
    const limits = (attrs["max_run"] ?? {}) as Record<string, number>;
    const users = jobs.filter((other) => other.user === job.user).length;
    const groups = jobs.filter((other) => other.group === job.group).length;
    const over = (limit: number | undefined, count: number): boolean => limit !== undefined && count + 1 > limit;
    if (over(limits["o:PBS_ALL"], jobs.length)) return true;
    if (over(limits[`u:${job.user}`] ?? limits["u:PBS_GENERIC"], users)) return true;
    if (over(limits[`g:${job.group}`] ?? limits["g:PBS_GENERIC"], groups)) return true;
    const cpus = ((attrs["max_run_res"] ?? {}) as Record<string, Record<string, number>>)["ncpus"] ?? {};
    const used = jobs.filter((other) => other.user === job.user).reduce((sum, other) => sum + Number(other.resources["ncpus"] ?? 0), 0);
    const asked = Number(job.resources["ncpus"] ?? 0);
    return asked > 0 && over(cpus[`u:${job.user}`] ?? cpus["u:PBS_GENERIC"], used + asked - 1);
  });
}

function place(policy: Policy, all: Node[], job: SchedJob): string | null {
  const groups = job.schedselect.split("+").map(parseChunk);
  const [arrangement = "free", ...words] = job.place.split(":");
  const exclusive = words.includes("excl");
  const wholeHost = words.includes("exclhost");
  const rank = (node: Node): number[] =>
    policy.node_sort_key.map(({ key, high, amount }) => {
      const value =
        key === "sort_priority"
          ? node.priority
          : amount === "total"
            ? node.avail.ncpus
            : amount === "unused"
              ? node.avail.ncpus - node.used.ncpus
              : node.used.ncpus;
      return high ? -value : value;
    });
  const compare = (a: Node, b: Node): number => {
    const [left, right] = [rank(a), rank(b)];
    for (let at = 0; at < left.length; at++) if (left[at] !== right[at]) return (left[at] as number) - (right[at] as number);
    return a.order - b.order;
  };
  const hosts = [...new Set(all.map((node) => node.host))].map((name) => {
    const vnodes = all.filter((node) => node.host === name);
    const walk = [...vnodes].sort(compare);
    const lead = walk.find((node) => node.free) ?? (vnodes[0] as Node);
    return { vnodes, walk, rank: rank(lead), order: (vnodes[0] as Node).order };
  });
  hosts.sort((a, b) => {
    for (let at = 0; at < a.rank.length; at++) if (a.rank[at] !== b.rank[at]) return (a.rank[at] as number) - (b.rank[at] as number);
    return a.order - b.order;
  });
  const usable = (node: Node): boolean => {
    if (!node.free) return false;
    const alone = node.sharing !== "ignore_excl" && (exclusive || wholeHost);
    if (!alone) return true;
    return wholeHost
      ? !node.crowded && !all.some((other) => other.host === node.host && other.inUse && other.sharing !== "ignore_excl")
      : !node.inUse;
  };
  const left = (node: Node): Amounts => ({ ncpus: node.avail.ncpus - node.used.ncpus, mem: node.avail.mem - node.used.mem });
  const apart = arrangement === "scatter" || arrangement === "vscatter";
  /**
   * Hosts by rank, then by the number of copies that they take, then by the remaining resources; each copy is tried on copies
   * of the vnodes.
   */
  const bestFirst = (group: typeof hosts, chunk: Chunk, need: number): typeof hosts => {
    const total = (name: "ncpus" | "mem"): number => all.reduce((sum, node) => sum + node.avail[name], 0);
    const fits = new Map(
      group.map((host) => {
        const vnodes = host.walk
          .filter((node) => usable(node) && (chunk.fast === undefined || node.fast === chunk.fast))
          .map((node) => ({ ...node }));
        let copies = 0;
        for (; copies < need && vnodes.length > 0; copies++) {
          const whole = vnodes.find((node) => left(node).ncpus >= chunk.amounts.ncpus && left(node).mem >= chunk.amounts.mem);
          const parts = whole === undefined ? split(vnodes, chunk.amounts, left) : [{ node: whole, amounts: chunk.amounts }];
          if (parts.length === 0) break;
          for (const { node, amounts } of parts) node.used = { ncpus: node.used.ncpus + amounts.ncpus, mem: node.used.mem + amounts.mem };
        }
        const share = (name: "ncpus" | "mem"): number =>
          chunk.amounts[name] > 0 ? vnodes.reduce((sum, node) => sum + Math.max(0, left(node)[name]), 0) / total(name) : 0;
        return [host, { copies, left: share("ncpus") + share("mem") }] as const;
      }),
    );
    return [...group].sort((a, b) => {
      const order = compareNumbers(a.rank, b.rank);
      const [x, y] = [fits.get(a) ?? { copies: 0, left: 0 }, fits.get(b) ?? { copies: 0, left: 0 }];
      if (order !== 0) return order;
      return y.copies - x.copies || (Math.abs(x.left - y.left) > 1e-9 ? x.left - y.left : a.order - b.order);
    });
  };
  const attempt = (group: typeof hosts, order: readonly Chunk[][]): string | null => {
    const taken: { node: Node; amounts: Amounts }[] = [];
    const usedHosts = new Set<string>();
    const usedNodes = new Set<Node>();
    const texts = new Map<Chunk[], string[]>(groups.map((copies) => [copies, []]));
    for (const copies of order) {
      // Best fit: the chosen host takes as many copies as it can.
      let last: (typeof hosts)[number] | null = null;
      for (const chunk of copies) {
        let text: string | null = null;
        const missing = copies.length - (texts.get(copies)?.length ?? 0);
        const sorted = policy.matcher === "best_fit" ? bestFirst(group, chunk, apart ? 1 : missing) : group;
        const candidates: typeof hosts = last === null || apart ? sorted : [last, ...sorted];
        for (const host of candidates) {
          if (arrangement === "scatter" && usedHosts.has(host.vnodes[0]?.host ?? "")) continue;
          const can = host.walk.filter(
            (node) =>
              usable(node) &&
              (chunk.fast === undefined || node.fast === chunk.fast) &&
              !(arrangement === "vscatter" && usedNodes.has(node)),
          );
          const whole = can.find((node) => left(node).ncpus >= chunk.amounts.ncpus && left(node).mem >= chunk.amounts.mem);
          let parts: { node: Node; amounts: Amounts }[] = [];
          if (whole !== undefined) parts = [{ node: whole, amounts: chunk.amounts }];
          else if (arrangement !== "vscatter" && can.length > 0) parts = split(can, chunk.amounts, left);
          if (parts.length === 0) continue;
          for (const part of parts) {
            part.node.used = { ncpus: part.node.used.ncpus + part.amounts.ncpus, mem: part.node.used.mem + part.amounts.mem };
            taken.push(part);
            usedNodes.add(part.node);
          }
          usedHosts.add(host.vnodes[0]?.host ?? "");
          if (policy.matcher === "best_fit") last = host;
          text = `(${parts.map((part) => [part.node.name, ...chunk.text.filter((name) => whole !== undefined || amount(part.amounts, name) > 0).map((name) => amountText(part.amounts, name))].join(":")).join("+")})`;
          break;
        }
        if (text === null) {
          for (const { node, amounts } of taken) node.used = { ncpus: node.used.ncpus - amounts.ncpus, mem: node.used.mem - amounts.mem };
          return null;
        }
        texts.get(copies)?.push(text);
      }
    }
    for (const { node } of taken) {
      node.inUse = true;
      if (node.avail.ncpus > 0 && node.used.ncpus >= node.avail.ncpus) node.free = false;
      if (node.sharing !== "ignore_excl" && (exclusive || wholeHost)) node.free = false;
      if (wholeHost && node.sharing !== "ignore_excl")
        for (const other of all) if (other.host === node.host && other.sharing !== "ignore_excl") other.free = false;
    }
    return [...texts.values()].flat().join("+");
  };
  if (arrangement !== "pack") {
    const choices = groups.map(
      ([chunk]) => hosts.filter((host) => fitsHost(host.walk.filter(usable), chunk as Chunk, arrangement === "vscatter", left)).length,
    );
    const order = groups.map((_, at) => at).sort((a, b) => (choices[a] as number) - (choices[b] as number) || a - b);
    return (
      attempt(hosts, groups) ??
      attempt(
        hosts,
        order.map((at) => groups[at] as Chunk[]),
      )
    );
  }
  const whole = groups.flat().reduce((sum, { amounts }) => ({ ncpus: sum.ncpus + amounts.ncpus, mem: sum.mem + amounts.mem }), NOTHING);
  for (const host of policy.matcher === "best_fit" ? bestFirst(hosts, { amounts: whole, text: [], fast: undefined }, 1) : hosts) {
    const text = attempt([host], groups);
    if (text !== null) return text;
  }
  return null;
}

const NOTHING: Amounts = { ncpus: 0, mem: 0 };

function compareNumbers(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return (a[at] as number) - (b[at] as number);
  return 0;
}

function fitsHost(vnodes: readonly Node[], chunk: Chunk, whole: boolean, left: (node: Node) => Amounts): boolean {
  const can = vnodes.filter((node) => chunk.fast === undefined || node.fast === chunk.fast);
  if (can.some((node) => left(node).ncpus >= chunk.amounts.ncpus && left(node).mem >= chunk.amounts.mem)) return true;
  return !whole && can.length > 0 && split(can, chunk.amounts, left).length > 0;
}

function split(can: readonly Node[], want: Amounts, left: (node: Node) => Amounts): { node: Node; amounts: Amounts }[] {
  const need = { ...want };
  const parts: { node: Node; amounts: Amounts }[] = [];
  for (const node of can) {
    const amounts = { ncpus: Math.min(need.ncpus, Math.max(0, left(node).ncpus)), mem: Math.min(need.mem, Math.max(0, left(node).mem)) };
    if (amounts.ncpus <= 0 && amounts.mem <= 0) continue;
    need.ncpus -= amounts.ncpus;
    need.mem -= amounts.mem;
    parts.push({ node, amounts });
  }
  return need.ncpus > 0 || need.mem > 0 ? [] : parts;
}

function parseChunk(text: string): Chunk[] {
  const parts = text.split(":");
  const count = Number(parts.shift());
  const amounts = { ncpus: 0, mem: 0 };
  let fast: boolean | undefined;
  const names: string[] = [];
  for (const part of parts) {
    const [name = "", value = ""] = part.split("=");
    if (name === "fast") fast = value === "True";
    else names.push(name);
    if (name === "ncpus") amounts.ncpus = Number(value);
    if (name === "mem") amounts.mem = sizeKb(value);
  }
  return Array.from({ length: count }, () => ({ amounts, text: names, fast }));
}

const amount = (amounts: Amounts, name: string): number => (name === "mem" ? amounts.mem : amounts.ncpus);
const amountText = (amounts: Amounts, name: string): string => (name === "mem" ? `mem=${amounts.mem}kb` : `ncpus=${amounts.ncpus}`);
