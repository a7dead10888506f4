// Finds the scheduler of a queue or vnode, which is the scheduler of its partition.

import { isHostNamed } from "#identity/host-name.ts";
import { DEFAULT_PARTITION, DEFAULT_SCHED } from "#model/tables/sched-attributes.ts";
import { isOwnName, type OwnHost } from "./own-host.ts";
import type { Queue, Sched, ServerState, Vnode } from "./state.ts";

/** The partitions of a scheduler: for the default scheduler pbs-default, for others those of its attribute partition. */
export function partitionsOf(sched: Sched): readonly string[] {
  if (sched.name === DEFAULT_SCHED) return [DEFAULT_PARTITION];
  const list = sched.attrs["partition"];
  return Array.isArray(list) ? (list as string[]) : [];
}

/** The partition of a queue or vnode; if it has none, that of the default scheduler. */
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
export function remotePlace({ name, attrs }: Pick<Sched, "name" | "attrs">, own: OwnHost): RemotePlace | null {
  const { sched_host, sched_port } = attrs;
  if (name === DEFAULT_SCHED || typeof sched_host !== "string" || isOwnName(own, sched_host)) return null;
  return { host: sched_host, port: typeof sched_port === "number" ? sched_port : undefined };
}
export type RemotePlace = { readonly host: string; readonly port: number | undefined };

/** The schedulers that belong to another host. host: the name in its certificate. */
export function schedsOf(state: ServerState, own: OwnHost, host: string): { readonly name: string; readonly port: number | null }[] {
  return [...state.scheds.values()].flatMap((sched) => {
    const place = remotePlace(sched, own);
    return place !== null && isHostNamed(host, place.host) ? [{ name: sched.name, port: place.port ?? null }] : [];
  });
}

/** Whether a scheduler belongs to another host. */
export const isRemote = (sched: Pick<Sched, "name" | "attrs">, own: OwnHost): boolean => remotePlace(sched, own) !== null;
