// Random worlds for promises: small, so that jobs conflict, and with everything that can make a vnode refuse a job.

import type { SchedJob, SchedResv } from "#protocol/sched-link.ts";
import type { Policy } from "#sched/shapes/policy.ts";
import type { Prng } from "#support/prng.ts";
import { book, jobOf } from "../world.ts";
import type { PromiseWorld, QueueOf, VnodeOf } from "./promise-world.ts";
import { createPromiseWorld } from "./promise-world.ts";

const USERS = ["alice", "bob"];

/** calm: only jobs and time change */
export function drawWorld(random: Prng): { readonly world: PromiseWorld; readonly calm: boolean } {
  const cons = random.chance(0.25);
  const depth = random.pick([1, 1, 2, 3, 4, 100]);
  const server = {
    ...(cons && random.chance(0.7) ? {} : { backfill_depth: depth }),
    ...(random.chance(0.2) ? { max_run: { "u:PBS_GENERIC": random.int(1, 4) } } : {}),
    ...(random.chance(0.1) ? { max_run_res: { ncpus: { "o:PBS_ALL": random.int(6, 14) } } } : {}),
  };
  const sched = { opt_backfill_fuzzy: random.pick(["off", "off", "off", "10", "low"]) };
  const options = cons ? { module_options: new Map([["backfill", new Map([["policy", "cons"]])]]) } : {};
  const world = createPromiseWorld(
    { vnodes: drawVnodes(random), queues: drawQueues(random), book: book(drawPolicy(random), options) },
    { server, sched },
  );
  return { world, calm: random.chance(0.6) };
}

function drawPolicy(random: Prng): Partial<Policy> {
  return {
    strict_ordering: true,
    resources: new Set(["ncpus", "mem", "gpus", "host", "vnode"]),
    by_queue: random.chance(0.5),
    matcher: random.chance(0.3) ? "best_fit" : "first_fit",
    smp_cluster_dist: random.chance(0.15) ? "round_robin" : "pack",
    node_sort_key: random.chance(0.3)
      ? [{ key: "ncpus", high: random.chance(0.5), amount: random.pick(["total", "assigned", "unused"] as const) }]
      : [{ key: "sort_priority", high: true, amount: "total" }],
  };
}

function drawQueues(random: Prng): QueueOf[] {
  const queue = (name: string, priority: number): QueueOf => ({ name, priority, kill_delay: random.pick([0, 0, 5, 10, 30]) });
  return random.chance(0.7) ? [queue("workq", 0)] : [queue("first", 10), queue("workq", 0)];
}

function drawVnodes(random: Prng): VnodeOf[] {
  const rich = random.chance(0.5);
  return Array.from({ length: random.int(1, 4) }, (_, at) => {
    const host = `h${at}`;
    const count = random.pick([1, 1, 2, 3]);
    // Memory and gpus may all be on the first vnode of a host, and cpus on the others.
    const apart = count > 1 && random.chance(0.3);
    return Array.from({ length: count }, (_none, index): VnodeOf => {
      const first = index === 0;
      return {
        name: `${host}v${index}`,
        host,
        ncpus: apart && first ? 0 : random.int(1, 7),
        mem: apart && !first ? 0 : random.int(1, 6),
        gpus: first && random.chance(0.4) ? random.int(1, 2) : 0,
        sharing: rich && random.chance(0.25) ? random.pick(SHARING) : "default_shared",
        limits: rich && random.chance(0.2) ? random.pick<VnodeOf["limits"]>([{ max_running: random.int(1, 2) }, { max_user_run: 1 }]) : {},
        up: true,
      };
    });
  }).flat();
}
const SHARING = ["default_excl", "ignore_excl", "force_excl", "default_exclhost", "force_exclhost"];

function selectText(random: Prng): string {
  const chunks = Array.from({ length: random.pick([1, 1, 2, 2, 3]) }, () => {
    const cpus = random.chance(0.12) ? 0 : random.int(1, 5);
    const mem = random.chance(0.4) || cpus === 0 ? `:mem=${random.int(1, 3)}kb` : "";
    const gpus = random.chance(0.1) ? ":gpus=1" : "";
    return `${random.pick([1, 1, 2])}:ncpus=${cpus}${mem}${gpus}`;
  });
  return chunks.join("+");
}

function timesText(random: Prng): string {
  if (random.chance(0.02)) return "";
  const walltime_s = random.pick([random.int(1, 30), random.int(20, 120), 40, 60]);
  if (random.chance(0.12)) return `%min_walltime=${Math.ceil(walltime_s / 4)} %max_walltime=${walltime_s * 2}`;
  const soft = random.chance(0.2) ? ` %soft_walltime=${random.int(1, walltime_s)}` : "";
  return `walltime=${walltime_s}${soft}`;
}

/** Early, on time, up to kill_delay late, and rarely later than that. */
function behaviourOf(random: Prng): number {
  const kind = random.int(0, 99);
  if (kind < 30) return random.int(0, 95) / 100;
  if (kind < 60) return 1;
  return kind < 97 ? 1 + random.int(1, 100) / 100 : 3;
}

/** Some jobs precede existing ones. */
export function drawJob(random: Prng, world: PromiseWorld, id: string): SchedJob {
  const last = 1 + Math.max(0, ...[...world.jobs.values()].map(({ rank }) => Math.ceil(rank)));
  // A unique value for each job.
  const own = world.behaviour.size / 1_000_000;
  const rank = own + (random.chance(0.1) ? last - random.int(1, 6) + random.int(1, 99) / 100 : last + random.int(1, 9) / 10);
  const place = `${random.pick(["free", "free", "free", "scatter", "vscatter", "pack"])}${random.pick(["", "", "", "", "", ":excl", ":exclhost", ":shared"])}`;
  const array = random.chance(0.1) ? ` sub=1-${random.int(2, 4)}${random.chance(0.4) ? `%${random.int(1, 2)}` : ""}` : "";
  const name = array === "" ? `${id}.svr` : `${id}[].svr`;
  const text = `${name} ${selectText(random)} ${place} ${timesText(random)}${array} u=${random.pick(USERS)} @${random.pick(world.queues).name}`;
  const job = jobOf(text.replaceAll(/ +/g, " "), rank);
  world.behaviour.set(job.id, behaviourOf(random));
  return { ...job, qtime_s: world.now_s };
}

export function drawResv(random: Prng, world: PromiseWorld, step: number): SchedResv {
  const start_s = world.now_s + random.int(0, 80);
  const id = `R${step}`;
  const schedselect = `${random.int(1, 2)}:ncpus=${random.int(1, 3)}`;
  const attrs = { queue: id, schedselect, Resource_List: { place: random.pick(["free", "free", "free:excl"]) } };
  const ask = { kind: "confirm", asked_s: world.now_s, occurrences: [{ start_s, end_s: start_s + random.int(5, 60) }] } as const;
  return { id, attrs, running: false, held: [], places: [], ask };
}
