// How long the server waits for a mom that it has lost, before it starts the mom's rerunnable jobs elsewhere. The mom ends
// these jobs itself before that time is over, although it cannot hear from the server (mom-link.ts I7).
//
// G1. The server counts from the mom's last message. The mom counts from its latest message that was answered, which the
//     server has received. Therefore the mom's time is over before the server's, and the mom ends its jobs a margin before
//     that (src/mom/run/cut-off.ts).
// G2. A mom uses the grace that it knows. The server waits for the longest one that the mom may know: the last one that the
//     mom has named, and those sent after it. A mom to which "for ever" was said may therefore wait for ever.
// G3. node_fail_requeue counts from the loss of the mom and may be as short as a second. The grace is never shorter than
//     node_requeue_min, so that no short pause of a server or of the network ends jobs.
// G4. A server that has just started does not know what a mom was told. It counts from its start, which is later than any
//     message that an earlier server has answered, and assumes the present settings, or the time of G5 if that is longer.
// G5. When the settings make the grace shorter, the longer grace is stored as requeue_told of a vnode of each host, until
//     the mom has named a shorter one. The mom may be cut off at that time, and another server may take over meanwhile. This
//     holds for jobs whose first host is cut off. The grace of sisters is not stored.

import { limitOf } from "#model/limits/server-limits.ts";
import type { MomGrace, MomHello } from "#protocol/mom-link.ts";
import type { Kernel } from "../engine/kernel.ts";
import type { LostMom, MomRuntime } from "../engine/mom-runtime.ts";
import type { Transaction } from "../engine/transaction.ts";
import { hostOfJob } from "../state/job-hosts.ts";
import type { Job } from "../state/state.ts";
import { vnodesOf } from "./host-vnodes.ts";
import { DOWNTIME_S_DEFAULT, downtime_ms } from "./patience.ts";

const NODE_FAIL_REQUEUE_S_DEFAULT = 310;

type Seconds = Pick<MomGrace, "requeue_s" | "sister_s">;

/** node_fail_requeue in seconds. 0: never; below 0 means 1; unset means 310. */
function failRequeue_s({ state }: Pick<Kernel, "state">): number {
  const set = state.server["node_fail_requeue"];
  if (typeof set !== "number") return NODE_FAIL_REQUEUE_S_DEFAULT;
  return set < 0 ? 1 : set;
}

/** The grace for rerunnable jobs at present, in seconds. 0: for ever. */
function presentRequeue_s(kernel: Kernel): number {
  const requeue_s = failRequeue_s(kernel);
  return requeue_s === 0 ? 0 : Math.max(limitOf(kernel.state, "node_requeue_min"), requeue_s);
}

const isLonger = (one_s: number, other_s: number): boolean => other_s !== 0 && (one_s === 0 || one_s > other_s);

/** The longest of these times. 0: for ever. */
const longest = (first_s: number, ...more_s: readonly number[]): number =>
  more_s.reduce((max_s, each_s) => (isLonger(each_s, max_s) ? each_s : max_s), first_s);

/** The grace of a mom at present. sisterJobs: the jobs for which the mom's host is a further host, not the first. */
function presentGrace(kernel: Kernel, sisterJobs: readonly Job[]): Seconds {
  const least_s = limitOf(kernel.state, "node_requeue_min");
  const downtimes_s = sisterJobs.map((job) => downtime_ms(kernel, hostOfJob(job)) / 1000);
  // The configuration of a mother superior that is not connected is unknown. The default then applies to its sisters, too.
  const sister_s = Math.min(DOWNTIME_S_DEFAULT, ...downtimes_s);
  return { requeue_s: presentRequeue_s(kernel), sister_s: Math.max(least_s, sister_s) };
}

/** The graces that a mom may use, as its hello shows. */
export const gracesAtHello = ({ grace }: MomHello): MomRuntime["graces"] =>
  grace === undefined ? null : grace === null ? [] : [{ ...grace, number: 0 }];

/** Returns the grace that the mom must be told, unless the mom ignores graces, and notes that the mom may use it from now on. */
export function graceFor(kernel: Kernel, mom: MomRuntime, sisterJobs: readonly Job[]): { readonly grace?: MomGrace } {
  if (mom.graces === null) return {};
  const present = presentGrace(kernel, sisterJobs);
  const last = mom.graces.at(-1);
  const isKnown = last !== undefined && last.number > 0 && last.requeue_s === present.requeue_s && last.sister_s === present.sister_s;
  const grace = isKnown ? last : { number: (last?.number ?? 0) + 1, ...present };
  if (!isKnown) mom.graces = [...mom.graces, grace];
  return { grace };
}

/** Tells a mom its grace at once if it has changed, not only with the answer to its next report. */
export function tellGrace(kernel: Kernel, mom: MomRuntime, sisterJobs: readonly Job[]): void {
  const last = mom.graces?.at(-1);
  const { grace } = graceFor(kernel, mom, sisterJobs);
  if (grace !== undefined && grace !== last) kernel.out.moms.push({ link: mom.link, type: "mom-heard", data: { number: 0, grace } });
}

