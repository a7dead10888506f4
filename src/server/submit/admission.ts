// Whether a queue accepts a job: at submission, at qmove, and from a routing queue (docs/reference/commands.md 1.2, docs/reference/errors.md 3).
//
// Order: 1. enabled 15021  2. from_route_only 15022  3. lists of hosts, users and groups 15007  4. numbers of jobs 15046, 15142
//        5. size of an array 15107  6. bounds of resources 15036  7. amounts of resources 15143.

import type { ResourceValue, ResourceValues } from "#model/attribute.ts";
import { PBSE, type Reject, reject } from "#model/pbse.ts";
import { alterRequest, isOldStyle } from "#model/request/job-request.ts";
import { checkQueueLists, type Submitter } from "../attributes/permission.ts";
import type { Transaction } from "../engine/transaction.ts";
import { waitingState } from "../jobs/life.ts";
import { checkJobInResv } from "../jobs/resv-fit.ts";
import { weightOf } from "../state/entity-usage.ts";
import type { Attrs, Job, JobAttrs, Queue, ServerState } from "../state/state.ts";
import { checkArraySize, subjobCount } from "./array-size.ts";
import { type Counted, checkQueueLimits } from "./queue-limits.ts";
import { checkBounds } from "./resource-bounds.ts";

export type Entry = {
  readonly from_route: boolean;
  readonly submitter: Submitter;
  /** the bounds were checked already, with this outcome */
  readonly bounds?: Reject | null;
  /** the job as it is counted at present */
  readonly already?: Counted;
  /** a waiting array: the number of subjobs that count (deleted ones do not) */
  readonly weight?: number;
};

/** Refuses a job that the queue does not accept. attrs: as they would be in the queue. */
export function checkEntry(tx: Transaction, attrs: JobAttrs, queue: Queue, entry: Entry): void {
  const { state } = tx;
  if (queue.attrs["enabled"] !== true) throw reject(PBSE.QUNOENB);
  if (queue.attrs["from_route_only"] === true && !entry.from_route) throw reject(PBSE.QACESS);
  checkQueueLists(queue.attrs, entry.submitter);
  checkArraySize(state, queue, attrs);
  checkJobInResv(state, attrs, queue);
  if (entry.bounds === undefined) checkBounds(attrs.Resource_List, queue.attrs, state.server, state.resources);
  else if (entry.bounds !== null) throw entry.bounds;
  checkQueueLimits(
    state,
    { ...attrs, job_state: waitingState(attrs, tx.now_s).job_state, queue: queue.name } as JobAttrs,
    queue,
    entry.already,
    entry.weight ?? subjobCount(attrs),
  );
}

/** Changes of a job that comes from another queue: defaults of the new queue replace those of the old one. */
export function admitJob(tx: Transaction, job: Job, queue: Queue, how: { readonly from_route: boolean }): Attrs {
  const { state } = tx;
  const { attrs } = job;
  const resolved = alterRequest(
    attrs.Resource_List,
    defaultsGoing(state, job),
    { queue: queue.attrs, server: state.server },
    state.resources,
  );
  const next = { ...attrs, ...resolved } as JobAttrs;
  const at = attrs.Job_Owner.lastIndexOf("@");
  const submitter = { user: attrs.Job_Owner.slice(0, at), host: attrs.Job_Owner.slice(at + 1), groups: [attrs.egroup] };
  checkEntry(tx, next, queue, { from_route: how.from_route, submitter, already: { attrs }, weight: weightOf(job) });
  return { Resource_List: resolved.Resource_List, schedselect: resolved.schedselect };
}

/** Resources that equal a default of the old queue are taken for that default. Chunk resources of a job with select are sums and are computed again. */
function defaultsGoing(state: ServerState, job: Job): { readonly [resource: string]: ResourceValue | undefined } {
  const list = job.attrs.Resource_List;
  const { resources_default, resources_max } = (state.queues.get(job.attrs.queue)?.attrs ?? {}) as {
    readonly [name: string]: ResourceValues | undefined;
  };
  const old_style = isOldStyle(list, { queue: state.queues.get(job.attrs.queue)?.attrs ?? {}, server: state.server }, state.resources);
  const going: { [resource: string]: undefined } = {};
  for (const [name, value] of Object.entries({ ...resources_max, ...resources_default })) {
    if (list[name] !== value || name === "select" || name === "place" || name === "nodes" || name === "nodect") continue;
    if (old_style || !state.resources.get(name)?.flags.includes("h")) going[name] = undefined;
  }
  return going;
}
