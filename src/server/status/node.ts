// Status of vnodes (docs/reference/attributes.md 5, docs/reference/commands.md 4).

import { PBSE, reject } from "#model/pbse.ts";
import { NODE_ATTRIBUTES } from "#model/tables/node-attributes.ts";
import type { StatusItem, StatusRequest } from "#protocol/messages.ts";
import { columnsOf, encode } from "../attributes/encode.ts";
import { seesOthers } from "../attributes/permission.ts";
import type { Transaction } from "../engine/transaction.ts";
import { amountValue } from "../state/amounts.ts";
import { hostOf } from "../state/placement.ts";
import type { Attrs, ResourceRecord, ServerState, Vnode } from "../state/state.ts";
import { mayQuery } from "./job.ts";
import { named } from "./object.ts";

/** The status of vnodes. If the server has no vnodes at all, refuses with 15064, even if the request names vnodes. */
export function nodeStatus(tx: Transaction, { ids, attrs }: StatusRequest): StatusItem[] {
  const { state } = tx;
  if (state.vnodes.size === 0) throw reject(PBSE.NONODES);
  const columns = columnsOf(state, tx.who, NODE_ATTRIBUTES, attrs);
  const wanted = new Set(columns.map(({ name }) => name));
  return named(state.vnodes, ids, PBSE.UNKNODE, (vnode) => encode(columns, vnode.attrs, facts(tx, vnode, wanted)));
}

/** Resources that resources_assigned always lists, with 0 if nothing is assigned. */
const ALWAYS_ASSIGNED = ["accelerator_memory", "hbmem", "mem", "naccelerators", "ncpus", "vmem"] as const;

function facts(tx: Transaction, vnode: Vnode, wanted: ReadonlySet<string>): Attrs {
  const { state } = tx;
  const computed: Attrs = {};
  if (wanted.has("resources_assigned")) computed["resources_assigned"] = assignedRecord(state, vnode);
  const jobs = wanted.has("jobs") && vnode.jobs.size > 0 ? jobsText(vnode, seenJobs(tx, vnode)) : "";
  if (jobs !== "") computed["jobs"] = jobs;
  if (wanted.has("resv") && vnode.resvs.size > 0) computed["resv"] = [...vnode.resvs.keys()].join(", ");
  if (wanted.has("in_multivnode_host") && (state.hosts.get(hostOf(vnode))?.size ?? 0) > 1) computed["in_multivnode_host"] = 1;
  return computed;
}

function assignedRecord(state: ServerState, vnode: Vnode): ResourceRecord {
  const record: ResourceRecord = {};
  for (const name of ALWAYS_ASSIGNED) record[name] = amountValue(state.resources.get(name), 0);
  for (const [name, amount] of vnode.assigned) record[name] = amountValue(state.resources.get(name), amount);
  return record;
}

/** Jobs on the vnode that the caller may see (query_other_jobs). */
function seenJobs(tx: Transaction, vnode: Vnode): ReadonlySet<string> {
  const ids = [...vnode.jobs.keys()];
  if (seesOthers(tx)) return new Set(ids);
  return new Set(
    ids.filter((id) => {
      const job = tx.state.jobs.get(id);
      return job !== undefined && mayQuery(tx, job);
    }),
  );
}

/** `1.svr/0, 1.svr/1`: one entry for each cpu slot. A job without a cpu on the vnode, for instance a suspended one, has slot 0. */
function jobsText(vnode: Vnode, seen_jobs: ReadonlySet<string>): string {
  const entries: string[] = [];
  const seen = new Set<string>();
  vnode.slots.forEach((id, slot) => {
    if (!seen_jobs.has(id)) return;
    entries.push(`${id}/${slot}`);
    seen.add(id);
  });
  for (const id of seen_jobs) if (!seen.has(id)) entries.push(`${id}/0`);
  return entries.join(", ");
}
