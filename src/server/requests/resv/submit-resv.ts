// pbs_rsub (docs/reference/commands.md 5): makes a reservation. Schedulers decide about advance, standing and
// as-soon-as-possible reservations. A reservation that is made from a running job and a maintenance reservation are
// confirmed at once.
//
// Order of checks: 1. right to reserve  2. attributes  3. the job from which the reservation is made  4. times  5. resources  6. partition.

import { PBSE, Reject, reject } from "#model/pbse.ts";
import type { SubmitResvRequest } from "#protocol/messages.ts";
import { checkOperator } from "../../attributes/permission.ts";
import type { Answer, Transaction } from "../../engine/transaction.ts";
import { afterResvsubHooks } from "../../hooks/reservation.ts";
import { checkMayReserve, checkOccurrences } from "../../resv/access.ts";
import { create, createFromJob } from "../../resv/creation.ts";
import { giveWay } from "../../resv/health.ts";
import { sourceJob } from "../../resv/jobs.ts";
import { begin, confirm } from "../../resv/life.ts";
import { maintenanceOf } from "../../resv/maintenance.ts";
import { type Given, postAttrs, postProcessing_s, readAttributes, resolve, standingOf, timesOf } from "../../resv/submission.ts";
import { schedOfPartition } from "../../state/partitions.ts";
import type { Attrs, Job, ResourceRecord, Resv } from "../../state/state.ts";
import { fullJobId, mayQuery } from "../../status/job.ts";
import { nextJobNumber } from "../../submit/new-job.ts";

export function submitResv(asked: Transaction, request: SubmitResvRequest): Answer {
  checkMayReserve(asked);
  readAttributes(asked, request.attrs);
  const { tx, attrs: wanted } = afterResvsubHooks(asked, request.attrs);
  if (request.hosts !== undefined) return submitMaintenance(tx, { ...request, attrs: wanted }, request.hosts);
  const given = readAttributes(tx, wanted);
  const job = given.attrs["reserve_job"];
  if (job !== undefined) return submitFromJob(tx, given, String(job));
  if (given.attrs["qmove"] !== undefined) return submitAsap(tx, given, String(given.attrs["qmove"]));
  const { attrs, resources } = given;
  const asked_times = timesOf(
    attrs["reserve_start"] as number | undefined,
    attrs["reserve_end"] as number | undefined,
    durationOf(given),
    tx.now_s,
  );
  const post_s = postProcessing_s(tx);
  const times = { ...asked_times, duration_s: asked_times.duration_s + post_s };
  const standing = standingOf(tx, attrs, times);
  checkOccurrences(tx, standing?.starts.length ?? 1);
  const resolved = resolve(tx, resources, times.duration_s);
  checkPartition(tx, attrs["partition"]);
  const letter = standing === null ? "R" : "S";
  const start_s = standing?.starts[0] ?? times.start_s;
  const resv = create(tx, `${letter}${nextJobNumber(tx.state)}`, {
    ...attrs,
    ...resolved,
    ...postAttrs(post_s),
    reserve_start: start_s,
    reserve_end: start_s + times.duration_s,
    reserve_duration: times.duration_s,
    ...(standing === null ? { reserve_count: 1 } : standingAttrs(resolved, times.duration_s, standing.starts)),
  });
  return answerSubmitted(tx, resv);
}

const durationOf = ({ attrs, resources }: Given): number | undefined =>
  (attrs["reserve_duration"] ?? resources["walltime"]) as number | undefined;

function standingAttrs(
  resolved: { readonly Resource_List: ResourceRecord; readonly schedselect: string },
  duration: number,
  starts: readonly number[],
): Attrs {
  return {
    reserve_standing: 1,
    reserve_index: 1,
    reserve_count: starts.length,
    standing: { starts, duration, list: resolved.Resource_List, schedselect: resolved.schedselect },
  };
}

/** Refuses with 15221 a partition without a scheduler, because nobody could confirm the reservation. */
function checkPartition(tx: Transaction, partition: unknown): void {
  if (partition === undefined || schedOfPartition(tx.state, String(partition)) !== undefined) return;
  throw new Reject(PBSE.INVALID_PARTITION_QUE, `No scheduler associated with the partition ${partition}`);
}

