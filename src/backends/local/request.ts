// Computes the amounts that each runner takes of this machine, and selects the runners that can start. Pure.
//
// L1. For each resource, the sum of the amounts of all running runners never exceeds the capacity.
// L2. A request that this machine cannot satisfy is impossible: it asks for a resource that is not there, for more than the capacity, for a text where amounts
//     are counted, or has an option. If such a request was diverted from another backend, it is accepted all the same: an amount beyond the capacity is reduced to
//     the capacity, the rest is ignored, and the runner takes the only unit of SINGLE. So only one such runner runs at a time.

import type { RunnerRequest } from "../contract/backend.ts";
import { BackendError } from "../contract/fault.ts";
import { amountOf } from "../contract/settings.ts";
import type { Amounts } from "./options.ts";

/** A resource of which there is one unit. No resource of a site can have this name. */
export const SINGLE = "<single>";

/** Returns the amounts that a runner takes. Throws `impossible` with a text that says what to do. */
export function amountsFor(request: RunnerRequest, capacity: Amounts): Amounts {
  const wanted: Record<string, number> = {};
  const wrong: string[] = [];
  for (const [name, value] of wants(request)) {
    const amount = amountOf(value);
    const has = capacity[name];
    // Temporary space is only managed if the site says how much there is.
    if (name === "tmp" && has === undefined) continue;
    if (has === undefined) wrong.push(`there is no resource ${name}; consider: set backend ... resources_available.${name}=N`);
    else if (amount === null) wrong.push(`resource ${name} is counted here, and ${JSON.stringify(value)} is no number`);
    else if (amount > has) wrong.push(`${amount} of ${name} wanted, ${has} there`);
    if (has !== undefined) wanted[name] = Math.min(amount ?? has, has);
  }
  for (const option of Object.keys(request.options)) wrong.push(`option ${option} means nothing on this machine`);
  const first = wrong[0];
  if (first === undefined) return wanted;
  if (request.diverted) return { ...wanted, [SINGLE]: 1 };
  throw new BackendError({ kind: "impossible", text: first });
}

function wants({ ncpus, mem_kb, tmp_kb, resources }: RunnerRequest): readonly (readonly [name: string, value: number | string])[] {
  return [
    ["ncpus", ncpus] as const,
    ...(mem_kb === null ? [] : [["mem", mem_kb] as const]),
    ...(tmp_kb === null ? [] : [["tmp", tmp_kb] as const]),
    ...Object.entries(resources),
  ];
}

export type Waiting<T> = { readonly item: T; readonly amounts: Amounts; readonly priority: number };

/**
 * Returns the runners that can start now, in the order of their priority. Of equal priority, those that take the largest share of a resource come first,
 * because small ones fit into what is left; of equal share, the order of the list counts. A runner that fits starts, even if one before it does not fit.
 */
export function startable<T>(waiting: readonly Waiting<T>[], capacity: Amounts, used: Amounts): readonly T[] {
  const free: Record<string, number> = Object.fromEntries(Object.entries(capacity).map(([name, has]) => [name, has - (used[name] ?? 0)]));
  free[SINGLE] = 1 - (used[SINGLE] ?? 0);
  const sized = waiting.map((each, at) => ({ ...each, at, size: shareOf(each.amounts, capacity) }));
  sized.sort((a, b) => b.priority - a.priority || b.size - a.size || a.at - b.at);
  const chosen: T[] = [];
  for (const { item, amounts } of sized) {
    const entries = Object.entries(amounts);
    if (entries.some(([name, amount]) => amount > (free[name] ?? 0))) continue;
    for (const [name, amount] of entries) free[name] = (free[name] ?? 0) - amount;
    chosen.push(item);
  }
  return chosen;
}

/** Returns the sum of amounts. */
export function sumOf(list: readonly Amounts[]): Amounts {
  const sum: Record<string, number> = {};
  for (const amounts of list) for (const [name, amount] of Object.entries(amounts)) sum[name] = (sum[name] ?? 0) + amount;
  return sum;
}

function shareOf(amounts: Amounts, capacity: Amounts): number {
  return Math.max(0, ...Object.entries(amounts).map(([name, amount]) => amount / Math.max(1, capacity[name] ?? 1)));
}
