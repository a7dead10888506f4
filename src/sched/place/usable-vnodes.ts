// Which vnodes of the hosts in a bucket one job may use, whatever it requests there, and the states of these vnodes at the
// worst moment of the window in which the job would run.

import type { SchedJob, Why } from "#protocol/sched-link.ts";
import type { Request } from "../shapes/request.ts";
import { isOfOtherBucket } from "../shapes/runner-bucket.ts";
import type { Host, HostBucket, Vnode, VnodeState } from "../shapes/vnode.ts";
import { ineligible, ineligibleForResv, type OwnerCounts, ownerCounts } from "../shapes/vnode-fit.ts";
import { firstHost } from "./node-sets.ts";
import { statesDuring } from "./outlook.ts";
import { plannedOn } from "./owners-then.ts";
import type { PlaceContext } from "./place-context.ts";

/** The vnodes that one job may use. This is a class because it keeps the answer for each bucket while the job is being placed. */
export class UsableVnodes {
  readonly #context: PlaceContext;
  readonly #request: Request;
  readonly #job: SchedJob;
  /** true: the job does not request exclusive use of vnodes */
  readonly #shares: boolean;
  /** for each bucket, which vnodes of its hosts the job may use (null: none); null: not computed yet */
  #usable: Map<HostBucket, readonly boolean[] | null> | null = null;

  constructor(context: PlaceContext, request: Request, job: SchedJob) {
    this.#context = context;
    this.#request = request;
    this.#job = job;
    this.#shares = request.place.sharing === undefined || request.place.sharing === "shared";
  }

  /** Returns for each vnode of a bucket's hosts whether the job may use it; null: it may use none. host: one host of the bucket; by default the first. */
  of(bucket: HostBucket, host: Host | undefined = firstHost(bucket)): readonly boolean[] | null {
    if (this.#shares && bucket.open !== null && this.#request.keeps_cpus !== true) {
      if (bucket.outlook === null || this.statesOf(bucket) === bucket.states) return bucket.open;
      const [only, other] = this.statesOf(bucket);
      if (other === undefined)
        return only?.closed === undefined && (only?.busy !== true || this.#context.resv === true) ? bucket.open : null;
    }
    this.#usable ??= new Map();
    let usable = this.#usable.get(bucket);
    if (usable === undefined) {
      const states = this.statesOf(bucket);
      const flags = states.map((state, at) => bucket.members?.[at] !== false && this.whyNot(state, states, host?.vnodes[at]) === null);
      usable = flags.includes(true) ? flags : null;
      this.#usable.set(bucket, usable);
    }
    return usable;
  }

  /** Returns why the job, or the reservation, cannot use a vnode, whatever it requests there; null: it can. host: the states of all vnodes of the host. */
  whyNot(state: VnodeState, host: readonly VnodeState[], vnode: Vnode | undefined): Why | null {
    if (this.#context.resv !== true && isOfOtherBucket(this.#context.universe, state.spec, this.#job))
      return { code: "RUNNER_OF_OTHERS", module: "placement" };
    return this.#context.resv === true
      ? ineligibleForResv(this.#request, state, host)
      : ineligible(this.#request, state, host, () => this.#owners(vnode));
  }

  /**
   * Counts the jobs of the job's owner on a vnode. A vnode with limits by owner shares its bucket with no other vnode (its
   * spec contains its name), so the first host stands for the whole bucket.
   */
  #owners(vnode: Vnode | undefined): OwnerCounts {
    if (vnode === undefined) return { user: 0, group: 0 };
    const { universe, isOver } = this.#context;
    const there = [...new Set(vnode.node.jobs)].flatMap((id) => (isOver?.(id) === true ? [] : (universe.jobs.get(id) ?? [])));
    const planned = plannedOn(universe, vnode.name, this.#context.window);
    return ownerCounts([...there, ...this.#context.startedOn(vnode.name), ...planned], this.#job);
  }

  /** Returns the states of a bucket's vnodes at the worst moment of the window. */
  statesOf(bucket: HostBucket): readonly VnodeState[] {
    return bucket.outlook === null ? bucket.states : statesDuring(bucket, this.#context.window);
  }

  /** Returns the amounts that are taken of a bucket's vnodes at the worst moment of the window. */
  usedOf(bucket: HostBucket): readonly (readonly number[])[] {
    const states = this.statesOf(bucket);
    return states === bucket.states ? bucket.used : states.map(({ used }) => used);
  }
}
