// The attributes that a job had at the start of its run, for jobs that have given up vnodes since then (release-nodes.ts
// N2). They are kept beside the present attributes, under names that end in _orig.

import type { Attrs } from "../state/state.ts";

const KEPT = [
  ["exec_host", "exec_host_orig"],
  ["exec_vnode", "exec_vnode_orig"],
  ["schedselect", "schedselect_orig"],
  ["Resource_List", "Resource_List_orig"],
] as const;

/** The present attributes under their _orig names; empty if the attributes of the start are kept already. */
export const originals = (attrs: Attrs): Attrs =>
  attrs["exec_vnode_orig"] === undefined ? Object.fromEntries(KEPT.map(([name, orig]) => [orig, attrs[name]])) : {};

/** The attributes that the job had at the start of its run. If the job has released no vnodes since then, they are the present attributes. */
export function attrsAtStart<A extends Attrs>(attrs: A): A {
  if (attrs["exec_vnode_orig"] === undefined) return attrs;
  return { ...attrs, ...Object.fromEntries(KEPT.map(([name, orig]) => [name, attrs[orig]])) };
}

/** Changes of the attributes of a requeued job: it requests again what it had at its start (set), and loses the _orig names (unset). */
export function askedAtStart(attrs: Attrs): { readonly set: Attrs; readonly unset: readonly string[] } {
  if (attrs["exec_vnode_orig"] === undefined) return { set: {}, unset: [] };
  return {
    set: { schedselect: attrs["schedselect_orig"], Resource_List: attrs["Resource_List_orig"] },
    unset: KEPT.map(([, orig]) => orig),
  };
}
