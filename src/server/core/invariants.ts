// Invariants of the state. Tests and the simulator check them after every step. The message about a violation names the
// object and the rule.
//
// I1. Every job is in the set of exactly one queue, and is counted once under its state letter.
// I2. The assigned resources of a vnode, a queue or the server are the sums over its jobs; its cpu slots and chunk indexes
//     belong to these jobs.
// I3. The jobs on a vnode use no more than it has, except jobs that an operator placed with qrun -H.
// I4. If a job has a vnode exclusively, no other job is there (except jobs placed with qrun -H).
// I5. A partition has at most one scheduler.
// I6. A running job has vnodes, a start time and a run count; a waiting job has no attribute of a run. The state fits the
//     substate and the holds. Only a job whose start a scheduler may plan is a top job.
// I7. Job numbers and queue ranks in use are smaller than the counters for the next ones. No two jobs have the same queue
//     rank (except that a subjob has the rank of its array).
// I8. Reservations: see core/resv-invariants.ts.
// I9. A subjob is a job of its own if and only if its array counts it as live. An array is live as long as one of its
//     subjobs waits or is live.
// I10. Clocks of eligible time: see state/clocks.ts.
// I11. The attributes of a job contain only names of the attribute table. The server's own data about a job is kept separately (state/job-own.ts O2).
// I12. If a job depends on another live job, the other job's depend lists it. Jobs held for a dependency have substate 22.

import { listOf } from "#model/attribute-reader.ts";
import { entriesOf, isBefore, isDependent, jobOfEntry, reverseType } from "#model/depend.ts";
import { subjobId } from "#model/job-id.ts";
import { SUBSTATE } from "#model/job-state.ts";
import { JOB_ATTRIBUTES } from "#model/tables/job-attributes.ts";
import { isHeld } from "#model/values/hold.ts";
import { nth } from "#support/assert.ts";
import { dependenciesOf } from "../jobs/dependencies.ts";
import { type Amounts, addAmounts, sameAmounts } from "../state/amounts.ts";
import { checkAccrual } from "../state/clocks.ts";
import { checkUsage } from "../state/entity-usage.ts";
import { isPlanned, isWaiting, isWithMom } from "../state/job-phase.ts";
import { availableAmount } from "../state/occupancy.ts";
import { partitionsOf } from "../state/partitions.ts";
import { placementOf } from "../state/placement.ts";
import { countedOn, countedWide, resvOfQueue } from "../state/resv-holding.ts";
import type { Attrs, Job, JobAttrs, ServerState, Vnode } from "../state/state.ts";
import { isOver, SUBJOB, subjobState } from "../state/subjobs.ts";
import { derivedStates, isDerived } from "../state/vnode-states.ts";
import { type Check, checkResvs } from "./resv-invariants.ts";

/** Checks all invariants. Throws one error that names all violations. */
export function checkInvariants(state: ServerState): void {
  checkUsage(state);
  checkAccrual(state);
  const faults = violations(state);
  if (faults.length > 0) throw new Error(`invariants broken:\n${faults.join("\n")}`);
}

export function violations(state: ServerState): string[] {
  const faults: string[] = [];
  const check = (holds: boolean, fault: () => string): void => {
    if (!holds) faults.push(fault());
  };
  checkPlaces(state, check);
  checkAssigned(state, check);
  checkVnodes(state, check);
  checkScheds(state, check);
  checkResvs(state, check);
  for (const job of state.jobs.values()) checkJob(state, job, check);
  checkArrays(state, check);
  checkDependencies(state, check);
  return faults;
}

function checkPlaces(state: ServerState, check: Check): void {
  const counts = new Map<string, number>();
  const by_queue = new Map<string, Map<string, number>>();
  const ranks = new Set<number>();
  for (const job of state.jobs.values()) {
    const queue = state.queues.get(job.attrs.queue);
    check(queue !== undefined, () => `${job.id}: queue ${job.attrs.queue} does not exist`);
    check(queue?.jobs.has(job.id) === true, () => `${job.id} is not in the set of queue ${job.attrs.queue}`);
    bump(counts, job.attrs.job_state);
    const own = by_queue.get(job.attrs.queue) ?? new Map<string, number>();
    by_queue.set(job.attrs.queue, own);
    bump(own, job.attrs.job_state);
    check(job.attrs.queue_rank <= state.next_rank, () => `${job.id}: rank above the counter ${state.next_rank}`);
    check(
      job.attrs["array_id"] !== undefined || !ranks.has(job.attrs.queue_rank),
      () => `${job.id}: its rank ${job.attrs.queue_rank} is another job's too`,
    );
    if (job.attrs["array_id"] === undefined) ranks.add(job.attrs.queue_rank);
  }
  check(sameAmounts(counts, state.counts), () => `server counts are ${show(state.counts)}, should be ${show(counts)}`);
  for (const queue of state.queues.values()) {
    const own = by_queue.get(queue.name) ?? new Map<string, number>();
    check(sameAmounts(own, queue.counts), () => `queue ${queue.name}: counts are ${show(queue.counts)}, should be ${show(own)}`);
    check(
      queue.jobs.size === [...own.values()].reduce((sum, n) => sum + n, 0),
      () => `queue ${queue.name}: set of ${queue.jobs.size} jobs`,
    );
    const nodes = [...state.vnodes.values()].filter((vnode) => vnode.attrs["queue"] === queue.name).length;
    check(queue.nodes === nodes, () => `queue ${queue.name}: ${queue.nodes} nodes counted, ${nodes} there`);
  }
}