/** The job that becomes a reservation. A job that the caller may not see (query_other_jobs) counts as unknown. */
function namedJob(tx: Transaction, text: string, running: boolean): Job {
  const id = fullJobId(tx.state, text) ?? text;
  const job = tx.state.jobs.get(id);
  if (job !== undefined && !mayQuery(tx, job)) throw reject(PBSE.UNKJOBID);
  return sourceJob(tx, id, running);
}

/** Makes a reservation from a running job. The job continues where it runs; its resources belong to the reservation until the end of its walltime. */
function submitFromJob(tx: Transaction, { attrs }: Given, id: string): Answer {
  if (attrs["reserve_start"] !== undefined || attrs["reserve_end"] !== undefined) throw reject(PBSE.BADTSPEC);
  const job = namedJob(tx, id, true);
  const resv = createFromJob(tx, job, attrs);
  return { value: { id: resv.id, word: "CONFIRMED" } };
}

const IDLE_S_ASAP = 600;

/** Makes a reservation that begins as soon as possible; the scheduler chooses the time. Then the job is moved into the queue of the reservation. */
function submitAsap(tx: Transaction, given: Given, id: string): Answer {
  const { attrs, resources } = given;
  if (attrs["reserve_start"] !== undefined || attrs["reserve_end"] !== undefined) throw reject(PBSE.BADTSPEC);
  const job = namedJob(tx, id, false);
  const wanted = durationOf(given) ?? job.attrs.Resource_List["walltime"];
  if (typeof wanted !== "number" || wanted <= 0) throw reject(PBSE.RESV_NO_WALLTIME);
  checkOccurrences(tx, 1);
  const post_s = postProcessing_s(tx);
  const duration = wanted + post_s;
  const { walltime: _walltime, ...asked } = resources;
  const resolved =
    Object.keys(asked).length > 0
      ? resolve(tx, resources, duration)
      : { Resource_List: { ...job.attrs.Resource_List, walltime: duration }, schedselect: job.attrs.schedselect };
  checkPartition(tx, attrs["partition"]);
  const resv = create(tx, `R${nextJobNumber(tx.state)}`, {
    delete_idle_time: IDLE_S_ASAP,
    ...attrs,
    ...resolved,
    ...postAttrs(post_s),
    qmove: job.id,
    reserve_duration: duration,
    reserve_count: 1,
  });
  return answerSubmitted(tx, resv);
}

/** Makes a maintenance reservation of all vnodes of some hosts, even if they were promised to other reservations. Only for operators and managers. */
function submitMaintenance(tx: Transaction, request: SubmitResvRequest, hosts: readonly string[]): Answer {
  checkOperator(tx.who);
  const given = readAttributes(tx, request.attrs);
  const { attrs } = given;
  const times = timesOf(
    attrs["reserve_start"] as number | undefined,
    attrs["reserve_end"] as number | undefined,
    durationOf(given),
    tx.now_s,
  );
  const { place, asked, partition } = maintenanceOf(tx.state, hosts);
  const resv = create(tx, `M${nextJobNumber(tx.state)}`, {
    ...attrs,
    ...resolve(tx, asked, times.duration_s),
    reserve_start: times.start_s,
    reserve_end: times.end_s,
    reserve_duration: times.duration_s,
    reserve_count: 1,
  });
  confirm(tx, resv, { occurrences: [{ start_s: times.start_s, end_s: times.end_s, place: 0 }], places: [place] }, partition);
  giveWay(tx, tx.state, resv);
  if (times.start_s <= tx.now_s) begin(tx, resv);
  return { value: { id: resv.id, word: "CONFIRMED" } };
}

function answerSubmitted(tx: Transaction, { id, attrs }: Resv): Answer {
  const wait_s = Math.abs(Number(attrs.interactive ?? 0));
  if (wait_s === 0) return { value: { id, word: "UNCONFIRMED" } };
  tx.act({ kind: "await-resv", resv: id, token: tx.token, until_s: tx.now_s + wait_s });
  return "deferred";
}
