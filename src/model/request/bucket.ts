// Resource buckets (docs/runners.md): jobs that ask for about the same amounts are in one bucket, so that one runner serves all of them. ncpus, walltime and sizes
// of a bucket are rounded up. A backend is asked for the rounded amounts; a job gets the exact ones.
//
// B1. The key of a bucket contains everything that decides whether a runner can take a job: the owner, the queue and the project (whose limits hold for
//     all jobs of the bucket together), what the job requests, with rounded amounts, and its options for the backend.
// B2. Rounding never makes an amount smaller, and never makes it larger by a quarter or more. Before that, a fraction is rounded up to a whole number.

import type { ResourceValue } from "../attribute.ts";
import { isConsumable, type Resources } from "../resource-table.ts";
import { renderDuration } from "../values/duration.ts";
import { kbText, sizeKb } from "../values/size.ts";
import { placeOf } from "./place.ts";
import { readSelect, typedChunks } from "./select.ts";

/** A bucket: which jobs it is for, and what its runners have. walltime_s null: its jobs have no limit of time. resources: further resources, as texts. */
export type Bucket = {
  readonly key: string;
  readonly owner: string;
  readonly queue: string;
  readonly project: string;
  readonly ncpus: number;
  /** 0: the jobs ask for no memory */
  readonly mem_kb: number;
  readonly tmp_kb: number;
  readonly walltime_s: number | null;
  readonly resources: { readonly [resource: string]: string };
  /** options of the jobs for the backend (qsub -W backend_opts); absent: none */
  readonly options?: string;
};

/** What decides the bucket of a job. list: Resource_List. */
export type BucketJob = {
  readonly owner: string;
  readonly queue: string;
  readonly project: string;
  readonly schedselect: string;
  readonly list: { readonly [resource: string]: ResourceValue };
  /** options for the backend (backend_opts) */
  readonly options?: string | undefined;
};

/** Number of binary digits that rounding keeps. */
const DIGITS_KEPT = 3;

/** Rounds an amount up to a number with DIGITS_KEPT significant binary digits (B2): 1 to 8, 10, 12, 14, 16, 20, 24, ... */
export function roundUp(amount: number): number {
  const whole = Math.ceil(amount);
  if (whole < 2 ** DIGITS_KEPT) return whole;
  const step = 2 ** (Math.floor(Math.log2(whole)) - DIGITS_KEPT + 1);
  return Math.ceil(whole / step) * step;
}

/** Returns the bucket of a job, or the reason why no runner can ever take the job. */
export function bucketOf(job: BucketJob, resources: Resources): Bucket | { readonly impossible: string } {
  const select = readSelect(job.schedselect);
  if (select === null) return { impossible: "its select cannot be read" };
  const chunks = typedChunks(select, resources);
  const place = job.list["place"];
  const { arrangement } = placeOf(typeof place === "string" ? place : "free");
  const count = chunks.reduce((sum, chunk) => sum + chunk.count, 0);
  if (count > 1 && (arrangement === "scatter" || arrangement === "vscatter"))
    return { impossible: `place=${arrangement} asks for several hosts, and a runner is one host` };
  const amounts = new Map<string, number>();
  const values = new Map<string, string>();
  for (const chunk of chunks) {
    for (const [name, value] of Object.entries(chunk.resources)) {
      if (name === "host" || name === "vnode") return { impossible: `it asks for ${name} ${value}, and a runner has a name of its own` };
      const def = resources.get(name);
      if (def !== undefined && isConsumable(def)) {
        const amount = typeof value === "string" ? sizeKb(value) : Number(value);
        amounts.set(name, (amounts.get(name) ?? 0) + chunk.count * amount);
      } else if ((values.get(name) ?? String(value)) !== String(value))
        return { impossible: `its chunks ask for different values of ${name}` };
      else values.set(name, String(value));
    }
  }
  return made(job, amounts, values, resources);
}

function made(job: BucketJob, amounts: Map<string, number>, values: Map<string, string>, resources: Resources): Bucket {
  const take = (name: string): number => {
    const amount = amounts.get(name) ?? 0;
    amounts.delete(name);
    return roundUp(amount);
  };
  const [ncpus, mem_kb, tmp_kb] = [take("ncpus"), take("mem"), take("tmp")];
  for (const [name, amount] of amounts) {
    if (amount > 0) values.set(name, resources.get(name)?.type === "size" ? kbText(roundUp(amount)) : String(amount));
  }
  const walltime = job.list["walltime"];
  const walltime_s = typeof walltime === "number" ? roundUp(Math.max(walltime, WALLTIME_LEAST_S)) : null;
  const others = [...values].sort(([a], [b]) => (a < b ? -1 : 1));
  const { owner, queue, project } = job;
  const parts = [
    owner,
    queue,
    project,
    `ncpus=${ncpus}`,
    ...(mem_kb === 0 ? [] : [`mem=${kbText(mem_kb)}`]),
    ...(tmp_kb === 0 ? [] : [`tmp=${kbText(tmp_kb)}`]),
    ...(walltime_s === null ? [] : [`walltime=${renderDuration(walltime_s)}`]),
    ...others.map(([name, value]) => `${name}=${value}`),
    ...(job.options === undefined ? [] : [`backend_opts=${job.options}`]),
  ];
  const options = job.options === undefined ? {} : { options: job.options };
  return {
    key: parts.join(":"),
    owner,
    queue,
    project,
    ncpus,
    mem_kb,
    tmp_kb,
    walltime_s,
    resources: Object.fromEntries(others),
    ...options,
  };
}

/**
 * Sorts buckets into the order in which they get runners: the highest priority first. Among buckets of equal priority, the first bucket of each owner comes before
 * the second bucket of any owner, so that an owner of many buckets is not served before all others.
 */
export function inTurns<T extends { readonly bucket: Bucket; readonly priority: number }>(items: readonly T[]): T[] {
  const counts = new Map<string, number>();
  const placed = [...items]
    .sort((a, b) => b.priority - a.priority || (a.bucket.key < b.bucket.key ? -1 : 1))
    .map((item) => {
      const line = `${item.priority} ${item.bucket.owner}`;
      const round = counts.get(line) ?? 0;
      counts.set(line, round + 1);
      return { item, round };
    });
  return placed.sort((a, b) => b.item.priority - a.item.priority || a.round - b.round).map(({ item }) => item);
}

/** A shorter walltime counts as this one; it is then rounded up. */
const WALLTIME_LEAST_S = 60;

/** The resources of a runner's vnode: the rounded amounts of its bucket, as texts. */
export function bucketResources({ ncpus, mem_kb, tmp_kb, resources }: Bucket): { readonly [resource: string]: string } {
  return {
    ...resources,
    ncpus: String(ncpus),
    ...(mem_kb === 0 ? {} : { mem: kbText(mem_kb) }),
    ...(tmp_kb === 0 ? {} : { tmp: kbText(tmp_kb) }),
  };
}
