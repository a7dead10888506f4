// The placement of a job: what it uses of each vnode. It is computed from exec_vnode and the resources and vnodes of the
// state. apply.ts (derived values) and the check of a run decision use it.
//
// I1. A job has a vnode exclusively if its place says excl or exclhost, or if the vnode's attribute sharing demands it.
//     Which of the two decides is in docs/reference/attributes.md 5, sharing.
// I2. A job with place exclhost is on every vnode of its hosts, except those with sharing ignore_excl. On a vnode that it
//     does not use, its amounts are empty. A mom may have vnodes of several hosts: as for schedulers, the resource `host`
//     says to which host a vnode belongs.
// I3. A suspended job keeps the resources that it has not released. If it has no resources_released, it has released all.

import { execHosts, execHostText, parseExecHost } from "#model/request/exec-host.ts";
import { type ExecVnode, parseExecVnode, type VnodePart } from "#model/request/exec-vnode.ts";
import { type Place, placeOf } from "#model/request/place.ts";
import type { ResourceDef } from "#model/resource-table.ts";
import { nth } from "#support/assert.ts";
import { addAmounts, amountOf, jobWideAmounts, partAmounts } from "./amounts.ts";
import { isSuspended } from "./job-phase.ts";
import type { JobAttrs, Placement, ResourceRecord, ServerState, Vnode } from "./state.ts";

/** What a job uses of a vnode. The record of amounts may be shared with other jobs. */
type Spot = { amounts: ReadonlyMap<string, number>; ncpus: number; exclusive: boolean };
type World = Pick<ServerState, "resources" | "vnodes" | "hosts">;

/** The placement of a job; null: the job is on no vnodes. */
export function placementOf(world: World, attrs: JobAttrs): Placement | null {
  if (attrs.exec_vnode === undefined || !hasVnodes(attrs)) return null;
  const exec = parseExecVnode(attrs.exec_vnode);
  const place = placeOf(attrs.Resource_List["place"]);
  const vnodes = spots(world, exec, place);
  const all_wide = jobWideAmounts(world.resources, attrs.Resource_List);
  const counted = !isSuspended({ attrs });
  const job_wide = counted ? all_wide : takeReleased(world, attrs, vnodes, all_wide);
  return { vnodes, chunk_slots: chunkSlots(attrs.exec_host), job_wide, counted };
}

/** What a job releases of each vnode when it is suspended, and takes again when it resumes. */
export function releasedSpots(world: World, attrs: JobAttrs): Map<string, Spot> {
  const { resources_released, exec_vnode = "" } = attrs;
  const place = placeOf(attrs.Resource_List["place"]);
  const text = typeof resources_released === "string" ? resources_released : exec_vnode;
  const released = spots(world, parseExecVnode(text), place);
  // Vnodes of which nothing was released are included, because the job may need them exclusively when it resumes.
  for (const [name, spot] of spots(world, parseExecVnode(exec_vnode), place))
    if (!released.has(name)) released.set(name, { ...spot, amounts: NOTHING, ncpus: 0 });
  return released;
}

/** Reduces the amounts on vnodes to those that a suspended job keeps, and returns the job-wide amounts that it keeps. */
function takeReleased(
  world: World,
  attrs: JobAttrs,
  vnodes: Map<string, Spot>,
  all_wide: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const { resources_released, resource_released_list } = attrs;
  const released = releasedSpots(world, attrs);
  for (const [name, spot] of vnodes) {
    const amounts = new Map(spot.amounts);
    addAmounts(amounts, released.get(name)?.amounts ?? NOTHING, -1);
    vnodes.set(name, { ...spot, amounts, ncpus: amounts.get("ncpus") ?? 0 });
  }
  if (resources_released === undefined) return NOTHING;
  const job_wide = new Map(all_wide);
  for (const name of Object.keys((resource_released_list as ResourceRecord | undefined) ?? {})) job_wide.delete(name);
  return job_wide;
}
const NOTHING: ReadonlyMap<string, number> = new Map();

/** The chunk indexes that an exec_host names. */
function chunkSlots(exec_host: string | undefined): Placement["chunk_slots"] {
  return exec_host === undefined ? [] : parseExecHost(exec_host);
}

/** The exec_host of a job that is about to run. Its chunks get the lowest indexes that are free on their hosts (docs/reference/execution.md 3). */
export function execHost(state: Pick<ServerState, "vnodes" | "chunk_slots">, exec: ExecVnode): string {
  const only = onlyPart(exec);
  const vnode = only === null ? undefined : state.vnodes.get(only.vnode);
  if (only !== null && vnode !== undefined && !state.chunk_slots.has(hostOf(vnode))) {
    const ncpus = Number(only.pairs.find(({ name }) => name === "ncpus")?.text ?? 0);
    return execHostText([{ host: hostOf(vnode), slot: 0, ncpus }]);
  }
  const host = (name: string): string => {
    const vnode = state.vnodes.get(name);
    return vnode === undefined ? name : hostOf(vnode);
  };
  const taken = (name: string): ReadonlySet<number> => {
    const slots = state.chunk_slots.get(name);
    return slots === undefined ? NO_SLOTS : new Set(slots.flatMap((id, slot) => (id === "" ? [] : [slot])));
  };
  return execHostText(execHosts(exec, host, taken));
}