function checkAssigned(state: ServerState, check: Check): void {
  const server: Amounts = new Map();
  const queues = new Map<string, Amounts>();
  const vnodes = new Map<string, Amounts>();
  for (const job of state.jobs.values()) {
    const placement = placementOf(state, job.attrs);
    check((placement === null) === !state.placements.has(job.id), () => `${job.id}: placement does not fit its state`);
    if (placement === null) continue;
    for (const [name, spot] of placement.vnodes) {
      check(state.vnodes.get(name)?.jobs.has(job.id) !== false, () => `${job.id} is not noted on vnode ${name}`);
      if (resvOfQueue(state, job.attrs.queue) === undefined) addAmounts(entry(vnodes, name), spot.amounts, 1);
    }
    for (const { host, slot } of placement.chunk_slots) {
      check(state.chunk_slots.get(host)?.[slot] === job.id, () => `${job.id}: chunk index ${host}/${slot} is not its own`);
    }
    addAmounts(entry(queues, job.attrs.queue), placement.job_wide, 1);
    if (resvOfQueue(state, job.attrs.queue) === undefined) addAmounts(server, placement.job_wide, 1);
  }
  for (const resv of state.resvs.values()) {
    addAmounts(server, countedWide(resv), 1);
    for (const name of new Set([...resv.held.keys(), ...resv.used.keys()])) addAmounts(entry(vnodes, name), countedOn(resv, name), 1);
  }
  check(sameAmounts(server, state.assigned), () => `server: assigned ${show(state.assigned)}, jobs have ${show(server)}`);
  for (const queue of state.queues.values()) {
    const sum = entry(queues, queue.name);
    check(sameAmounts(sum, queue.assigned), () => `queue ${queue.name}: assigned ${show(queue.assigned)}, jobs have ${show(sum)}`);
  }
  for (const vnode of state.vnodes.values()) {
    const sum = entry(vnodes, vnode.name);
    check(sameAmounts(sum, vnode.assigned), () => `vnode ${vnode.name}: assigned ${show(vnode.assigned)}, jobs have ${show(sum)}`);
  }
}

function checkVnodes(state: ServerState, check: Check): void {
  for (const vnode of state.vnodes.values()) {
    const by_hand = [...vnode.jobs.keys()].some((id) => state.jobs.get(id)?.own.placed_by_hand === true);
    for (const [resource, amount] of jobsUse(state, vnode)) {
      const available = availableAmount(state, vnode, resource);
      check(
        by_hand || available === null || amount <= available + 1e-9,
        () => `vnode ${vnode.name}: ${amount} of ${available} ${resource} assigned`,
      );
    }
    const counted = [...vnode.jobs].filter(([id]) => state.placements.get(id)?.counted === true);
    check(
      by_hand || counted.length < 2 || !counted.some(([, use]) => use.exclusive),
      () => `vnode ${vnode.name}: an exclusive job is not alone`,
    );
    for (const id of vnode.jobs.keys())
      check(state.placements.get(id)?.vnodes.has(vnode.name) === true, () => `vnode ${vnode.name}: ${id} is not there`);
    const slots = vnode.slots.filter((id) => id !== "");
    check(slots.length === Math.ceil(jobsUse(state, vnode).get("ncpus") ?? 0), () => `vnode ${vnode.name}: ${slots.length} slots taken`);
    const states = listOf(vnode.attrs, "state");
    const derived = states.filter(isDerived);
    check(derived.join() === derivedStates(vnode).join(), () => `vnode ${vnode.name}: state ${states} should have ${derivedStates(vnode)}`);
  }
}

/** The amounts that the jobs on a vnode use, including jobs in reservations. */
function jobsUse(state: ServerState, vnode: Vnode): Amounts {
  const sum: Amounts = new Map();
  for (const id of vnode.jobs.keys()) {
    const placement = state.placements.get(id);
    if (placement !== undefined) addAmounts(sum, placement.vnodes.get(vnode.name)?.amounts ?? new Map(), 1);
  }
  return sum;
}

function checkScheds(state: ServerState, check: Check): void {
  const owners = new Map<string, string>();
  for (const sched of state.scheds.values()) {
    for (const partition of partitionsOf(sched)) {
      const owner = owners.get(partition);
      check(owner === undefined, () => `partition ${partition} belongs to schedulers ${owner} and ${sched.name}`);
      owners.set(partition, sched.name);
    }
  }
}

/** Records of attributes whose names were checked already. Records never change, so once is enough. */
const named = new WeakSet<Attrs>();

