// Checks resources of the server as a whole (licences, for example) over time. Running jobs have amounts of them until they end, and reservations were
// promised amounts. A reservation is confirmed, and a job started, only if there is enough at every moment of its time.

import type { Why } from "#protocol/sched-link.ts";
import type { Window } from "../shapes/booking.ts";
import { isRunning } from "../shapes/limits.ts";
import type { ResvInfo } from "../shapes/reservation.ts";
import { amountOf } from "../shapes/resource-space.ts";
import { endOf } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";

type Share = { readonly from_s: number; readonly to_s: number; readonly amount: number };

/** Returns a reason for a resource of the server that a reservation would lack in a window; null: there is none. */
export function serverShortage(universe: Universe, resv: ResvInfo, window: Window, now_s: number): Why | null {
  for (const [name, available] of universe.server_available) {
    const asked = countedAmount(universe, name, resv.resources[name]);
    if (asked === 0 || typeof available !== "number") continue;
    const shares = [...runningShares(universe, name, now_s), ...promisedShares(universe, name, resv.id)];
    if (peakOf(shares, window) + asked > available) return { code: "INSUFFICIENT_SERVER_RESOURCE", module: "reservations", resource: name };
  }
  return null;
}

type Job = {
  readonly resources: Readonly<Record<string, unknown>>;
  /** the time in which the job would run; it begins now */
  readonly window: Window;
  /** amounts that jobs started in this cycle have taken, by resource */
  readonly taken: ReadonlyMap<string, number>;
};

/** Returns whether later reservations leave a job the amounts of the server's resources that it asks for. */
export function leavesServerShare(universe: Universe, { resources, window, taken }: Job): boolean {
  if (universe.resvs.size === 0) return true;
  const now_s = window.from_s;
  for (const [name, available] of universe.server_available) {
    const asked = countedAmount(universe, name, resources[name]);
    if (asked === 0 || typeof available !== "number") continue;
    const promised = promisedShares(universe, name, "").filter(({ from_s, to_s }) => to_s > window.from_s && from_s < window.firm_to_s);
    if (promised.length === 0) continue;
    const shares = [...runningShares(universe, name, now_s), ...promised];
    for (const { from_s, to_s } of promised) {
      const during = { from_s: Math.max(from_s, window.from_s), to_s, firm_to_s: Math.min(to_s, window.firm_to_s) };
      if (peakOf(shares, during) + asked + (taken.get(name) ?? 0) > available) return false;
    }
  }
  return true;
}

function countedAmount({ space }: Universe, name: string, value: unknown): number {
  const resource = space.all.get(name);
  return resource?.flags.includes("q") === true ? (amountOf(resource, value) ?? 0) : 0;
}

/** Returns the amounts of one resource that jobs outside of reservations have, each until the end of its job. */
function runningShares(universe: Universe, name: string, now_s: number): Share[] {
  const shares: Share[] = [];
  for (const job of universe.jobs.values()) {
    if (job.resv !== undefined || !isRunning(job)) continue;
    const amount = countedAmount(universe, name, job.resources[name]);
    const running = amount === 0 ? undefined : universe.calendar.running.get(job.id);
    if (amount > 0) shares.push({ from_s: 0, to_s: running === undefined ? Number.POSITIVE_INFINITY : endOf(running, now_s), amount });
  }
  return shares;
}

/** Returns the amounts of one resource that all reservations but one have or were promised. */
function promisedShares(universe: Universe, name: string, except: string): Share[] {
  const shares: Share[] = [];
  for (const { id, resources, held } of universe.resvs.values()) {
    const amount = id === except ? 0 : countedAmount(universe, name, resources[name]);
    if (amount > 0) for (const { start_s, end_s } of held) shares.push({ from_s: start_s, to_s: end_s, amount });
  }
  return shares;
}

/** Returns the largest sum of amounts at any moment of a window. */
function peakOf(shares: readonly Share[], { from_s, firm_to_s }: Window): number {
  const during = shares.filter((share) => share.to_s > from_s && share.from_s < firm_to_s);
  const moments = new Set([from_s, ...during.map((share) => share.from_s).filter((moment_s) => moment_s > from_s)]);
  let peak = 0;
  for (const moment_s of moments) {
    let sum = 0;
    for (const share of during) if (share.from_s <= moment_s && share.to_s > moment_s) sum += share.amount;
    peak = Math.max(peak, sum);
  }
  return peak;
}
