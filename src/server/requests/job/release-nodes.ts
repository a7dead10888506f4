// pbs_release_nodes (docs/reference/commands.md 3): a running job gives up hosts or vnodes, but not its first host or vnodes of it.

import { PBSE, Reject, reject } from "#model/pbse.ts";
import { type ExecChunk, parseExecVnode } from "#model/request/exec-vnode.ts";
import { type ChunkRequest, checkSelect, parseSelect, typedChunks } from "#model/request/select.ts";
import { parseResourceValue, resourceAmount } from "#model/values/resource-value.ts";
import type { ReleaseNodesRequest } from "#protocol/messages.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { logJob, requestor } from "../../jobs/life.ts";
import { furtherVnodes, releaseVnodes, vnodesByHost } from "../../jobs/release-nodes.ts";
import { isIn } from "../../state/job-phase.ts";
import type { Job } from "../../state/state.ts";
import { checkOwner, targetOf } from "./job-access.ts";

export function releaseNodes(tx: Transaction, request: ReleaseNodesRequest): Answer {
  const target = targetOf(tx, request.job);
  if (target.kind !== "job") throw reject(PBSE.IVALREQ);
  const { job } = target;
  checkOwner(tx, job);
  if (!isIn(job, "running")) throw reject(PBSE.BADSTATE);
  const hosts = [...vnodesByHost(tx.state, job)];
  const names = wanted(tx, job, request, hosts);
  if (names.length > 0) logJob(tx, LOG_EVENT.JOB, job.id, `release of ${names.join(", ")} asked for by ${requestor(tx)}`);
  releaseVnodes(tx, job, names);
  return {};
}

type HostVnodes = readonly (readonly [host: string, vnodes: readonly string[]])[];

/** The vnodes to give up. Refuses vnodes of the first host, and vnodes that the job does not have. */
function wanted(tx: Transaction, job: Job, request: ReleaseNodesRequest, hosts: HostVnodes): readonly string[] {
  const [first, ...others] = hosts;
  if (request.keep !== undefined) return beyond(tx, job, request.keep, first?.[1] ?? [], others);
  if (request.all === true) return furtherVnodes(tx, job);
  return request.nodes.flatMap((name) => {
    const own = name.toLowerCase();
    if (first?.[0].toLowerCase() === own || first?.[1].includes(name))
      throw new Reject(PBSE.IVALREQ, `Can't free '${name}' since it's on a primary execution host`);
    const host = others.find(([each]) => each.toLowerCase() === own);
    if (host !== undefined) return host[1];
    if (others.some(([, vnodes]) => vnodes.includes(name))) return [name];
    throw new Reject(PBSE.IVALREQ, `node(s) requested to be released not part of the job: ${name}`);
  });
}

/** The vnodes to give up if the request says what to keep (-k). keep: the number of sisters to keep, or a select for the chunks to keep. */
function beyond(tx: Transaction, job: Job, keep: string, first: readonly string[], others: HostVnodes): readonly string[] {
  if (/^\d{1,9}$/.test(keep)) {
    if (Number(keep) > others.length) throw new Reject(PBSE.IVALREQ, `the job has no ${keep} nodes beside its first`);
    return others.slice(Number(keep)).flatMap(([, vnodes]) => vnodes);
  }
  const select = parseSelect(keep.replace(/^select=/, ""));
  checkSelect(select, tx.state.resources);
  const chunks = parseExecVnode(job.attrs.exec_vnode ?? "").filter((chunk) => !chunk.some(({ vnode }) => first.includes(vnode)));
  const kept = new Set<ExecChunk>();
  for (const { count, resources } of typedChunks(select, tx.state.resources))
    for (let n = 0; n < count; n++) {
      const found = chunks.find((chunk) => !kept.has(chunk) && suffices(tx, chunk, resources));
      if (found === undefined) throw new Reject(PBSE.IVALREQ, "the job has not what is to be kept on its further nodes");
      kept.add(found);
    }
  const names = new Set([...kept].flatMap((chunk) => chunk.map(({ vnode }) => vnode)));
  return others.flatMap(([, vnodes]) => vnodes.filter((name) => !names.has(name)));
}

/** Whether a chunk has at least the requested amounts. */
function suffices(tx: Transaction, chunk: ExecChunk, asked: ChunkRequest["resources"]): boolean {
  return Object.entries(asked).every(([name, value]) => {
    const def = tx.state.resources.get(name);
    const least = def === undefined ? null : resourceAmount(def, value);
    if (def === undefined || least === null) return true;
    const has = chunk.flatMap(({ pairs }) => pairs.filter((pair) => pair.name === name));
    const sum = has.reduce((total, { text }) => total + (resourceAmount(def, parseResourceValue(def, text) ?? 0) ?? 0), 0);
    return has.length === 0 || sum >= least;
  });
}
