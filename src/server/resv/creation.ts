// A new reservation with its queue, and the records about both.

import { PBSE, reject } from "#model/pbse.ts";
import { RESV_STATE } from "#model/resv-state.ts";
import { mustGet } from "#support/assert.ts";
import { LOG_EVENT } from "#support/log-event.ts";
import type { Transaction } from "../engine/transaction.ts";
import { partitionOf } from "../state/partitions.ts";
import type { Attrs, Job, Resv, ResvAttrs } from "../state/state.ts";
import { nextJobNumber } from "../submit/new-job.ts";
import { begin, confirm } from "./life.ts";
import { checkPromises } from "./promises.ts";
import { makeQueue } from "./queue.ts";
import { accountSubmitted, logResv } from "./records.ts";
import { postAttrs, postProcessing_s } from "./submission.ts";

/** Creates an unconfirmed reservation of the caller. name: the id without the server. given: the attributes without those that the server adds. */
export function create(tx: Transaction, name: string, given: Attrs): Resv {
  const { state, who, now_s } = tx;
  const id = `${name}.${state.name}`;
  const owner = String(given["Reserve_Owner"] ?? `${who.user}@${who.host}`);
  const attrs = {
    Reserve_Name: "NULL",
    Submit_Host: who.host,
    euser: who.user,
    egroup: who.groups[0] ?? who.user,
    ...given,
    Reserve_Owner: owner,
    reserve_state: RESV_STATE.UNCONFIRMED,
    reserve_substate: RESV_STATE.UNCONFIRMED,
    queue: name,
    server: state.name,
    ctime: now_s,
    mtime: now_s,
    Authorized_Users: withOwner(given["Authorized_Users"], owner),
    Variable_List: variables(owner, given["Variable_List"]),
  } as unknown as ResvAttrs;
  if (attrs.interactive === 0) delete (attrs as Attrs)["interactive"];
  makeQueue(tx, attrs);
  tx.apply({ kind: "created", object: "resv", name: id, attrs });
  const resv = mustGet(state.resvs, id);
  logResv(tx, LOG_EVENT.RESV, id, `New reservation submitted${timesText(tx, attrs)}`);
  accountSubmitted(tx, resv);
  return resv;
}

function timesText(tx: Transaction, { reserve_start, reserve_end, reserve_rrule, reserve_timezone }: ResvAttrs): string {
  if (reserve_start === undefined || reserve_end === undefined) return " start=as soon as possible";
  const rule = reserve_rrule === undefined ? "" : ` recurrence_rrule=${reserve_rrule} timezone=${reserve_timezone}`;
  return ` start=${tx.config.ctime(reserve_start)} end=${tx.config.ctime(reserve_end)}${rule}`;
}

/** Adds the owner to the users of the reservation, because the owner may always submit to its queue. */
function withOwner(users: unknown, owner: string): readonly string[] {
  return [...new Set([...((users as readonly string[] | undefined) ?? []), owner])].sort();
}

/** Variable_List: the variables from the client, but with owner and host from the server. */
function variables(owner: string, given: unknown): readonly string[] {
  const others = ((given as readonly string[] | undefined) ?? []).filter((text) => !/^PBS_O_(LOGNAME|HOST)=/.test(text));
  const at = owner.lastIndexOf("@");
  return [`PBS_O_LOGNAME=${owner.slice(0, at)}`, `PBS_O_HOST=${owner.slice(at + 1)}`, ...others];
}

/**
 * Makes a reservation of the resources of a running job: for the job's owner, until the end of the job's walltime. Refuses
 * with 15075 a job without walltime, because the end would be unknown, and a job whose walltime is over. Refuses with 15044 a
 * job that uses amounts that were promised to other reservations.
 */
export function createFromJob(tx: Transaction, job: Job, given: Attrs): Resv {
  const { attrs } = job;
  const walltime = attrs.Resource_List["walltime"];
  const start_s = attrs.stime ?? tx.now_s;
  if (typeof walltime !== "number" || start_s + walltime <= tx.now_s) throw reject(PBSE.RESV_NO_WALLTIME);
  const queue = mustGet(tx.state.queues, attrs.queue);
  // checkPromises is called because a job that an operator has placed (qrun -H) may use what is promised to other reservations.
  const post_s = postProcessing_s(tx);
  const duration_s = walltime + post_s;
  const promised = { occurrences: [{ start_s, end_s: start_s + duration_s, place: 0 }], places: [attrs.exec_vnode ?? ""] };
  checkPromises(tx.state, { id: null, place: attrs.Resource_List["place"] }, promised);
  const resv = create(tx, `R${nextJobNumber(tx.state)}`, {
    ...given,
    Reserve_Owner: attrs.Job_Owner,
    euser: attrs.euser,
    egroup: attrs.egroup,
    Resource_List: { ...attrs.Resource_List, walltime: duration_s },
    ...postAttrs(post_s),
    schedselect: attrs.schedselect,
    reserve_job: job.id,
    reserve_start: start_s,
    reserve_end: start_s + duration_s,
    reserve_duration: duration_s,
    reserve_count: 1,
  });
  confirm(tx, resv, promised, partitionOf(queue));
  begin(tx, resv);
  tx.apply({ kind: "job-changed", id: job.id, set: { queue: resv.attrs.queue }, unset: [] });
  return resv;
}
