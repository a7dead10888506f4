// The search for the vnodes of a job: it chooses the next host, takes it, and gives it back if the job does not fit
// (placement.ts P1-P5).

import type { SchedJob, Why } from "#protocol/sched-link.ts";
import { present } from "#support/assert.ts";
import { heapPop, heapPush, heapReplace } from "#support/heap.ts";
import { firstPlace } from "#support/search.ts";
import type { Piece, Placed, PlacedChunks } from "../shapes/placed.ts";
import type { Amount, Chunk, Request } from "../shapes/request.ts";
import { amountAt } from "../shapes/resource-space.ts";
import type { Host, HostBucket, Move, NodeSet } from "../shapes/vnode.ts";
import type { Checks } from "../shapes/vnode-fit.ts";
import { copiesThatFit, isChecked } from "../shapes/vnode-fit.ts";
import type { HostView } from "./host-fit.ts";
import { canSplit, fitsHost, mayTake, splitChunk } from "./host-fit.ts";
import type { Fit, Matcher } from "./matcher.ts";
import { fitOf, MATCHERS } from "./matcher.ts";
import { attach, detach, firstHost, hostsInOrder, moveHost } from "./node-sets.ts";
import type { PlaceContext } from "./place-context.ts";
import type { SearchView } from "./placement-why.ts";
import { whyNot, whyNotPacked } from "./placement-why.ts";
import { isBeyond } from "./set-front.ts";
import { statesLeft } from "./states-after.ts";
import { UsableVnodes } from "./usable-vnodes.ts";
import { type Option, orderOf, precedes } from "./walk.ts";

/** A host that the search has touched (taken out of its bucket), with its amounts at the worst moment of the window. */
type Work = HostView & { readonly host: Host; readonly used: (readonly number[])[]; readonly taken: boolean[] };

/** The buckets that can take a chunk, as a heap ordered by their first hosts. */
type Line = Option[];
/** Number of hosts that are searched one by one before a heap of all buckets (Line) is made, which then saves time. */
const ROUNDS_BEFORE_LINE = 4;

/** The placement of one job. It is a class because it takes hosts out of their buckets and must give them back (P1). */
export class Search implements SearchView {
  readonly #context: PlaceContext;
  readonly set: NodeSet;
  readonly request: Request;
  readonly checks: Checks;
  readonly usable: UsableVnodes;
  readonly touched = new Map<Host, Work>();
  readonly #placed: Piece[][][];
  readonly #matcher: Matcher;
  readonly #isBefore: (a: Option, b: Option) => boolean;

  constructor(context: PlaceContext, set: NodeSet, request: Request, job: SchedJob) {
    this.#context = context;
    this.checks = context.universe.checks;
    this.set = set;
    this.request = request;
    this.#placed = request.chunks.map(() => []);
    this.#matcher = MATCHERS[context.policy.matcher];
    this.#isBefore = orderOf(this.#matcher);
    this.usable = new UsableVnodes(context, request, job);
  }

