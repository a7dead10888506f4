// Finds the scheduler of a queue or vnode, which is the scheduler of its partition; and the backends of a partition, with their runners (docs/runners.md).
//
// I1. What a runner is doing is never stored but follows from its record and its vnode, so that no count can drift.

import { isHostNamed } from "#identity/host-name.ts";
import { DEFAULT_PARTITION, DEFAULT_SCHED } from "#model/tables/sched-attributes.ts";
import type { HostSched } from "#protocol/join-link.ts";
import type { RunnerDoing } from "#protocol/runner-link.ts";
import { isOwnName, type OwnHost } from "./own-host.ts";
import type { Backend, Queue, Runner, Sched, ServerState, Vnode } from "./state.ts";

/** Returns the partitions of a scheduler. The default scheduler has the partition `pbs-default`. Any other scheduler has the partitions in its attribute `partition`. */
export function partitionsOf(sched: Sched): readonly string[] {
  if (sched.name === DEFAULT_SCHED) return [DEFAULT_PARTITION];
  const list = sched.attrs["partition"];
  return Array.isArray(list) ? (list as string[]) : [];
}

/** The partition of a queue or vnode; if it has none, the partition of the default scheduler. */
export function partitionOf(object: Queue | Vnode): string {
  const partition = object.attrs["partition"];
  return typeof partition === "string" && partition !== "" ? partition : DEFAULT_PARTITION;
}

/** The scheduler of a partition. */
export function schedOfPartition(state: ServerState, partition: string): Sched | undefined {
  if (partition === DEFAULT_PARTITION) return state.scheds.get(DEFAULT_SCHED);
  for (const sched of state.scheds.values()) if (partitionsOf(sched).includes(partition)) return sched;
  return undefined;
}

export const schedOfQueue = (state: ServerState, queue: Queue): Sched | undefined => schedOfPartition(state, partitionOf(queue));

/**
 * Whether the server wants the scheduler (docs/reference/differences.md): it has scheduling=True and a partition. The server
 * keeps a process for a scheduler of this host, and dials a scheduler of another host.
 */
export function shouldRun(sched: Sched): boolean {
  return sched.attrs["scheduling"] === true && partitionsOf(sched).length > 0;
}

/** The place of a scheduler on another host; port undefined: the server searches for it. null: the scheduler belongs to this host. */
export function remotePlace({ name, attrs, here }: PlacedSched, own: OwnHost): RemotePlace | null {
  const { sched_host, sched_port } = attrs;
  if (name === DEFAULT_SCHED || here === true || typeof sched_host !== "string" || isOwnName(own, sched_host)) return null;
  return { host: sched_host, port: typeof sched_port === "number" ? sched_port : undefined };
}
/** The members of a scheduler that say where it runs. */
export type PlacedSched = Pick<Sched, "name" | "attrs" | "here">;
export type RemotePlace = { readonly host: string; readonly port: number | undefined };

/** The host where a scheduler runs, as users see it in a complex with two servers; undefined: users see sched_host as it was given. */
export function shownHost(sched: PlacedSched, own: OwnHost & { readonly pair?: { readonly host: string } }): string | undefined {
  if (own.pair === undefined || typeof sched.attrs["sched_host"] !== "string") return undefined;
  return remotePlace(sched, own) === null ? own.pair.host : undefined;
}

/** The schedulers that belong to another host. host: the name in its certificate. */
export function schedsOf(state: ServerState, own: OwnHost, host: string): HostSched[] {
  return [...state.scheds.values()].flatMap((sched) => {
    const place = remotePlace(sched, own);
    if (place === null || !isHostNamed(host, place.host)) return [];
    const user = sched.attrs["sched_user"];
    return [{ name: sched.name, port: place.port ?? null, ...(typeof user === "string" ? { user } : {}) }];
  });
}

/** Whether a scheduler belongs to another host. */
export const isRemote = (sched: PlacedSched, own: OwnHost): boolean => remotePlace(sched, own) !== null;

// --- backends and runners

export function runnersOf(state: ServerState, backend: string): Runner[] {
  const found: Runner[] = [];
  for (const runner of state.runners.values()) if (runner.attrs.backend === backend) found.push(runner);
  return found;
}

export function doingOf(state: ServerState, { name, attrs }: Runner): RunnerDoing {
  const vnode = state.vnodes.get(name);
  if (vnode === undefined) return "asked";
  if (attrs.lost_s !== undefined) return "lost";
  return vnode.jobs.size > 0 ? "busy" : "idle";
}

export function runnerCounts(state: ServerState, backend: string): { readonly [D in RunnerDoing]: number } {
  const counts = { asked: 0, idle: 0, busy: 0, lost: 0 };
  for (const runner of runnersOf(state, backend)) counts[doingOf(state, runner)]++;
  return counts;
}

/** Whether there is anything to do for runners. */
export const hasRunners = ({ state }: { readonly state: ServerState }): boolean => state.backends.size + state.runners.size > 0;

/** The partition to which the runners of a backend belong. */
export function partitionOfBackend({ attrs }: Backend): string {
  const partition = attrs["partition"];
  return typeof partition === "string" && partition !== "" ? partition : DEFAULT_PARTITION;
}

/** The backends that may start runners for a partition, in the order of their creation. */
export function backendsFor(state: ServerState, partition: string): Backend[] {
  const found: Backend[] = [];
  for (const backend of state.backends.values())
    if (backend.attrs["enabled"] === true && partitionOfBackend(backend) === partition) found.push(backend);
  return found;
}

/** Whether runners can come to a partition, so that a job there that fits no vnode waits for one. */
export const isElastic = (state: ServerState, partition: string): boolean =>
  state.backends.size > 0 && backendsFor(state, partition).length > 0;
