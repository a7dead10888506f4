// Reads the resources of a job, which are written as a PBS select or as a hierarchy of OAR, and translates them into the form that a cluster understands. Pure.
//
// R1. A text that begins with / or { is a hierarchy; every other text is a select.
// R2. `/nodes=N/core=C` is N chunks of C cpus. On OAR these are on N hosts; elsewhere two chunks may share a host that is large enough.
// R3. If a part of the request cannot be expressed on a cluster, the request is refused for that cluster. No part is dropped silently.

import { readPlace } from "#model/request/place.ts";
import { pairOf, readSelect, type Select, type SelectChunk, selectText } from "#model/request/select.ts";

export type ClusterType = "partita" | "pbs" | "slurm" | "gridengine" | "oar";

/** The request that a cluster gets for each job. cpus: the resources that one job takes, as the planner counts them. place null: none was given. */
export type ClusterRequest =
  | { readonly kind: "select"; readonly select: string; readonly place: string | null; readonly cpus: number }
  | { readonly kind: "hierarchy"; readonly resources: string; readonly cpus: number };

/** One step of a hierarchy: the number of different values of a property that is wanted. */
type Level = { readonly property: string; readonly count: number | "ALL" | "BEST" };
/** A branch of a hierarchy. filter: a condition of OAR on the properties of resources, which is written in braces; null: no condition. */
type Branch = { readonly filter: string | null; readonly levels: readonly Level[] };

export type JobResources =
  | { readonly kind: "select"; readonly select: Select; readonly place: string | null }
  | { readonly kind: "hierarchy"; readonly text: string; readonly branches: readonly Branch[] };

