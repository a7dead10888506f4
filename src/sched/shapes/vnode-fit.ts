// Decides whether a job may use a vnode, whether a chunk fits there, and if not, why. These functions search and change
// nothing.

import type { Place, Sharing } from "#model/request/place.ts";
import type { SchedJob, Why } from "#protocol/sched-link.ts";
import type { Policy } from "./policy.ts";
import type { Chunk, Request } from "./request.ts";
import type { ResourceSpace } from "./resource-space.ts";
import { amountAt, amountText, matchedText } from "./resource-space.ts";
import type { VnodeSpec, VnodeState } from "./vnode.ts";

/** A vnode's spec, and the amounts that are taken of the vnode while a job is being placed. */
export type Level = { readonly spec: VnodeSpec; readonly used: readonly number[] };

/** Says which resources are checked: by name (policy.resources) and by index. `space` gives the resources their indexes. */
export type Checks = {
  readonly space: ResourceSpace;
  readonly policy: Policy;
  /** by resource index: whether the resource is checked */
  readonly checked: readonly boolean[];
};

export function checksOf(space: ResourceSpace, policy: Policy): Checks {
  return { space, policy, checked: space.consumed.map(({ name }) => policy.resources.has(name)) };
}

/** Returns how a job uses a vnode: as its place requests, unless the vnode's `sharing` decides otherwise. */
export function sharingOn(place: Place, spec: VnodeSpec): Sharing {
  switch (spec.sharing) {
    case "ignore_excl":
      return "shared";
    case "force_excl":
      return place.sharing === "exclhost" ? "exclhost" : "excl";
    case "force_exclhost":
      return "exclhost";
    case "default_excl":
      return place.sharing ?? "excl";
    case "default_exclhost":
      return place.sharing ?? "exclhost";
    default:
      return place.sharing ?? "shared";
  }
}

/** The numbers of jobs that a vnode's limits by user and by group count. */
export type OwnerCounts = { readonly user: number; readonly group: number };

/** Returns why a job cannot use a vnode, whatever it requests there; null: it can. host: the states of all vnodes of the host. */
export function ineligible(request: Request, state: VnodeState, host: readonly VnodeState[], counts: () => OwnerCounts): Why | null {
  const { spec } = state;
  const shut = shutOut(request, state, host);
  if (shut !== null) return shut;
  if (state.busy === true && request.keeps_cpus !== true) return { code: "INVALID_NODE_STATE", module: "placement", where: "job-busy" };
  if (spec.max_running !== undefined && state.jobs >= spec.max_running) return { code: "NODE_JOB_LIMIT", module: "placement" };
  if (spec.max_user_run !== undefined && counts().user >= spec.max_user_run) return { code: "NODE_USER_LIMIT", module: "placement" };
  if (spec.max_group_run !== undefined && counts().group >= spec.max_group_run) return { code: "NODE_GROUP_LIMIT", module: "placement" };
  return null;
}

/** Returns why a reservation cannot use a vnode; null: it can. Limits on jobs do not apply to it. */
export function ineligibleForResv(request: Request, state: VnodeState, host: readonly VnodeState[]): Why | null {
  return state.spec.resv_enable ? shutOut(request, state, host) : { code: "NODE_RESV_ENABLE", module: "placement" };
}

/** Returns a reason from the state of the vnode or from the jobs on it; null: there is none. */
function shutOut(request: Request, state: VnodeState, host: readonly VnodeState[]): Why | null {
  const { spec } = state;
  const closed = state.closed !== undefined && !(request.keeps_cpus === true && state.closed === "job-busy");
  if (closed) return { code: "INVALID_NODE_STATE", module: "placement", where: state.closed as string };
  const sharing = sharingOn(request.place, spec);
  const inUse =
    sharing === "exclhost" ? spec.crowded || host.some((other) => other.jobs > 0 && other.spec.sharing !== "ignore_excl") : state.jobs > 0;
  if (sharing !== "shared" && inUse) return { code: "NODE_NOT_EXCL", module: "placement", where: "Job" };
  if (spec.no_multinode_jobs && request.chunk_count > 1 && request.place.arrangement !== "pack")
    return { code: "NODE_NO_MULT_JOBS", module: "placement" };
  return null;
}