const NO_SLOTS: ReadonlySet<number> = new Set();

/** Whether the job is on vnodes: it is running, exiting or suspended. A job array is not, because its subjobs are. */
export const hasVnodes = ({ job_state }: JobAttrs): boolean => "RESU".includes(job_state);

/** The part of an exec_vnode that has just one part; null: it has several. */
const onlyPart = (exec: ExecVnode): VnodePart | null => (exec.length === 1 && exec[0]?.length === 1 ? nth(exec[0], 0) : null);

/** What an exec_vnode uses of each vnode, by name of the vnode. */
export function spots(world: World, exec: ExecVnode, place: Place): Map<string, Spot> {
  const found = new Map<string, Spot>();
  const only = onlyPart(exec);
  if (only !== null) {
    const vnode = world.vnodes.get(only.vnode);
    const amounts = partAmounts(world.resources, only.pairs);
    if (amounts !== null && (vnode === undefined || !takesWholeHost(vnode, place)))
      return found.set(only.vnode, { amounts, ncpus: amounts.get("ncpus") ?? 0, exclusive: isExclusive(vnode, place) });
  }
  const spotOf = (name: string): Spot => {
    let spot = found.get(name);
    if (spot === undefined) {
      spot = { amounts: NOTHING, ncpus: 0, exclusive: isExclusive(world.vnodes.get(name), place) };
      found.set(name, spot);
    }
    return spot;
  };
  /** resources with flag f that were counted already on some vnode */
  const once = new Set<string>();
  for (const part of exec.flat()) {
    const spot = spotOf(part.vnode);
    const amounts = new Map(spot.amounts);
    addAmounts(amounts, partAmounts(world.resources, part.pairs) ?? firstAmounts(world.resources, part, once), 1);
    spot.amounts = amounts;
    spot.ncpus = amounts.get("ncpus") ?? 0;
  }
  /** hosts that were handled: each is handled once, because a job may use thousands of vnodes of one host */
  const taken = new Set<string>();
  for (const name of [...found.keys()]) {
    const vnode = world.vnodes.get(name);
    if (vnode === undefined || !takesWholeHost(vnode, place)) continue;
    const host = `${hostOf(vnode)} ${placedHost(vnode)}`;
    if (taken.has(host)) continue;
    taken.add(host);
    for (const other of hostVnodes(world, vnode)) spotOf(other).exclusive = true;
  }
  return found;
}

/** The amounts that a part consumes on its vnode: of resources with flag n; of those with flag f only on the first vnode of the job that has them. */
function firstAmounts(resources: ReadonlyMap<string, ResourceDef>, part: VnodePart, once: Set<string>): ReadonlyMap<string, number> {
  const amounts = new Map<string, number>();
  for (const { name, text } of part.pairs) {
    const def = resources.get(name);
    if (def === undefined || !(def.flags.includes("n") || (def.flags.includes("f") && !once.has(name)))) continue;
    if (def.flags.includes("f")) once.add(name);
    const amount = amountOf(def, text);
    if (amount !== null && amount !== 0) amounts.set(name, amount);
  }
  return amounts;
}

export function isExclusive(vnode: Vnode | undefined, place: Place): boolean {
  const sharing = vnode?.attrs["sharing"];
  if (sharing === "ignore_excl") return false;
  if (sharing === "force_excl" || sharing === "force_exclhost") return true;
  if (place.sharing !== undefined) return place.sharing !== "shared";
  return sharing === "default_excl" || sharing === "default_exclhost";
}

function takesWholeHost(vnode: Vnode, place: Place): boolean {
  const sharing = vnode.attrs["sharing"];
  if (sharing === "ignore_excl") return false;
  if (sharing === "force_exclhost" || place.sharing === "exclhost") return true;
  return sharing === "default_exclhost" && place.sharing === undefined;
}

/** The vnodes that a job gets when it takes the whole host of a vnode: all of that host, except those with sharing ignore_excl. */
function hostVnodes(world: Pick<World, "vnodes" | "hosts">, vnode: Vnode): string[] {
  const there = world.hosts.get(hostOf(vnode));
  if (there === undefined || there.size < 2) return there === undefined ? [] : [...there];
  const host = placedHost(vnode);
  return [...there].filter((name) => {
    const other = world.vnodes.get(name);
    return other !== undefined && other.attrs["sharing"] !== "ignore_excl" && placedHost(other) === host;
  });
}

/** The host of a vnode for placement: its resource `host`; if there is none, the host of its mom. */
export function placedHost(vnode: Vnode): string {
  const host = (vnode.attrs["resources_available"] as { readonly [resource: string]: unknown } | undefined)?.["host"];
  return typeof host === "string" ? host : hostOf(vnode);
}

/** The host of the vnode's mom: the first name in its attribute Mom. */
export function hostOf(vnode: { readonly name: string; readonly attrs: { readonly [name: string]: unknown } }): string {
  const mom = vnode.attrs["Mom"];
  const host = Array.isArray(mom) ? mom[0] : mom;
  return typeof host === "string" && host !== "" ? host : vnode.name;
}