/** Reads resources. Returns a text that says what is wrong if they cannot be read. */
export function readResources(text: string, place: string | null): JobResources | string {
  if (/^\s*[/{]/.test(text)) {
    if (place !== null) return "place belongs to a select, not to a hierarchy of resources";
    const branches = readHierarchy(text.trim());
    return typeof branches === "string" ? branches : { kind: "hierarchy", text: text.trim(), branches };
  }
  const select = readSelect(text);
  if (select === null) return `neither a select (2:ncpus=4) nor a hierarchy of resources (/nodes=2/core=4): ${JSON.stringify(text)}`;
  if (place !== null && readPlace(place) === null) return `no place: ${JSON.stringify(place)}`;
  const fault = select.chunks.map(chunkFault).find((each) => each !== null);
  return fault ?? { kind: "select", select, place };
}

function chunkFault({ pairs }: SelectChunk): string | null {
  const names = new Set<string>();
  for (const { name, text } of pairs) {
    if (names.has(name)) return `${name} stands twice in one chunk`;
    names.add(name);
    if (name === "ncpus" && !/^[1-9][0-9]{0,5}$/.test(text)) return `ncpus=${text}: a number from 1 to 999999 is expected`;
  }
  return null;
}

const LEVEL = /^([A-Za-z_][A-Za-z0-9_]{0,63})=([1-9][0-9]{0,5}|ALL|BEST)$/;

/** Reads `[{filter}]/property=N[/property=N...][+...]`. */
function readHierarchy(text: string): readonly Branch[] | string {
  if (/,\s*walltime\s*=/.test(text)) return "the walltime is not a part of resources; the key walltime sets it";
  const branches: Branch[] = [];
  for (const part of splitOutside(text, "+")) {
    const [, filter, path = ""] = /^\s*(?:\{([^{}]*)\})?\s*(\/.*?)\s*$/s.exec(part) ?? [];
    if (path === "") return `a hierarchy such as /nodes=2/core=4 is expected in place of ${JSON.stringify(part)}`;
    const levels: Level[] = [];
    for (const step of path.slice(1).split("/")) {
      const [, property, count] = LEVEL.exec(step.trim()) ?? [];
      if (property === undefined || count === undefined) return `a step such as nodes=2 is expected in place of ${JSON.stringify(step)}`;
      if (levels.some((level) => level.property === property)) return `${property} stands twice in one hierarchy`;
      levels.push({ property, count: count === "ALL" || count === "BEST" ? count : Number(count) });
    }
    branches.push({ filter: filter ?? null, levels });
  }
  return branches;
}

/** Splits a text at a character, except where the character is within braces or quotes. */
function splitOutside(text: string, at: string): string[] {
  const parts: string[] = [""];
  let depth = 0;
  let isQuoted = false;
  for (const char of text) {
    if (char === "'") isQuoted = !isQuoted;
    else if (!isQuoted && char === "{") depth++;
    else if (!isQuoted && char === "}") depth--;
    if (char === at && depth === 0 && !isQuoted) parts.push("");
    else parts[parts.length - 1] += char;
  }
  return parts;
}

/** A cluster as the mapping sees it. resource_unit: the property of OAR that stands for one cpu. */
export type MappedCluster = { readonly type: ClusterType; readonly resource_unit: string };

/** Maps resources to a cluster. properties: a condition on the properties of resources; null: none. Returns a text that says why if they cannot be mapped. */
export function mapResources(resources: JobResources, cluster: MappedCluster, properties: string | null): ClusterRequest | string {
  if (cluster.type === "oar") {
    if (resources.kind === "hierarchy") return { kind: "hierarchy", resources: resources.text, cpus: cpusOfHierarchy(resources.branches) };
    return hierarchyOf(resources, cluster.resource_unit);
  }
  const mapped = resources.kind === "select" ? resources : selectOf(resources.branches);
  if (typeof mapped === "string") return mapped;
  const select = properties === null ? mapped.select : withProperties(mapped.select, properties);
  if (typeof select === "string") return select;
  return { kind: "select", select: selectText(select), place: mapped.place, cpus: cpusOfSelect(select) };
}

/** Properties of OAR that name a host, and properties of OAR that stand for cpus within a host. */
const HOSTS = new Set(["nodes", "network_address", "host"]);
const CPUS = new Set(["core", "resource_id", "thread"]);
const SOCKET = "cpu";

/** Returns a select that is equal to a hierarchy: `/nodes=N/core=C` becomes N chunks of C cpus. Returns a text that says why if there is no such select. */
function selectOf(branches: readonly Branch[]): { readonly select: Select; readonly place: string | null } | string {
  const chunks: SelectChunk[] = [];
  for (const { filter, levels } of branches) {
    if (filter !== null) return `the condition {${filter}} on resources is known only to OAR`;
    let hosts: number | null = null;
    let cpus: number | null = null;
    let groups = 1;
    for (const { property, count } of levels) {
      if (typeof count === "string") return `${property}=${count} is known only to OAR`;
      if (HOSTS.has(property) && hosts === null && cpus === null && groups === 1) hosts = count;
      else if (property === SOCKET && cpus === null) groups = count;
      else if (CPUS.has(property) && cpus === null) cpus = count;
      else return `/${levels.map((level) => `${level.property}=${level.count}`).join("/")}: ${property} at this place is known only to OAR`;
    }
    if (cpus === null)
      return "a hierarchy without core or resource_id asks for whole hosts or sockets, whose number of cpus differs; name the cores";
    if (hosts === null) chunks.push(cpuChunk(groups > 1 ? groups : cpus, groups > 1 ? cpus : 1));
    else chunks.push(cpuChunk(hosts, groups * cpus));
  }
  return { select: { chunks }, place: null };
}

const cpuChunk = (count: number, ncpus: number): SelectChunk => ({ count, pairs: [pairOf("ncpus", String(ncpus))] });

/** Returns a hierarchy that is equal to a select. Returns a text that says why if there is no such hierarchy. */
function hierarchyOf({ select, place }: { readonly select: Select; readonly place: string | null }, unit: string): ClusterRequest | string {
  const placed = place === null ? null : readPlace(place);
  const arrangement = placed?.arrangement ?? "free";
  if (placed?.sharing !== undefined && placed.sharing !== "shared")
    return `place=${place}: exclusive hosts have no equal in a hierarchy of resources`;
  if (placed?.group !== undefined) return `place=${place}: groups of hosts have no equal in a hierarchy of resources`;
  if (arrangement === "vscatter") return `place=${place} has no equal in a hierarchy of resources`;
  for (const { pairs } of select.chunks)
    for (const { name } of pairs)
      if (name !== "ncpus" && name !== "mpiprocs" && name !== "ompthreads")
        return `the resource ${name} of a chunk has no equal in a hierarchy of resources`;
  const cpus = cpusOfSelect(select);
  if (arrangement === "pack") return { kind: "hierarchy", resources: `/nodes=1/${unit}=${cpus}`, cpus };
  const branches = select.chunks.map((chunk) => {
    const each = cpusOfChunk(chunk);
    const count = chunk.count ?? 1;
    return each === 1 && arrangement === "free" ? `/${unit}=${count}` : `/nodes=${count}/${unit}=${each}`;
  });
  if (arrangement === "scatter" && branches.length > 1)
    return "place=scatter with different chunks has no equal in a hierarchy of resources";
  return { kind: "hierarchy", resources: branches.join("+"), cpus };
}

const cpusOfChunk = ({ pairs }: SelectChunk): number => Number(pairs.find(({ name }) => name === "ncpus")?.text ?? 1);

const cpusOfSelect = ({ chunks }: Select): number => chunks.reduce((sum, chunk) => sum + (chunk.count ?? 1) * cpusOfChunk(chunk), 0);

/** Returns the resources of a hierarchy, counted as the product of its steps. A step without a number counts as one. */
function cpusOfHierarchy(branches: readonly Branch[]): number {
  const product = ({ levels }: Branch): number => levels.reduce((sum, { count }) => (typeof count === "number" ? sum * count : sum), 1);
  return branches.reduce((sum, branch) => sum + product(branch), 0);
}

const PROPERTY = /^\s*([A-Za-z][A-Za-z0-9_]*)\s*=\s*(?:'([^']*)'|([A-Za-z0-9_.-]+))\s*$/;

/** Adds properties `name='value' and name2=value2` to each chunk of a select. Returns a text that says why if this cannot be done. */
function withProperties(select: Select, properties: string): Select | string {
  const pairs: [string, string][] = [];
  for (const part of properties.split(/\s+and\s+/i)) {
    const [, name, quoted, bare] = PROPERTY.exec(part) ?? [];
    if (name === undefined)
      return `properties: only conditions name='value', joined by "and", can be asked for outside of OAR; this is ${JSON.stringify(part)}`;
    pairs.push([name, quoted ?? bare ?? ""]);
  }
  const chunks: SelectChunk[] = [];
  for (const chunk of select.chunks) {
    const taken = chunk.pairs.find(({ name }) => pairs.some(([property]) => property === name));
    if (taken !== undefined) return `properties: ${taken.name} is a resource of the select, too`;
    chunks.push({ count: chunk.count, pairs: [...chunk.pairs, ...pairs.map(([name, text]) => pairOf(name, text))] });
  }
  return { chunks };
}
