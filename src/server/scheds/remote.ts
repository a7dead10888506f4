// Schedulers whose sched_host is another host. The server starts no process there: it dials the scheduler, which an
// administrator or the host has started (docs/schedulers.md). The shell dials it until it succeeds, and reports why attempts
// fail.
//
// R1. A scheduler of this host connects to the server; one of another host is dialled. A process that is connected in
//     another way is not accepted as the scheduler.
// R2. While a scheduler should run and the server cannot reach it, the comment says why. A comment of an administrator stays; the reason is logged in any case.
// R3. A secondary server that has taken over dials each scheduler at its sched_host. If it cannot reach a scheduler there, it starts that scheduler on the
//     secondary server's host, where the scheduler runs until the primary leads again. sched_host in the store does not change; users see the host where the
//     scheduler runs.

import { isHostNamed } from "#identity/host-name.ts";
import { NOT_REACHED } from "#protocol/sched-link.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import { type Kernel, ownTransaction } from "../engine/kernel.ts";
import { runtimeOf } from "../engine/sched-runtime.ts";
import type { OwnHost } from "../state/own-host.ts";
import { type PlacedSched, remotePlace, shouldRun } from "../state/partitions.ts";
import type { Attrs, Sched } from "../state/state.ts";
import { isFault, isServersComment } from "./supervisor.ts";

/** Why a process may not be this scheduler (R1); null: it may. host: the host that the server has dialled; null: a process of this host has connected. */
export function whyNotSched(sched: Sched, own: OwnHost, host: string | null): string | null {
  const place = remotePlace(sched, own);
  if (place === null) return host === null ? null : `sched_host of ${sched.name} is not ${host}`;
  if (host !== null && isHostNamed(host, place.host)) return null;
  return `sched_host of ${sched.name} is ${place.host}, and the server dials the scheduler there`;
}

/** Called when all attempts to reach a scheduler of another host have failed: writes the reason into the log and the comment. why: a text for people. */
export function unreached(kernel: Kernel, name: string, why: string): void {
  const sched = kernel.state.scheds.get(name);
  const runtime = runtimeOf(kernel, name);
  if (sched === undefined || runtime.link !== null || !isWantedThere(kernel, sched) || runtime.unreached === why) return;
  runtime.unreached = why;
  kernel.out.logs.push({ event: LOG_EVENT.ERROR, class: "Sched", object: name, text: `cannot be reached: ${why}` });
  if (kernel.config.pair?.role === "secondary" && !runtime.met) return runHere(kernel, sched);
  const { comment } = sched.attrs;
  const text = `${NOT_REACHED}${why}`;
  if (isServersComment(comment) && !isFault(comment) && comment !== text) change(kernel, name, { comment: text }, []);
}

/** Runs a scheduler on this host (R3). */
function runHere(kernel: Kernel, sched: Sched): void {
  const host = kernel.config.pair?.host ?? kernel.config.host;
  kernel.out.logs.push({
    event: LOG_EVENT.SYSTEM,
    class: "Sched",
    object: sched.name,
    text: `runs on host ${host} until the primary server leads again`,
  });
  ownTransaction(kernel).apply({ kind: "sched-here", name: sched.name });
  forgetUnreached(kernel, sched);
  kernel.out.actions.push({ kind: "start-sched", sched: sched.name });
}

/** Called when the scheduler is connected, or is no longer dialled: removes the comment that unreached() has set. */
export function forgetUnreached(kernel: Kernel, sched: Sched): void {
  runtimeOf(kernel, sched.name).unreached = null;
  if (String(sched.attrs["comment"]).startsWith(NOT_REACHED)) change(kernel, sched.name, {}, ["comment"]);
}

/** Whether the server dials this scheduler on another host. */
export const isWantedThere = ({ config }: Pick<Kernel, "config">, sched: Sched): boolean =>
  shouldRun(sched) && remotePlace(sched, config) !== null;

/** The place where a scheduler should run, as a text for comparisons: if the place changes, the scheduler is ended at its former place. */
export const homeOf = (sched: PlacedSched, own: OwnHost): string => remotePlace(sched, own)?.host.toLowerCase() ?? "";

function change(kernel: Kernel, name: string, set: Attrs, unset: readonly string[]): void {
  ownTransaction(kernel).apply({ kind: "changed", object: "sched", name, set, unset: [...unset] });
}
