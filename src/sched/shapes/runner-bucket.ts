// Which runners take which jobs (docs/runners.md): a runner takes the jobs of its bucket only. The key of a bucket is made by the same function as in the server.

import type { ResourceValue } from "#model/attribute.ts";
import { bucketOf } from "#model/request/bucket.ts";
import { BUILTIN_RESOURCES, type ResourceDef, type ResourceType } from "#model/resource-table.ts";
import type { SchedJob } from "#protocol/sched-link.ts";
import type { ResourceSpace } from "./resource-space.ts";
import type { Universe } from "./universe.ts";
import type { VnodeSpec } from "./vnode.ts";

type Known = { readonly resources: ReadonlyMap<string, ResourceDef>; readonly keys: Map<string, string | null> };
const known = new WeakMap<ResourceSpace, Known>();

/** The largest number of keys that are kept for later jobs. */
const KEYS_KEPT = 10_000;

/** Returns the key of the job's bucket; null: no runner can take the job. */
export function bucketKeyOf({ space }: Pick<Universe, "space">, job: SchedJob): string | null {
  let found = known.get(space);
  if (found === undefined) known.set(space, (found = { resources: definitions(space), keys: new Map() }));
  const { user, queue, project, schedselect, place, resources, backend_opts: options } = job;
  const asked = [user, queue, project, schedselect, place, resources["walltime"], options].join("\n");
  let key = found.keys.get(asked);
  if (key !== undefined) return key;
  if (found.keys.size >= KEYS_KEPT) found.keys.clear();
  const list: { readonly [name: string]: ResourceValue } = { ...resources, place };
  const bucket = bucketOf({ owner: user, queue, project, schedselect, list, options }, found.resources);
  key = "impossible" in bucket ? null : bucket.key;
  found.keys.set(asked, key);
  return key;
}

/** Returns whether a vnode is a runner that takes other jobs only. The vnodes of a job's reservation, and a suspended job's own, are given already. */
export function isOfOtherBucket(universe: Pick<Universe, "space">, { bucket }: Pick<VnodeSpec, "bucket">, job: SchedJob): boolean {
  return bucket !== undefined && job.resv === undefined && job.state !== "S" && bucketKeyOf(universe, job) !== bucket;
}

function definitions(space: ResourceSpace): ReadonlyMap<string, ResourceDef> {
  const all = new Map<string, ResourceDef>(BUILTIN_RESOURCES.map((def) => [def.name, def]));
  for (const { name, type, flags } of space.all.values())
    if (!all.has(name)) all.set(name, { name, type: type as ResourceType, flags, read: "all", set: "user" });
  return all;
}
