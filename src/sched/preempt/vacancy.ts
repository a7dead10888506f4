// Frees the vnodes of a running job in the universe of a cycle. The `jobs` of vnodes say which vnodes a job holds, so for an exclhost job every
// vnode of its hosts is freed.
//
// V1. undoMoves with the returned moves takes everything back.

import { isNodeUsable } from "#model/values/node-state.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import { requestOf } from "../order/job-lines.ts";
import { moveHost } from "../place/node-sets.ts";
import { amountAt } from "../shapes/resource-space.ts";
import { readHolding } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Host, Move, Vnode, VnodeState } from "../shapes/vnode.ts";
import { sharingOn } from "../shapes/vnode-fit.ts";
import { stateWords } from "../shapes/vnode-state.ts";

/** What a cycle has changed: whether it took a job away, and which jobs it started on a vnode. */
export type CycleJobs = { isGone(id: string): boolean; startedOn(vnode: string): readonly SchedJob[] };

/** Takes a job off its vnodes. released: the resources that it gives up; null: all. Returns the moves of hosts. */
export function vacate(universe: Universe, job: SchedJob, released: ReadonlySet<string> | null, jobs: CycleJobs): Move[] {
  const given = readHolding(universe.space, job.exec_vnode ?? "");
  const hosts = new Set<Host>();
  for (const name of given.keys()) {
    const vnode = universe.vnodes.get(name);
    if (vnode !== undefined) hosts.add(vnode.host);
  }
  const moves: Move[] = [];
  for (const host of hosts) {
    const { bucket } = host;
    if (bucket === null) continue;
    const states = host.vnodes.map((vnode, at) => {
      const state = present(bucket.states[at], "state");
      if (!vnode.node.jobs.includes(job.id)) return state;
      const used = [...state.used];
      for (const { index, amount } of given.get(vnode.name)?.amounts ?? []) {
        const name = universe.space.consumed[index]?.name ?? "";
        if (released === null || released.has(name)) used[index] = amountAt(used, index) - amount;
      }
      return { spec: state.spec, used, ...withoutIt(universe, vnode, { job, state, used, jobs }) };
    });
    moves.push(...moveHost(universe, universe.policy, host, states));
  }
  return moves;
}

type Leaving = { readonly job: SchedJob; readonly state: VnodeState; readonly used: readonly number[]; readonly jobs: CycleJobs };

/** Returns how many jobs remain on a vnode when the job leaves it, and the state word that then keeps further jobs off it; undefined: none. */
function withoutIt(universe: Universe, vnode: Vnode, leaving: Leaving): Pick<VnodeState, "jobs" | "closed"> {
  const { spec } = leaving.state;
  const there = vnode.node.jobs.flatMap((id) => (id === leaving.job.id || leaving.jobs.isGone(id) ? [] : (universe.jobs.get(id) ?? [])));
  const left = [...new Set(there), ...leaving.jobs.startedOn(vnode.name)];
  const words = stateWords(vnode.node);
  const avail = amountAt(spec.avail, universe.space.ncpus);
  const isFull = avail > 0 && amountAt(leaving.used, universe.space.ncpus) >= avail;
  const closed =
    words.find((word) => !isNodeUsable([word])) ??
    words.find((word) => word === "resv-exclusive") ??
    (left.some((other) => isAlone(universe, other, spec)) ? "job-exclusive" : isFull ? "job-busy" : undefined);
  return { jobs: spec.max_running === undefined ? Math.min(1, left.length) : left.length, closed };
}

function isAlone(universe: Universe, job: SchedJob, spec: VnodeState["spec"]): boolean {
  return sharingOn(requestOf(universe, job.schedselect, job.place).place, spec) !== "shared";
}
