// What a job that gave up vnodes while it ran (release-nodes.ts N2) had at its start. It is kept beside what the job has now, under names that end in _orig.

import type { Attrs } from "../state/state.ts";

const KEPT = [
  ["exec_host", "exec_host_orig"],
  ["exec_vnode", "exec_vnode_orig"],
  ["schedselect", "schedselect_orig"],
  ["Resource_List", "Resource_List_orig"],
] as const;

/** What a job has now, as what it had at its start; nothing of a job of which that is kept already. */
export const originals = (attrs: Attrs): Attrs =>
  attrs["exec_vnode_orig"] === undefined ? Object.fromEntries(KEPT.map(([name, orig]) => [orig, attrs[name]])) : {};

/** The attributes of the job as its run began; those of now when it gave nothing up. */
export function attrsAtStart<A extends Attrs>(attrs: A): A {
  if (attrs["exec_vnode_orig"] === undefined) return attrs;
  return { ...attrs, ...Object.fromEntries(KEPT.map(([name, orig]) => [name, attrs[orig]])) };
}

/** What a job that goes back to its queue asks for again, and what it loses. */
export function askedAtStart(attrs: Attrs): { readonly set: Attrs; readonly unset: readonly string[] } {
  if (attrs["exec_vnode_orig"] === undefined) return { set: {}, unset: [] };
  return {
    set: { schedselect: attrs["schedselect_orig"], Resource_List: attrs["Resource_List_orig"] },
    unset: KEPT.map(([, orig]) => orig),
  };
}
