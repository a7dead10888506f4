// The vnodes of a maintenance reservation: all vnodes of its hosts (docs/reference/commands.md 5, --hosts).

import type { ResourceValues } from "#model/attribute.ts";
import { resourcesOf } from "#model/attribute-reader.ts";
import { PBSE, Reject } from "#model/pbse.ts";
import { type ExecChunk, execVnodeText, partOf } from "#model/request/exec-vnode.ts";
import { pairOf, type SelectChunk, selectText } from "#model/request/select.ts";
import { partitionOf } from "../state/partitions.ts";
import type { ServerState, Vnode } from "../state/state.ts";

/**
 * The vnodes of a maintenance reservation. place: as exec_vnode; asked: the equivalent request; partition: the one to which
 * all its vnodes belong; null: they belong to several.
 */
export type Maintenance = { readonly place: string; readonly asked: ResourceValues; readonly partition: string | null };

/** Finds all vnodes of the hosts. Refuses with 15062 a host that has no vnode with cpus, with 15055 a host that is named twice. */
export function maintenanceOf(state: ServerState, hosts: readonly string[]): Maintenance {
  const chunks: SelectChunk[] = [];
  const held: ExecChunk[] = [];
  const seen = new Set<string>();
  const partitions = new Set<string>();
  for (const host of hosts) {
    if (seen.has(host)) throw new Reject(PBSE.DUPLIST, `Duplicate host: ${host}`);
    seen.add(host);
    const vnodes = [...state.vnodes.values()].filter((vnode) => hostResource(vnode) === host && ncpusOf(vnode) > 0);
    if (vnodes.length === 0) throw new Reject(PBSE.UNKNODE, `Host with resources not found: ${host}`);
    for (const vnode of vnodes) partitions.add(partitionOf(vnode));
    const ncpus = vnodes.reduce((sum, vnode) => sum + ncpusOf(vnode), 0);
    chunks.push({ count: 1, pairs: [pairOf("host", host), pairOf("ncpus", String(ncpus))] });
    held.push(vnodes.map((vnode) => partOf(vnode.name, [["ncpus", String(ncpusOf(vnode))]])));
  }
  if (hosts.length === 0) throw new Reject(PBSE.IVALREQ, "missing host(s)");
  const [partition = null, other] = partitions;
  return {
    place: execVnodeText(held),
    asked: { select: selectText({ chunks }), place: "exclhost" },
    partition: other === undefined ? partition : null,
  };
}

const available = (vnode: Vnode): ResourceValues => resourcesOf(vnode.attrs, "resources_available");
const ncpusOf = (vnode: Vnode): number => Number(available(vnode)["ncpus"] ?? 0);
const hostResource = (vnode: Vnode): string => String(available(vnode)["host"] ?? vnode.name);
