// What a host may learn about itself from its server, for `partita doctor` on that host: whether its mom is connected, whether its datagrams arrive, and where the moms
// of other hosts accept connections. A standby server learns the last, too.

import type { HostSight } from "#protocol/join-link.ts";
import type { Kernel } from "../engine/kernel.ts";
import { connectedMom } from "../engine/mom-runtime.ts";

/** Largest number of other moms that are named. */
const OTHERS_MAX = 1000;

/** host: the name in the certificate of the host that asks. */
export function hostSight({ moms, now_ms }: Pick<Kernel, "moms" | "now_ms">, host: string): HostSight {
  const own = moms.by_host.get(host.toLowerCase());
  const others = [...moms.by_host.values()].flatMap((mom) => {
    const { place } = connectedMom(now_ms, mom);
    return mom === own || place === null ? [] : [{ host: mom.host, ...place }];
  });
  return {
    connected: own !== undefined,
    datagrams: own === undefined ? null : connectedMom(now_ms, own).datagrams,
    others: others.slice(0, OTHERS_MAX),
  };
}

/** Where the connected moms of other hosts accept connections, and which hosts have vnodes. Names of hosts are in lower case. */
export function momPlaces({ moms, state, now_ms }: Pick<Kernel, "moms" | "state" | "now_ms">): {
  readonly connected: readonly { readonly host: string; readonly address: string; readonly port: number }[];
  isKnown(host: string): boolean;
} {
  const known = new Set([...state.hosts.keys()].map((host) => host.toLowerCase()));
  const connected = [...moms.by_host.values()].flatMap((mom) => {
    const { place } = connectedMom(now_ms, mom);
    const host = mom.host.toLowerCase();
    return place === null || !known.has(host) ? [] : [{ host, ...place }];
  });
  return { connected, isKnown: (host) => known.has(host) };
}
