// Derives the words of a vnode's state that follow from its jobs and reservations. All other words are set by administrators
// and moms.

import { listOf } from "#model/attribute-reader.ts";
import { inOrder } from "#model/values/node-state.ts";
import type { Changes } from "./changes.ts";
import type { Vnode } from "./state.ts";

/**
 * The derived words of a vnode's state. job-exclusive: a job has the vnode exclusively; else job-busy: jobs use all cpus.
 * resv-exclusive: a reservation has the vnode exclusively now.
 */
export function derivedStates(vnode: Vnode): readonly string[] {
  const words: string[] = [];
  for (const { exclusive } of vnode.resvs.values()) if (exclusive) words[0] = "resv-exclusive";
  if (vnode.jobs.size === 0) return words;
  for (const { exclusive } of vnode.jobs.values()) if (exclusive) return words.length === 0 ? JOB_EXCLUSIVE : ["job-exclusive", ...words];
  const available = (vnode.attrs["resources_available"] as ResourceRecordOrNothing)?.["ncpus"];
  const ncpus = typeof available === "number" ? available : 0;
  // Cpus are counted by slots and not by resources_assigned, where reservations count even without jobs. The last slot of the list is never free, so a list
  // shorter than ncpus means that a cpu is free.
  if (vnode.slots.length === 0 || vnode.slots.length < ncpus) return words;
  let used = 0;
  for (const id of vnode.slots) if (id !== "") used++;
  if (used < ncpus) return words;
  return words.length === 0 ? JOB_BUSY : ["job-busy", ...words];
}
/** The states of most vnodes in use. The vnodes share these lists. */
const JOB_EXCLUSIVE: readonly string[] = ["job-exclusive"];
const JOB_BUSY: readonly string[] = ["job-busy"];
type ResourceRecordOrNothing = { readonly [resource: string]: unknown } | undefined;

const DERIVED: ReadonlySet<string> = new Set(["job-busy", "job-exclusive", "resv-exclusive"]);
export const isDerived = (word: string): boolean => DERIVED.has(word);

/** Sets the derived words of a vnode's state. changes: null while the state is loaded. */
export function refreshVnode(vnode: Vnode, changes: Changes | null): void {
  const states = listOf(vnode.attrs, "state");
  const derived = derivedStates(vnode);
  const next = states.every(isDerived) ? derived : inOrder([...states.filter((word) => !isDerived(word)), ...derived]);
  if (next.length === states.length && next.every((word, at) => word === states[at])) return;
  vnode.attrs = changes === null ? { ...vnode.attrs, state: next } : { ...vnode.attrs, state: next, last_state_change_time: changes.now_s };
  // No row is written: after a restart the server computes these words again, and all states change anyway (moms/host-vnodes.ts allUnknown).
  changes?.told.vnodes.add(vnode.name);
}