/** Returns how many copies of a chunk fit, at most `most`. */
export function copiesThatFit(checks: Checks, level: Level, chunk: Chunk, most: number): number {
  if (!matchesAll(checks, level.spec, chunk)) return 0;
  let copies = most;
  for (const { index, amount } of chunk.amounts) {
    if (amount <= 0 || checks.checked[index] !== true) continue;
    const left = amountAt(level.spec.avail, index) - amountAt(level.used, index);
    if (left < amount) return 0;
    if (copies * amount > left) copies = Math.floor(left / amount);
  }
  return copies;
}

export function isChecked({ checked }: Checks, index: number): boolean {
  return checked[index] === true;
}

/** Returns whether a vnode has the values that a chunk requires, and enough of the resources that are only compared. */
export function matchesAll(checks: Checks, spec: VnodeSpec, chunk: Chunk): boolean {
  for (const match of chunk.matches) if (isMatchChecked(checks, match) && !matchesValue(checks.space, spec, match)) return false;
  for (const { resource, amount } of chunk.levels) {
    if (checks.policy.resources.has(resource) && amount > (spec.levels.get(resource) ?? 0)) return false;
  }
  return true;
}

/** Returns whether a value is checked. Booleans are always checked, other values only if sched_config names their resource. */
export function isMatchChecked({ policy }: Checks, { resource, value }: Chunk["matches"][number]): boolean {
  return typeof value === "boolean" || policy.resources.has(resource);
}

/** Returns whether a vnode has a value. An unset boolean is False; a string_array has the value if one of its elements equals it. */
export function matchesValue(space: ResourceSpace, spec: VnodeSpec, { resource, value }: Chunk["matches"][number]): boolean {
  const have = spec.matches.get(resource);
  if (typeof value === "boolean") return (have === true) === value;
  if (have === undefined) return false;
  return space.all.get(resource)?.type === "string_array" ? String(have).split(",").includes(value) : have === value;
}

/** Returns the first thing that a vnode lacks for a chunk: a value that differs, then an amount that is too small. null: the chunk fits. */
export function lackOf(checks: Checks, level: Level, chunk: Chunk): Why | null {
  const { space, policy } = checks;
  for (const match of chunk.matches) {
    if (isMatchChecked(checks, match) && !matchesValue(space, level.spec, match)) {
      const have =
        typeof match.value === "boolean" ? (level.spec.matches.get(match.resource) ?? false) : level.spec.matches.get(match.resource);
      return mismatch(match.resource, matchedText(match.value), matchedText(have));
    }
  }
  for (const { resource, amount } of chunk.levels) {
    const have = level.spec.levels.get(resource) ?? 0;
    if (policy.resources.has(resource) && amount > have) return shortage(space, resource, { want: amount, have, total: have });
  }
  for (const { index, amount } of chunk.amounts) {
    const total = amountAt(level.spec.avail, index);
    const have = total - amountAt(level.used, index);
    if (isChecked(checks, index) && amount > have) return shortage(space, space.consumed[index]?.name ?? "", { want: amount, have, total });
  }
  return null;
}

export function mismatch(resource: string, want: string, have: string): Why {
  return { code: "INSUFFICIENT_RESOURCE", module: "placement", resource, want, have };
}

export function shortage(
  space: ResourceSpace,
  resource: string,
  amounts: { readonly want: number; readonly have: number; readonly total: number },
): Why {
  const of = space.all.get(resource);
  return {
    code: "INSUFFICIENT_RESOURCE",
    module: "placement",
    resource,
    want: amountText(of, amounts.want),
    have: amountText(of, amounts.have),
    total: amountText(of, amounts.total),
  };
}

/** Counts the jobs on a vnode that belong to the user and to the group of a job. */
export function ownerCounts(jobs: Iterable<SchedJob>, job: SchedJob): OwnerCounts {
  let [user, group] = [0, 0];
  for (const other of jobs) {
    if (other.user === job.user) user++;
    if (other.group === job.group) group++;
  }
  return { user, group };
}