function checkJob(state: ServerState, job: Job, check: Check): void {
  const { attrs } = job;
  if (!named.has(attrs)) {
    for (const name in attrs)
      check(JOB_ATTRIBUTES.byName(name) !== undefined || name === "accrual_clock", () => `${job.id}: ${name} is no attribute`);
    named.add(attrs);
  }
  check("QHWTRESBUX".includes(attrs.job_state), () => `${job.id}: live with state ${attrs.job_state}`);
  check(
    (attrs.job_state === "H") === (isHeld(attrs.Hold_Types) && isWaiting(job)),
    () => `${job.id}: state ${attrs.job_state} with holds ${attrs.Hold_Types}`,
  );
  check(attrs["topjob"] !== true || isPlanned(job), () => `${job.id} is a top job in state ${attrs.job_state} ${attrs.substate}`);
  check(attrs.job_state !== "W" || attrs.Execution_Time !== undefined, () => `${job.id} waits for no time`);
  if (isWithMom(job)) {
    check(state.placements.has(job.id), () => `${job.id} runs nowhere`);
    check(attrs.stime !== undefined && (attrs.run_count ?? 0) > 0, () => `${job.id} runs without start time or run count`);
  } else {
    for (const name of ["exec_vnode", "exec_host", "session_id"])
      check(attrs[name] === undefined, () => `${job.id} does not run but has ${name}`);
    const execution = state.queues.get(attrs.queue)?.attrs["queue_type"] === "Execution";
    check(
      (attrs.etime !== undefined) === ((attrs.job_state === "Q" || attrs.job_state === "B") && execution),
      () => `${job.id}: etime ${attrs.etime} in state ${attrs.job_state}`,
    );
  }
}

function checkArrays(state: ServerState, check: Check): void {
  const live = new Map<string, Map<string, number>>();
  for (const job of state.jobs.values()) {
    const array_id = job.attrs["array_id"];
    check((job.attrs["array"] === true) === (job.subjobs !== undefined), () => `${job.id}: ${job.attrs["array"]} with or without subjobs`);
    if (typeof array_id !== "string") continue;
    const array = state.jobs.get(array_id);
    const index = Number(job.attrs["array_index"]);
    check(array?.subjobs !== undefined && job.id === subjobId(array_id, index), () => `${job.id} is no subjob of ${array_id}`);
    if (array?.subjobs === undefined) continue;
    check(subjobState(array.subjobs, index) === SUBJOB.LIVE, () => `${array_id}: ${index} is a job, and counted otherwise`);
    check(array.subjobs.requeued.has(index) === (job.attrs.job_state === "Q"), () => `${array_id}: ${index} is requeued or is not`);
    const letters = live.get(array_id) ?? new Map<string, number>();
    live.set(array_id, letters);
    bump(letters, job.attrs.job_state);
  }
  for (const { id, attrs, subjobs } of state.jobs.values()) {
    if (subjobs === undefined) continue;
    const letters = live.get(id) ?? new Map<string, number>();
    check(sameAmounts(letters, subjobs.live), () => `${id}: counts ${show(subjobs.live)} live subjobs, there are ${show(letters)}`);
    const counts = [0, 0, 0, 0, 0];
    for (const each of subjobs.states) counts[each] = nth(counts, each) + 1;
    check(counts.join() === subjobs.counts.join(), () => `${id}: counts ${subjobs.counts}, has ${counts}`);
    const sum = [...letters.values()].reduce((total, count) => total + count, 0);
    check(counts[SUBJOB.LIVE] === sum, () => `${id}: ${counts[SUBJOB.LIVE]} live subjobs, ${sum} jobs`);
    check(!isOver(subjobs), () => `${id} is over and lives`);
    const begun = attrs.stime !== undefined;
    check(attrs.job_state !== "B" || begun, () => `${id} has begun and has no start time`);
    check(begun || sum === 0, () => `${id} has not begun and has jobs`);
  }
}

function checkDependencies(state: ServerState, check: Check): void {
  for (const job of state.jobs.values()) {
    const { depend, substate } = job.attrs as JobAttrs & { readonly depend?: readonly string[] };
    check(substate !== SUBSTATE.DEPEND_HOLD || isDependent(depend), () => `${job.id} waits for no job in substate ${substate}`);
    if (depend === undefined) continue;
    for (const item of dependenciesOf(state, job.attrs)) {
      if (item.type === "on" || isBefore(item.type)) continue;
      for (const id of item.ids.map(jobOfEntry)) {
        const other = state.jobs.get(id);
        if (other === undefined) continue;
        const known = entriesOf(dependenciesOf(state, other.attrs), reverseType(item.type));
        check(known.map(jobOfEntry).includes(job.id), () => `${job.id} waits for ${id} (${item.type}), which does not know`);
      }
    }
  }
}

function bump(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function entry(map: Map<string, Amounts>, key: string): Amounts {
  let amounts = map.get(key);
  if (amounts === undefined) {
    amounts = new Map();
    map.set(key, amounts);
  }
  return amounts;
}

const show = (amounts: ReadonlyMap<string, number>): string => JSON.stringify(Object.fromEntries(amounts));
