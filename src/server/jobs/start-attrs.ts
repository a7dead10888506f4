// The attributes that a job had at the start of its run, if it has given up vnodes since (release-nodes.ts N2). They
// are kept beside the present attributes, under names that end in _orig.

import type { Attrs } from "../state/state.ts";

const KEPT = [
  ["exec_host", "exec_host_orig"],
  ["exec_vnode", "exec_vnode_orig"],
  ["schedselect", "schedselect_orig"],
  ["Resource_List", "Resource_List_orig"],
] as const;

/** The present attributes under the _orig names, except those that are kept already. */
export const originals = (attrs: Attrs): Attrs =>
  attrs["exec_vnode_orig"] === undefined ? Object.fromEntries(KEPT.map(([name, orig]) => [orig, attrs[name]])) : {};

/** The attributes of the job at the start of its run; if the job has released nothing since, these are the present ones. */
export function attrsAtStart<A extends Attrs>(attrs: A): A {
  if (attrs["exec_vnode_orig"] === undefined) return attrs;
  return { ...attrs, ...Object.fromEntries(KEPT.map(([name, orig]) => [name, attrs[orig]])) };
}

/** The attributes that a job requests again when it is requeued, and the names it loses. */
export function askedAtStart(attrs: Attrs): { readonly set: Attrs; readonly unset: readonly string[] } {
  if (attrs["exec_vnode_orig"] === undefined) return { set: {}, unset: [] };
  return {
    set: { schedselect: attrs["schedselect_orig"], Resource_List: attrs["Resource_List_orig"] },
    unset: KEPT.map(([, orig]) => orig),
  };
}