  /**
   * Places chunks for free, scatter and vscatter: each chunk goes to the first host that can take it. order: the order in
   * which chunks choose. Returns null if all are placed, otherwise the reason.
   */
  spread(order: readonly number[] = this.request.chunks.map((_, at) => at)): Why | null {
    for (const at of order) {
      const chunk = present(this.request.chunks[at], "chunk");
      const again = this.#touchedThatFit(chunk);
      let line: Line | null = null;
      for (let need = chunk.count, rounds = 0; need > 0; rounds++) {
        if (rounds === ROUNDS_BEFORE_LINE && this.#context.after === null && this.namedHost(chunk) === undefined)
          line = this.#lineUp(chunk, need);
        const work = line === null ? this.#next(chunk, again, need) : this.#nextInLine(line, chunk, again, need);
        if (work === null) return whyNot(this, chunk);
        need -= this.#putCopies(work, chunk, at, this.#isApart ? 1 : need);
        if (this.#isVscatter && this.#fitsWork(work, chunk)) again.add(work);
        else again.delete(work);
      }
    }
    return null;
  }

  /**
   * Tries again if the chunks of the request differ: in the order of the request, an easy chunk may have taken the only place of a hard one. Now the
   * chunks that the fewest hosts can take choose first. Returns false if this fails too, or if there is only one kind of chunk.
   */
  spreadHardestFirst(): boolean {
    const { chunks } = this.request;
    if (chunks.length < 2) return false;
    this.#startAgain();
    const choices = chunks.map((chunk) => this.#countHosts(chunk));
    if (choices.includes(0)) return false;
    const order = chunks
      .map((_, at) => at)
      .sort((a, b) => present(choices[a], "number of choices") - present(choices[b], "number of choices") || a - b);
    return order.some((at, place) => at !== place) && this.spread(order) === null;
  }

  #startAgain(): void {
    for (const placed of this.#placed) placed.length = 0;
    this.giveBack();
  }

  /** Returns the number of hosts that could take one copy of a chunk. */
  #countHosts(chunk: Chunk): number {
    const named = this.namedHost(chunk);
    if (named !== undefined) return named === null || named.bucket === null || !this.#fitsBucket(named.bucket, chunk, named) ? 0 : 1;
    let count = 0;
    if (this.#isBeyond(chunk)) return count;
    for (const bucket of this.set.open) if (this.#fitsBucket(bucket, chunk)) count += bucket.count;
    return count;
  }

  /** Whether no two chunks may be on one host (scatter) or vnode (vscatter). */
  get #isApart(): boolean {
    return this.request.place.arrangement === "scatter" || this.request.place.arrangement === "vscatter";
  }

  get #isVscatter(): boolean {
    return this.request.place.arrangement === "vscatter";
  }

  /** Places chunks for pack: all of them go to the first host that can take them all. Returns null if they are placed, otherwise the reason. */
  packAll(): Why | null {
    const { chunks } = this.request;
    const naming = chunks.find((chunk) => this.namedHost(chunk) !== undefined);
    const named = naming === undefined ? undefined : this.namedHost(naming);
    if (named === null) return whyNot(this, naming as Chunk);
    let failed: Why | null = null;
    for (const host of named === undefined ? this.#hostsInOrder() : [named]) {
      const bucket = host.bucket as HostBucket;
      const work = this.#couldPack(bucket) ? this.#touch(host) : null;
      if (
        work !== null &&
        chunks.every((chunk, at) => this.#isFor(host, chunk) && this.#putCopies(work, chunk, at, chunk.count) === chunk.count)
      )
        return null;
      this.#startAgain();
      failed ??= whyNotPacked(this, host, bucket);
    }
    return failed ?? whyNot(this, naming ?? present(chunks[0], "chunk"));
  }

  /** Checks quickly whether a host has enough left in total. */
  #couldPack(bucket: HostBucket): boolean {
    return this.request.totals.every(
      ({ index, amount }) => !isChecked(this.checks, index) || this.#isInfinite(index) || amount <= amountAt(bucket.free, index),
    );
  }

  /** Places every chunk where it was placed before. Returns false if some place is not free; chunks that were placed stay until giveBack(). */
  putAt(placed: PlacedChunks): boolean {
    let copy = 0;
    for (const [at, chunk] of this.request.chunks.entries())
      for (let left = chunk.count; left > 0; left--) if (!this.#putBack(chunk, at, placed[copy++] ?? [])) return false;
    return true;
  }

  #putBack(chunk: Chunk, at: number, pieces: readonly Piece[]): boolean {
    const host = pieces[0]?.vnode.host;
    const work = host === undefined ? null : this.#take(host);
    if (work === null) return false;
    const parts = pieces.map(({ vnode, amounts }) => ({ at: work.vnodes.indexOf(vnode), amounts }));
    for (const { at: index, amounts } of parts) {
      const level = {
        spec: present(work.bucket.states[index], "state").spec,
        used: present(work.used[index], "amounts"),
      };
      if (work.usable[index] !== true || copiesThatFit(this.checks, level, { ...chunk, amounts }, 1) === 0) return false;
    }
    this.#put(work, at, parts);
    return true;
  }

  #isInfinite(index: number): boolean {
    return this.#context.policy.resource_unset_infinite.has(this.#context.universe.space.consumed[index]?.name ?? "");
  }

  #isFor(host: Host, chunk: Chunk): boolean {
    const named = this.namedHost(chunk);
    return named === undefined || named === host;
  }

