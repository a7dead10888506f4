// The hosts of the complex and their moms, and its servers (`partita hosts`). Every user may ask, because pbsnodes also shows most of this.

import type { HostView, ServersView } from "#protocol/hosts-view.ts";
import type { ConnectedMom } from "../engine/mom-runtime.ts";
import type { Answer, Transaction } from "../engine/transaction.ts";
import type { Vnode } from "../state/state.ts";

/** Returns the hosts with vnodes, and then those without vnodes whose moms are connected; both in the order of their names. */
export function viewHosts(tx: Transaction): Answer {
  const { hosts, vnodes } = tx.state;
  const moms = new Map(tx.moms().map((mom) => [mom.host.toLowerCase(), mom]));
  const views: HostView[] = [];
  for (const name of [...hosts.keys()].sort()) {
    const here = [...(hosts.get(name) ?? [])].flatMap((each) => vnodes.get(each) ?? []);
    views.push(viewOf(name, moms.get(name.toLowerCase()), here));
    moms.delete(name.toLowerCase());
  }
  for (const mom of [...moms.values()].sort((a, b) => (a.host < b.host ? -1 : 1))) views.push(viewOf(mom.host, mom, []));
  return { value: { hosts: views, servers: serversOf(tx) } };
}

/** The servers of a complex with two servers; null: it has one. */
function serversOf({ config: { pair } }: Transaction): ServersView | null {
  if (pair === undefined) return null;
  const { role, host, other } = pair;
  return { active: { role, host }, other, standbys: pair.standbys() };
}

function viewOf(host: string, mom: ConnectedMom | undefined, vnodes: readonly Vnode[]): HostView {
  return {
    host,
    connected_s: mom?.since_s ?? null,
    latency_ms: mom?.latency_ms ?? null,
    ahead_ms: mom?.ahead_ms ?? null,
    datagrams: mom?.datagrams ?? null,
    place: mom?.place ?? null,
    version: mom?.release ?? null,
    state: [...new Set(vnodes.map(stateOf))].join(" "),
  };
}

function stateOf({ attrs }: Vnode): string {
  const { state } = attrs;
  return Array.isArray(state) && state.length > 0 ? state.join(",") : "free";
}
