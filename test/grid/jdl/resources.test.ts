// Resources of jobs: select and hierarchy are read, mapped to each type of cluster, or refused for it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type ClusterType, mapResources, readResources } from "#grid/jdl/resources.ts";

type Row = readonly [text: string, on: ClusterType, asked: string, cpus: number];
const MAPPED: readonly Row[] = [
  ["2:ncpus=4", "partita", "2:ncpus=4", 8],
  ["2:ncpus=4:mem=1gb+ncpus=2", "slurm", "2:ncpus=4:mem=1gb+ncpus=2", 10],
  ["3", "pbs", "3", 3],
  ["/nodes=2/core=4", "partita", "2:ncpus=4", 8],
  ["/nodes=2/core=4", "slurm", "2:ncpus=4", 8],
  ["/network_address=1/resource_id=2", "gridengine", "1:ncpus=2", 2],
  ["/resource_id=1", "pbs", "1:ncpus=1", 1],
  ["/core=6", "pbs", "6:ncpus=1", 6],
  ["/nodes=2/cpu=2/core=4", "partita", "2:ncpus=8", 16],
  ["/cpu=2/core=4", "partita", "2:ncpus=4", 8],
  ["/nodes=1/core=2+/nodes=1/core=4", "partita", "1:ncpus=2+1:ncpus=4", 6],
  ["/nodes=2/core=4", "oar", "/nodes=2/core=4", 8],
  ["{gpu='YES'}/switch=1/nodes=2", "oar", "{gpu='YES'}/switch=1/nodes=2", 2],
  ["/nodes=ALL", "oar", "/nodes=ALL", 1],
  ["2:ncpus=4", "oar", "/nodes=2/core=4", 8],
  ["8:ncpus=1", "oar", "/core=8", 8],
  ["ncpus=4:mpiprocs=4", "oar", "/nodes=1/core=4", 4],
  ["1:ncpus=2+2:ncpus=4", "oar", "/nodes=1/core=2+/nodes=2/core=4", 10],
];

for (const [text, on, asked, cpus] of MAPPED)
  test(`${text} on ${on} is ${asked}`, () => {
    const resources = readResources(text, null);
    assert.ok(typeof resources !== "string", String(resources));
    const mapped = mapResources(resources, { type: on, resource_unit: "core" }, null);
    assert.ok(typeof mapped !== "string", String(mapped));
    assert.deepEqual([mapped.kind === "select" ? mapped.select : mapped.resources, mapped.cpus], [asked, cpus]);
  });

const REFUSED: readonly [text: string, on: ClusterType, place: string | null, properties: string | null, why: RegExp][] = [
  ["/nodes=2", "partita", null, null, /name the cores/],
  ["/nodes=ALL/core=2", "partita", null, null, /nodes=ALL is known only to OAR/],
  ["{gpu='YES'}/core=2", "slurm", null, null, /condition \{gpu='YES'\}/],
  ["/switch=2/nodes=1/core=2", "partita", null, null, /switch at this place/],
  ["/core=2/nodes=2", "partita", null, null, /nodes at this place/],
  ["1:ncpus=1:ngpus=1", "oar", null, null, /the resource ngpus of a chunk/],
  ["2:ncpus=2", "oar", "scatter:excl", null, /exclusive hosts/],
  ["2:ncpus=2", "oar", "vscatter", null, /vscatter/],
  ["2:ncpus=2", "oar", "group=rack", null, /groups of hosts/],
  ["1:ncpus=1", "partita", null, "mem > 10", /only conditions name='value'/],
  ["1:ncpus=1:arch=x", "partita", null, "arch='y'", /arch is a resource of the select/],
];

for (const [text, on, place, properties, why] of REFUSED)
  test(`${text}${place === null ? "" : ` place=${place}`}${properties === null ? "" : ` where ${properties}`} is refused on ${on}`, () => {
    const resources = readResources(text, place);
    assert.ok(typeof resources !== "string", String(resources));
    const mapped = mapResources(resources, { type: on, resource_unit: "core" }, properties);
    assert.ok(typeof mapped === "string", JSON.stringify(mapped));
    assert.match(mapped, why);
  });

const UNREADABLE: readonly [text: string, place: string | null, why: RegExp][] = [
  ["", null, /neither a select/],
  ["0:ncpus=1", null, /neither a select/],
  ["1:ncpus=0", null, /from 1 to 999999/],
  ["1:ncpus=2:ncpus=3", null, /ncpus stands twice/],
  ["/", null, /a step such as nodes=2/],
  ["/nodes=0", null, /a step such as nodes=2/],
  ["/nodes=1/nodes=2", null, /nodes stands twice/],
  ["/nodes=1,walltime=1:0:0", null, /the key walltime sets it/],
  ["/core=1+core=2", null, /a hierarchy such as/],
  ["/core=1", "scatter", /place belongs to a select/],
  ["1", "here", /no place/],
];

for (const [text, place, why] of UNREADABLE)
  test(`${JSON.stringify(text)} cannot be read`, () => assert.match(String(readResources(text, place)), why));

test("properties outside of OAR are resources of each chunk", () => {
  const resources = readResources("2:ncpus=1+1", null);
  assert.ok(typeof resources !== "string");
  const mapped = mapResources(resources, { type: "pbs", resource_unit: "core" }, "arch='linux x' AND gen=3");
  assert.deepEqual(mapped, { kind: "select", select: '2:ncpus=1:arch="linux x":gen=3+1:arch="linux x":gen=3', place: null, cpus: 3 });
});

test("place=pack on OAR is one node with all cpus", () => {
  const resources = readResources("2:ncpus=2+ncpus=3", "pack");
  assert.ok(typeof resources !== "string");
  assert.deepEqual(mapResources(resources, { type: "oar", resource_unit: "core" }, null), {
    kind: "hierarchy",
    resources: "/nodes=1/core=7",
    cpus: 7,
  });
});