  /** Moves the touched hosts to the buckets for their new states. */
  commit(): Placed {
    const moved: Move[] = [];
    const { universe, policy } = this.#context;
    let last: Host | undefined;
    for (const { host, bucket, used, taken } of this.touched.values()) {
      last = host;
      const states = statesLeft(universe.space, this.request, bucket, {
        states: bucket.states,
        shown: this.usable.statesOf(bucket),
        used,
        taken,
      });
      for (const move of moveHost(universe, policy, host, states, bucket)) moved.push(move);
    }
    return { chunks: this.#placed.flat(), moved, set: this.set, last };
  }

  /** Returns the chunks that were placed, but gives all hosts back, so that nothing is moved. */
  leave(): PlacedChunks {
    this.giveBack();
    return this.#placed.flat();
  }

  giveBack(): void {
    for (const { host, bucket } of this.touched.values()) attach(this.set, host, bucket);
    this.touched.clear();
  }

  // --- the next host

  /** Returns the touched hosts that may take another copy of a chunk. */
  #touchedThatFit(chunk: Chunk): Set<Work> {
    const again = new Set<Work>();
    if (this.touched.size === 0) return again;
    if (this.request.place.arrangement === "scatter") return again;
    for (const work of this.touched.values()) if (this.#fitsWork(work, chunk)) again.add(work);
    return again;
  }

  /**
   * Touches and returns the host that the matcher chooses among those that can take a chunk; null: there is none. again:
   * hosts that have chunks of the job already. need: number of copies still to be placed.
   */
  #next(chunk: Chunk, again: ReadonlySet<Work>, need: number): Work | null {
    const named = this.namedHost(chunk);
    if (named !== undefined) return named === null ? null : this.#nextNamed(named, chunk, again);
    if (this.#isBeyond(chunk)) return null;
    if (this.#context.after !== null) return this.#nextAround(chunk, again, this.#context.after(this.set));
    if (this.#matcher.isBetter !== null) return this.#nextBest(chunk, again, need);
    let best: Host | null = null;
    let rank: readonly number[] = [];
    for (const { host, bucket } of again) {
      if (best === null || precedes(bucket.rank, host, rank, best)) [best, rank] = [host, bucket.rank];
    }
    for (const bucket of this.set.open) {
      const host = firstHost(bucket);
      if (host === undefined || (best !== null && !precedes(bucket.rank, host, rank, best))) continue;
      if (this.#fitsBucket(bucket, chunk)) [best, rank] = [host, bucket.rank];
    }
    return best === null ? null : this.#take(best);
  }

  /** Does the same as #next by comparing the fits of all hosts that can take the chunk. */
  #nextBest(chunk: Chunk, again: ReadonlySet<Work>, need: number): Work | null {
    let best = this.#bestOf(again, chunk, need);
    for (const bucket of this.set.open) {
      const option = this.#optionIn(bucket, chunk, need);
      if (option !== null && (best === null || this.#isBefore(option, best))) best = option;
    }
    return best === null ? null : this.#take(best.host);
  }

  /** Returns the best of the hosts that already have chunks of the job. */
  #bestOf(again: ReadonlySet<Work>, chunk: Chunk, need: number): Option | null {
    let best: Option | null = null;
    for (const work of again) {
      const { host, bucket } = work;
      const option = { host, bucket, fit: this.#fit(work, chunk, need) };
      if (best === null || this.#isBefore(option, best)) best = option;
    }
    return best;
  }

  #optionIn(bucket: HostBucket, chunk: Chunk, need: number): Option | null {
    const host = firstHost(bucket);
    if (host === undefined || !this.#fitsBucket(bucket, chunk)) return null;
    return { bucket, host, fit: this.#fitIn(bucket, host, chunk, need) };
  }

  /** Returns the fit of a chunk on a host; null: the matcher computes no fits. */
  #fit(view: HostView, chunk: Chunk, need: number): Fit | null {
    return this.#matcher.isBetter === null ? null : fitOf(this.checks, view, chunk, this.#isApart ? 1 : need, this.set.total);
  }

  #fitIn(bucket: HostBucket, host: Host, chunk: Chunk, need: number): Fit | null {
    const usable = this.#matcher.isBetter === null ? null : this.usable.of(bucket, host);
    if (usable === null) return null;
    return this.#fit({ vnodes: host.vnodes, bucket, used: this.usable.usedOf(bucket), usable, taken: null }, chunk, need);
  }

  /** Returns a touched host. If the job has not touched it yet, touches it. */
  #take(host: Host): Work | null {
    return this.touched.get(host) ?? this.#touch(host);
  }

  /** Returns the buckets that can take a chunk as a heap, so that a job that needs many hosts does not search all buckets for each of them. */
  #lineUp(chunk: Chunk, need: number): Line {
    const line: Line = [];
    for (const bucket of this.set.open) {
      const option = this.#optionIn(bucket, chunk, need);
      if (option !== null) heapPush(line, option, this.#isBefore);
    }
    return line;
  }

  /**
   * Does the same as #next, but takes the hosts from the heap that #lineUp has made. While the heap is in use, hosts only leave buckets. The fits were computed
   * for a larger need, which matters only for hosts that can take all of it.
   */
  #nextInLine(line: Line, chunk: Chunk, again: ReadonlySet<Work>, need: number): Work | null {
    let best = this.#bestOf(again, chunk, need);
    for (let top = line[0]; top !== undefined; top = line[0]) {
      const host = firstHost(top.bucket);
      if (host === undefined) heapPop(line, this.#isBefore);
      else if (host !== top.host) heapReplace(line, { ...top, host }, this.#isBefore);
      else {
        if (top.fit !== null && !this.#isApart && top.fit.copies >= need) return this.#nextBest(chunk, again, need);
        if (best === null || this.#isBefore(top, best)) best = top;
        break;
      }
    }
    return best === null ? null : this.#take(best.host);
  }

  #nextNamed(host: Host, chunk: Chunk, again: ReadonlySet<Work>): Work | null {
    const work = this.touched.get(host);
    if (work !== undefined) return again.has(work) ? work : null;
    return host.bucket !== null && this.#fitsBucket(host.bucket, chunk, host) ? this.#touch(host) : null;
  }

  /**
   * Does the same as #next for round_robin: looks at the hosts in order, beginning after the host used last and going round to the first one, and takes the
   * first host that can take the chunk. Each bucket is checked once.
   */
  #nextAround(chunk: Chunk, again: ReadonlySet<Work>, after: number): Work | null {
    const hosts = hostsInOrder(this.set);
    const fits = new Map<HostBucket, boolean>();
    const canTake = (host: Host): boolean => {
      const { bucket } = host;
      if (bucket === null) {
        const work = this.touched.get(host);
        return work !== undefined && again.has(work);
      }
      if (bucket.free_count === 0) return false;
      let fit = fits.get(bucket);
      if (fit === undefined) fits.set(bucket, (fit = this.#fitsBucket(bucket, chunk)));
      return fit;
    };
    const begin = firstAfter(hosts, after);
    for (let step = 0; step < hosts.length; step++) {
      const host = present(hosts[(begin + step) % hosts.length], "host");
      if (canTake(host)) return this.touched.get(host) ?? this.#touch(host);
    }
    return null;
  }

  /** Returns the host that a chunk names; undefined: it names none; null: the host is not in the set. */
  namedHost(chunk: Chunk): Host | null | undefined {
    if (chunk.vnode !== undefined) {
      const vnode = this.set.vnodes.get(chunk.vnode);
      if (vnode === undefined || (chunk.host !== undefined && vnode.host.name !== chunk.host)) return null;
      return this.set.hosts.get(vnode.host.name) ?? null;
    }
    return chunk.host === undefined ? undefined : (this.set.hosts.get(chunk.host) ?? null);
  }

  /**
   * Returns one host of each open bucket that the job may use, in the order of the walk. If the first host of a bucket cannot take all chunks, no host of the
   * bucket can.
   */
  #hostsInOrder(): Host[] {
    const firsts: Option[] = [];
    const whole = { ...present(this.request.chunks[0], "chunk"), amounts: this.request.totals, matches: [], levels: [] };
    for (const bucket of this.set.open) {
      const host = firstHost(bucket);
      if (host !== undefined && this.usable.of(bucket) !== null) firsts.push({ host, bucket, fit: this.#fitIn(bucket, host, whole, 1) });
    }
    return firsts.sort((a, b) => (this.#isBefore(a, b) ? -1 : 1)).map(({ host }) => host);
  }

  /** Takes a host out of its bucket for this job (touches it); null: the job may not use it. */
  #touch(host: Host): Work | null {
    const { bucket } = host;
    if (bucket === null) return null;
    const usable = this.usable.of(bucket, host);
    if (usable === null) return null;
    detach(this.set, host);
    const work: Work = {
      host,
      vnodes: host.vnodes,
      bucket,
      used: [...this.usable.usedOf(bucket)],
      usable,
      taken: bucket.states.map(() => false),
    };
    this.touched.set(host, work);
    return work;
  }

  // --- what fits

  /** Returns true if no host can take the chunk. Returns false for a suspended job that kept its cpus: it can resume although no cpu is free. */
  #isBeyond(chunk: Chunk): boolean {
    return this.request.keeps_cpus !== true && isBeyond(this.checks, this.set, chunk);
  }

  #fitsBucket(bucket: HostBucket, chunk: Chunk, host?: Host): boolean {
    const usable = this.usable.of(bucket, host);
    if (usable === null) return false;
    const states = this.usable.statesOf(bucket);
    if (states.length === 1) return copiesThatFit(this.checks, present(states[0], "state"), chunk, 1) > 0;
    const vnodes = (host ?? firstHost(bucket))?.vnodes ?? [];
    return fitsHost(this.checks, { vnodes, bucket, used: this.usable.usedOf(bucket), usable, taken: null }, chunk, this.#isVscatter);
  }

  #fitsWork(work: Work, chunk: Chunk): boolean {
    return fitsHost(this.checks, work, chunk, this.#isVscatter);
  }

  // --- taking amounts

  /** Puts up to `most` copies of a chunk on a host. Returns how many. */
  #putCopies(work: Work, chunk: Chunk, at: number, most: number): number {
    let copies = 0;
    for (const index of work.bucket.walk) {
      if (copies === most) return copies;
      if (!mayTake(work, index, chunk, this.#isVscatter)) continue;
      const level = {
        spec: present(work.bucket.states[index], "state").spec,
        used: present(work.used[index], "amounts"),
      };
      const here = copiesThatFit(this.checks, level, chunk, this.#isVscatter ? 1 : most - copies);
      for (let copy = 0; copy < here; copy++) this.#put(work, at, [{ at: index, amounts: chunk.amounts }]);
      copies += here;
    }
    while (!this.#isVscatter && copies < most && canSplit(this.checks, work, chunk)) {
      this.#put(work, at, splitChunk(this.checks, work, chunk));
      copies++;
    }
    return copies;
  }

  /** Puts one copy of the chunk number `at` on the vnodes of a host, split into parts. */
  #put(work: Work, at: number, parts: readonly { readonly at: number; readonly amounts: readonly Amount[] }[]): void {
    const pieces = parts.map(({ at: index, amounts }): Piece => {
      const used = [...present(work.used[index], "amounts")];
      work.used[index] = used;
      for (const { index: resource, amount } of amounts) used[resource] = amountAt(used, resource) + amount;
      work.taken[index] = true;
      return { vnode: present(work.vnodes[index], "vnode"), amounts };
    });
    present(this.#placed[at], "place").push(pieces);
  }
}

/** Returns the index of the first host behind a position in the order; the number of hosts if there is none. */
function firstAfter(hosts: readonly Host[], order: number): number {
  return firstPlace(hosts, (host) => host.order > order);
}
