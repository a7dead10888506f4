// Names of node buckets for the log, such as `ncpus=16:accelerator=False`: the resources of a vnode that jobs request, and
// all boolean ones.

import { amountAt, amountText } from "../shapes/resource-space.ts";
import type { Universe } from "../shapes/universe.ts";
import type { VnodeSpec } from "../shapes/vnode.ts";

/** Returns one name for each distinct kind of vnode, in the order of definition. */
export function bucketNames(universe: Universe): Set<string> {
  const asked = new Set<string>();
  for (const { request } of universe.entries.values()) {
    for (const { index } of request.totals) asked.add(universe.space.consumed[index]?.name ?? "");
    for (const chunk of request.chunks) for (const { resource } of [...chunk.matches, ...chunk.levels]) asked.add(resource);
  }
  const names = new Set<string>();
  for (const set of universe.sets.values()) for (const spec of set.specs.keys()) names.add(nameOf(universe, spec, asked));
  return names;
}

function nameOf({ space, policy }: Universe, spec: VnodeSpec, asked: ReadonlySet<string>): string {
  const parts: string[] = [];
  for (const resource of space.all.values()) {
    if (resource.type === "boolean") {
      parts.push(`${resource.name}=${spec.matches.get(resource.name) === true ? "True" : "False"}`);
    } else if (asked.has(resource.name) && policy.resources.has(resource.name)) {
      const value = resource.index >= 0 ? amountText(resource, amountAt(spec.avail, resource.index)) : spec.matches.get(resource.name);
      if (value !== undefined) parts.push(`${resource.name}=${value}`);
    }
  }
  return parts.join(":");
}
