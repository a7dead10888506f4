// Running entries (jobs, and reservations whose period has begun) with their ends and the amounts of vnodes that they hold.
//
// K1. Every running job that has vnodes is in `running`, and so is every running reservation. What a reservation holds is
//     not counted again for its jobs.
// K2. The expected end of a running entry is in the future. If a job has passed its soft_walltime, its expected end moves by
//     the length of the soft_walltime, repeatedly, up to its walltime. After that it is always expected to end a second from
//     now.
// K7. `soft` contains every job that is expected to end earlier than it must end.

import { readExecVnode } from "#model/request/exec-vnode.ts";
import type { Place } from "#model/request/place.ts";
import type { Held, Holding, Running, RunningBook } from "./booking.ts";
import type { PlacedChunks } from "./placed.ts";
import type { Amount } from "./request.ts";
import type { ResourceSpace } from "./resource-space.ts";
import { amountOf } from "./resource-space.ts";
import type { Vnode } from "./vnode.ts";
import { sharingOn } from "./vnode-fit.ts";

/** Adds a running entry. It replaces an entry with the same id. */
export function addRunning(book: RunningBook, running: Running): void {
  removeRunning(book, running.id);
  book.running.set(running.id, running);
  if (running.soft_s !== undefined) book.soft.add(running.id);
  addEnd(book, running);
}

export function removeRunning(book: RunningBook, id: string): void {
  const running = book.running.get(id);
  if (running === undefined) return;
  book.running.delete(id);
  book.soft.delete(id);
  if (running.counted) book.freed_s = Math.max(book.freed_s, running.to_s);
  dropEnd(book, running);
}

function addEnd(book: RunningBook, running: Running): void {
  const last = book.ends.at(-1);
  if (last !== undefined && last.to_s > running.to_s) book.in_order = false;
  book.ends.push(running);
}

function dropEnd(book: RunningBook, running: Running): void {
  running.gone = true;
  book.gone_count++;
  if (book.gone_count > 64 && book.gone_count * 2 > book.ends.length) compact(book);
}

function compact(book: RunningBook): void {
  book.ends = book.ends.filter((running) => !running.gone);
  book.gone_count = 0;
}

/** Adds a running entry that is not among the `jobs` of vnodes. */
export function addBeside(book: RunningBook, running: Running): void {
  addRunning(book, running);
  for (const name of running.holding?.keys() ?? []) {
    const others = book.besides.get(name);
    if (others === undefined) book.besides.set(name, [running]);
    else others.push(running);
  }
}

export function removeBeside(book: RunningBook, id: string): void {
  const running = book.running.get(id);
  if (running === undefined) return;
  removeRunning(book, id);
  for (const name of running.holding?.keys() ?? []) {
    const others = (book.besides.get(name) ?? []).filter((other) => other !== running);
    if (others.length === 0) book.besides.delete(name);
    else book.besides.set(name, others);
  }
}

/**
 * Returns the running entries in the order of their ends. now_s: entries that should have ended by then get a later end
 * (K2); `extended` is called for each.
 */
export function sortEnds(book: RunningBook, now_s: number, extended: (running: Running) => void): readonly Running[] {
  const sort = (): void => {
    if (book.gone_count > 0) compact(book);
    if (!book.in_order) book.ends.sort((a, b) => a.to_s - b.to_s || (a.id < b.id ? -1 : 1));
    book.in_order = true;
  };
  sort();
  for (const running of book.ends) {
    if (running.to_s > now_s) break;
    if (running.to_s < running.last_s) {
      running.to_s = extension(running, now_s);
      book.in_order = false;
      extended(running);
    }
  }
  sort();
  return book.ends;
}

/** Returns the new expected end of an entry that should have ended: the first multiple of soft_walltime in the future. */
export function extension({ from_s, soft_s = 0, last_s, grace_s }: Running, now_s: number): number {
  if (soft_s <= 0) return last_s;
  const step_s = from_s + soft_s * (Math.floor((now_s - from_s) / soft_s) + 1);
  return step_s < last_s - grace_s ? step_s : last_s;
}

/** The to_s of an entry that must be ignored: it counts as ending now. */
export const LIFTED = Number.NEGATIVE_INFINITY;

/** Returns the expected end of an entry, as of now. */
export function endOf(running: Running, now_s: number): number {
  return running.to_s === LIFTED ? now_s : Math.max(running.to_s, now_s + 1);
}

/** Returns the ids of the jobs on a vnode. Other running entries there are in `besides`. */
export function jobsOn({ node: { jobs } }: Vnode): Iterable<string> {
  return jobs.length > 1 ? new Set(jobs) : jobs;
}

/** Returns the amounts that a running entry holds. */
export function holdingOf(space: ResourceSpace, running: Running): Holding {
  running.holding ??= readHolding(space, running.exec_vnode);
  return running.holding;
}

// --- amounts that are held

/** Returns whether two holdings have a vnode in common. */
export function meet(a: Holding, b: Holding): boolean {
  for (const name of a.keys()) if (b.has(name)) return true;
  return false;
}

/** Returns the amounts that placed chunks take. Equal pieces share one object, so that book() stores them once. */
export function holdingOfChunks(place: Place, chunks: PlacedChunks): Holding {
  const holding = new Map<string, Held>();
  let last: Held = { amounts: [], closes: undefined, own: true };
  for (const { vnode, amounts } of chunks.flat()) {
    const sharing = sharingOn(place, vnode.state.spec);
    const closes = sharing === "shared" ? undefined : "job-exclusive";
    const old = holding.get(vnode.name);
    if (old !== undefined) holding.set(vnode.name, { amounts: [...old.amounts, ...amounts], closes: old.closes ?? closes, own: true });
    else {
      if (last.amounts !== amounts || last.closes !== closes) last = { amounts, closes, own: true };
      holding.set(vnode.name, last);
    }
    if (sharing === "exclhost") closeHost(holding, vnode);
  }
  return holding;
}

function closeHost(holding: Map<string, Held>, vnode: Vnode): void {
  for (const other of vnode.host.vnodes) {
    if (other === vnode || other.state.spec.sharing === "ignore_excl") continue;
    const old = holding.get(other.name);
    holding.set(other.name, { amounts: old?.amounts ?? [], closes: "job-exclusive", own: old?.own ?? false });
  }
}

/**
 * Returns the amounts that an exec_vnode text takes. A text that cannot be read holds nothing. closes: the state word that
 * its vnodes then have; undefined: none.
 */
export function readHolding(space: ResourceSpace, exec_vnode: string, closes?: string): Holding {
  const holding = new Map<string, Held>();
  for (const { vnode, pairs } of (readExecVnode(exec_vnode) ?? []).flat()) {
    const amounts = pairs.flatMap(({ name, text }): Amount[] => {
      const resource = space.all.get(name);
      const amount = resource === undefined || resource.index < 0 ? null : amountOf(resource, text);
      return amount === null || resource === undefined ? [] : [{ index: resource.index, amount }];
    });
    holding.set(vnode, { amounts: [...(holding.get(vnode)?.amounts ?? []), ...amounts], closes, own: true });
  }
  return holding;
}