/** Called when the mom has named the newest grace that it knows: it does not use an older one any more (G2). */
export function graceNamed(mom: MomRuntime, number: number | undefined): void {
  if (mom.graces === null || number === undefined) return;
  if (mom.graces.some((grace) => grace.number === number)) mom.graces = mom.graces.filter((grace) => grace.number >= number);
}

/** Called when a mom is lost: keeps the longest grace that it may use. */
export function loseGrace(kernel: Kernel, mom: MomRuntime): void {
  const key = mom.host.toLowerCase();
  kernel.moms.lost.delete(key);
  if (mom.graces === null) return;
  const [first, ...more] = mom.graces;
  if (first === undefined) return;
  const requeue_s = longest(first.requeue_s, ...more.map((grace) => grace.requeue_s));
  kernel.moms.lost.set(key, { heard_ms: mom.heard_ms, requeue_s, sister_s: Math.max(...mom.graces.map(({ sister_s }) => sister_s)) });
}

/** Called at the start of the server for each host (G4). */
export function graceUnknown(kernel: Kernel, host: string, sisterJobs: readonly Job[]): void {
  const present = presentGrace(kernel, sisterJobs);
  const requeue_s = longest(present.requeue_s, ...[...toldOf(kernel, host).values()]);
  kernel.moms.lost.set(host.toLowerCase(), { ...present, heard_ms: kernel.now_ms, requeue_s });
}

/** The stored graces of a host by vnode (G5). */
function toldOf(kernel: Kernel, host: string): ReadonlyMap<string, number> {
  const told = new Map<string, number>();
  for (const { name, attrs } of vnodesOf(kernel, host)) {
    const told_s = attrs["requeue_told"];
    if (typeof told_s === "number") told.set(name, told_s);
  }
  return told;
}

/** The longest grace for rerunnable jobs that the mom of a host may use; null: the mom uses none. */
function mayUse_s(kernel: Kernel, host: string): number | null {
  const mom = kernel.moms.by_host.get(host.toLowerCase());
  if (mom === undefined) return lostMom(kernel, host)?.requeue_s ?? null;
  const [first, ...more] = (mom.graces ?? []).map(({ requeue_s }) => requeue_s);
  return first === undefined ? null : longest(first, ...more);
}

/** Called when the settings have changed: stores for each host the grace that its mom may still use, if the present one is shorter (G5). */
export function gracesChanged(kernel: Kernel, tx: Transaction): void {
  const now_s = presentRequeue_s(kernel);
  for (const [host, names] of kernel.state.hosts) {
    const [first] = names;
    const may_s = mayUse_s(kernel, host);
    if (first === undefined || may_s === null || !isLonger(may_s, now_s) || kernel.state.runners.has(host)) continue;
    const told = toldOf(kernel, host);
    const [name = first] = told.keys();
    const told_s = longest(may_s, ...told.values());
    if (told.get(name) !== told_s) tx.apply({ kind: "changed", object: "node", name, set: { requeue_told: told_s }, unset: [] });
  }
}

/** Called when the mom has named a grace: the stored grace is no longer needed if the mom can use only shorter ones (G5). */
export function shortenTold(kernel: Kernel, tx: Transaction, mom: MomRuntime): void {
  const told = toldOf(kernel, mom.host);
  if (told.size === 0) return;
  const present_s = presentRequeue_s(kernel);
  const [first, ...more] = (mom.graces ?? []).map(({ requeue_s }) => requeue_s).filter((each_s) => isLonger(each_s, present_s));
  const left_s = first === undefined ? null : longest(first, ...more);
  for (const [name, told_s] of told) {
    if (left_s === null) tx.apply({ kind: "changed", object: "node", name, set: {}, unset: ["requeue_told"] });
    else if (left_s !== told_s) tx.apply({ kind: "changed", object: "node", name, set: { requeue_told: left_s }, unset: [] });
  }
}

const lostMom = (kernel: Kernel, host: string): LostMom | undefined => kernel.moms.lost.get(host.toLowerCase());

/** The time at which jobs whose first host is this lost host may be started elsewhere; null: never. Called when the host is lost. */
export function requeueAt_ms(kernel: Kernel, host: string): number | null {
  const wait_s = failRequeue_s(kernel);
  const lost = lostMom(kernel, host);
  if (wait_s === 0 || lost?.requeue_s === 0) return null;
  return Math.max(kernel.now_ms + wait_s * 1000, lost === undefined ? 0 : lost.heard_ms + lost.requeue_s * 1000);
}

/** The time before which a lost host may still have processes of a job of which it is not the first host. */
export function sisterUntil_ms(kernel: Kernel, host: string): number {
  const lost = lostMom(kernel, host);
  return lost === undefined ? 0 : lost.heard_ms + lost.sister_s * 1000;
}
