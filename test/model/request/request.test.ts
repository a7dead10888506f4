// Submissions: the Resource_List and schedselect that -l gives (as recorded), refusals with their texts, and changes by qalter.

import assert from "node:assert/strict";
import { test } from "node:test";
import { attributeOf, type ResourceValue } from "#model/attribute.ts";
import { alterRequest, type RequestDefaults, resolveRequest } from "#model/request/job-request.ts";
import { parsePlace, placeText } from "#model/request/place.ts";
import { chunkCount, parseSelect, selectText, typedChunks } from "#model/request/select.ts";
import { builtinResources, customResource } from "#model/resource-table.ts";
import { JOB_ATTRIBUTES } from "#model/tables/job-attributes.ts";
import { listedResource, parseListedValue, renderResourceList } from "#model/values/resource-list.ts";
import { refusal } from "../refusal.ts";

const resources = builtinResources();
resources.set("r_long", customResource("r_long", "long", "hn"));
resources.set("fast", customResource("fast", "boolean", "h"));
resources.set("color", customResource("color", "string", "h"));
resources.set("license", customResource("license", "long", "q"));
const RESOURCE_LIST = attributeOf(JOB_ATTRIBUTES, "Resource_List");
const FRESH: RequestDefaults = { queue: {}, server: { resources_default: { ncpus: 1 }, default_chunk: { ncpus: 1 } } };

/** `ncpus=4 mem=1gb` typed */
function asked(words: string): { [resource: string]: ResourceValue } {
  const list: { [resource: string]: ResourceValue } = {};
  for (const word of words.split(" ").filter((text) => text !== "")) {
    const name = word.slice(0, word.indexOf("="));
    list[name] = parseListedValue(RESOURCE_LIST, listedResource(RESOURCE_LIST, name, resources), word.slice(name.length + 1));
  }
  return list;
}

/** `ncpus=4 mem=1gb | schedselect` as shown */
function resolved(words: string, defaults = FRESH): string {
  const { Resource_List, schedselect } = resolveRequest(asked(words), defaults, resources);
  return `${shown(Resource_List)} | ${schedselect}`;
}
function shown(list: { readonly [resource: string]: ResourceValue }): string {
  return Object.entries(renderResourceList(list, resources))
    .map(([name, text]) => `${name}=${text}`)
    .join(" ");
}

// biome-ignore format: a table
const RECORDED: readonly (readonly [asked: string, resolved: string])[] = [
  ["",                                             "ncpus=1 nodect=1 place=pack select=1:ncpus=1 | 1:ncpus=1"],
  ["ncpus=4 mem=100mb walltime=1:00:00",           "mem=100mb ncpus=4 nodect=1 place=pack select=1:mem=100mb:ncpus=4 walltime=01:00:00 | 1:mem=100mb:ncpus=4"],
  ["select=2:ncpus=2:mem=1gb place=scatter",       "mem=2gb ncpus=4 nodect=2 place=scatter select=2:ncpus=2:mem=1gb | 2:ncpus=2:mem=1gb"],
  ["select=1:ncpus=1+2:ncpus=3:mpiprocs=2",        "mpiprocs=4 ncpus=7 nodect=3 place=free select=1:ncpus=1+2:ncpus=3:mpiprocs=2 | 1:ncpus=1+2:ncpus=3:mpiprocs=2"],
  ["nodes=1:ppn=2",                                "mpiprocs=2 ncpus=2 nodect=1 nodes=1:ppn=2 place=scatter select=1:ncpus=2:mpiprocs=2 | 1:ncpus=2:mpiprocs=2"],
  ["nodes=2",                                      "ncpus=2 nodect=2 nodes=2 place=scatter select=2:ncpus=1 | 2:ncpus=1"],
  ["nodes=1 mem=50mb",                             "mem=51200kb ncpus=1 nodect=1 nodes=1 place=scatter select=1:ncpus=1:mem=51200KB | 1:ncpus=1:mem=51200kb"],
  ["select=3 place=free:excl",                     "ncpus=3 nodect=3 place=free:excl select=3 | 3:ncpus=1"],
  ["select=1:ncpus=2 walltime=90 cput=100 place=pack:shared", "cput=00:01:40 ncpus=2 nodect=1 place=pack:shared select=1:ncpus=2 walltime=00:01:30 | 1:ncpus=2"],
];

test("recorded submissions resolve to the recorded lists", () => {
  for (const [words, expected] of RECORDED) assert.equal(resolved(words), expected, words);
});

// biome-ignore format: a table
const MORE: readonly (readonly [asked: string, resolved: string])[] = [
  ["select=ncpus=2",                               "ncpus=2 nodect=1 place=free select=ncpus=2 | 1:ncpus=2"],
  ["select=2:mem=1gb+1:ncpus=2:mem=512mb",         "mem=2560mb ncpus=4 nodect=3 place=free select=2:mem=1gb+1:ncpus=2:mem=512mb | 2:mem=1gb:ncpus=1+1:ncpus=2:mem=512mb"],
  ["select=1:r_long=2:fast=true",                  "ncpus=1 nodect=1 place=free r_long=2 select=1:r_long=2:fast=true | 1:r_long=2:fast=True:ncpus=1"],
  ["select=1:color='dark:red'",                    "ncpus=1 nodect=1 place=free select=1:color='dark:red' | 1:color='dark:red':ncpus=1"],
  ["license=3",                                    "license=3 ncpus=1 nodect=1 place=pack select=1:ncpus=1 | 1:ncpus=1"],
  ["select=1 license=3",                           "license=3 ncpus=1 nodect=1 place=free select=1 | 1:ncpus=1"],
  ["nodes=2:ppn=4#excl",                           "mpiprocs=8 ncpus=8 nodect=2 nodes=2:ppn=4#excl place=scatter:excl select=2:ncpus=4:mpiprocs=4 | 2:ncpus=4:mpiprocs=4"],
  ["nodes=2:ppn=2:fast#shared",                    "mpiprocs=4 ncpus=4 nodect=2 nodes=2:ppn=2:fast#shared place=scatter:shared select=2:fast=True:ncpus=2:mpiprocs=2 | 2:fast=True:ncpus=2:mpiprocs=2"],
  ["nodes=n1+n2:ppn=2",                            "mpiprocs=2 ncpus=3 nodect=2 nodes=n1+n2:ppn=2 place=scatter select=1:host=n1:ncpus=1+1:host=n2:ncpus=2:mpiprocs=2 | 1:host=n1:ncpus=1+1:host=n2:ncpus=2:mpiprocs=2"],
  ["nodes=1:ppn=2:cpp=3",                          "mpiprocs=2 ncpus=6 nodect=1 nodes=1:ppn=2:cpp=3 place=scatter select=1:ncpus=6:mpiprocs=2 | 1:ncpus=6:mpiprocs=2"],
  ["nodes=2 ncpus=8 mem=3kb",                      "mem=4kb ncpus=8 nodect=2 nodes=2 place=scatter select=2:ncpus=4:mem=2KB | 2:ncpus=4:mem=2kb"],
  ["nodes=1:ppn=2+2:ppn=1",                        "mpiprocs=2 ncpus=4 nodect=3 nodes=1:ppn=2+2:ppn=1 place=scatter select=1:ncpus=2:mpiprocs=2+2:ncpus=1 | 1:ncpus=2:mpiprocs=2+2:ncpus=1"],
  ["nodes=2:ppn=1",                                "ncpus=2 nodect=2 nodes=2:ppn=1 place=scatter select=2:ncpus=1 | 2:ncpus=1"],
  ["nodes=1:ppn=2+2:ppn=1 mem=400kb",              "mem=400kb mpiprocs=2 ncpus=4 nodect=3 nodes=1:ppn=2+2:ppn=1 place=scatter select=1:ncpus=2:mpiprocs=2:mem=200KB+2:ncpus=1:mem=100KB | 1:ncpus=2:mpiprocs=2:mem=200kb+2:ncpus=1:mem=100kb"],
  ["nodes=1:ppn=2+2 ncpus=12",                     "mpiprocs=2 ncpus=12 nodect=3 nodes=1:ppn=2+2 place=scatter select=1:ncpus=6:mpiprocs=2+2:ncpus=3 | 1:ncpus=6:mpiprocs=2+2:ncpus=3"],
  ["nodes=1:cpp=3+1 ncpus=12 mem=8kb",             "mem=8kb ncpus=4 nodect=2 nodes=1:cpp=3+1 place=scatter select=1:ncpus=3:mem=6KB+1:ncpus=1:mem=2KB | 1:ncpus=3:mem=6kb+1:ncpus=1:mem=2kb"],
  ["nodes=2:ncpus=3 mem=12kb",                     "mem=12kb ncpus=6 nodect=2 nodes=2:ncpus=3 place=scatter select=2:ncpus=3:mem=6KB | 2:ncpus=3:mem=6kb"],
  ["select=1:mem=100K:fast=t+2:mem=1GB:ncpus=007", "mem=2097252kb ncpus=15 nodect=3 place=free select=1:mem=100K:fast=t+2:mem=1GB:ncpus=007 | 1:mem=100kb:fast=True:ncpus=1+2:mem=1gb:ncpus=7"],
];

test("further forms of select and nodes", () => {
  for (const [words, expected] of MORE) assert.equal(resolved(words), expected, words);
});

test("defaults: queue before server, maxima for what nothing else gives, chunk resources not beside select", () => {
  const defaults: RequestDefaults = {
    queue: { resources_default: { walltime: 60 }, default_chunk: { mem: "1gb" }, resources_max: { walltime: 600, cput: 300 } },
    server: { resources_default: { ncpus: 2, walltime: 90 }, default_chunk: { ncpus: 1, mem: "9gb" }, resources_max: { ncpus: 99 } },
  };
  assert.equal(
    resolved("", defaults),
    "cput=00:05:00 mem=1gb ncpus=2 nodect=1 place=pack select=1:ncpus=2 walltime=00:01:00 | 1:ncpus=2:mem=1gb",
  );
  assert.equal(
    resolved("select=2", defaults),
    "cput=00:05:00 mem=2gb ncpus=2 nodect=2 place=free select=2 walltime=00:01:00 | 2:mem=1gb:ncpus=1",
  );
  const chunked: RequestDefaults = {
    queue: {},
    server: { resources_default: { select: "2:ncpus=3", place: "scatter" }, default_chunk: { nchunk: 3 } },
  };
  assert.equal(resolved("", chunked), "ncpus=6 nodect=2 place=scatter select=2:ncpus=3 | 2:ncpus=3");
  assert.equal(resolved("ncpus=5", chunked), "ncpus=5 nodect=1 place=scatter select=1:ncpus=5 | 1:ncpus=5");
  assert.equal(resolved("select=ncpus=1", chunked), "ncpus=3 nodect=3 place=scatter select=ncpus=1 | 3:ncpus=1");
});

const BAD = "15014 Illegal attribute or resource value";
// biome-ignore format: a table
const REFUSED: readonly (readonly [asked: string, refusal: string])[] = [
  ["select=1:nosuch=1",          "15035 Unknown resource: nosuch"],
  ["select=1:ncpus=abc",         `${BAD} select.ncpus`],
  ["select=1:ncpus=-1",          `${BAD} select.ncpus`],
  ["select=1:r_long=-1",         `${BAD} select.r_long`],
  ["select=1:ncpus=2:ncpus=3",   "15116 duplicated resource within a section of a select specification, resource is: ncpus"],
  ["select=1:walltime=10",       '15108 Resource invalid in "select" specification: walltime'],
  ["select=1:ncpus=1:",          `${BAD} Resource_List.select`],
  ["select=1:",                  `${BAD} Resource_List.select`],
  ["select=1+",                  `${BAD} Resource_List.select`],
  ["select=+1",                  `${BAD} Resource_List.select`],
  ["select=1:ncpus",             `${BAD} Resource_List.select`],
  ["select=1:=2",                `${BAD} Resource_List.select`],
  ["select=1:color='red",        `${BAD} Resource_List.select`],
  ["select=1:color=''",          `${BAD} Resource_List.select`],
  ["select=-1:ncpus=1",          `${BAD} Resource_List.select`],
  ["select=1000000000",          `${BAD} Resource_List.select`],
  ["select=0:ncpus=1",           BAD],
  ["select=999999999:ncpus=999999999", `${BAD} select.ncpus`],
  ["select=1 ncpus=2",           '15109 "-lresource=" cannot be used with "select" or "place", resource is: ncpus'],
  ["place=pack",                 '15111 Cannot have "place" without "select"'],
  ["place=pack ncpus=1",         '15111 Cannot have "place" without "select"'],
  ["nodes=2 select=1",           "15110 Cannot be used with select or place: nodes"],
  ["nodes=2 place=free",         "15110 Cannot be used with select or place: nodes"],
  ["select=1 place=anywhere",    `${BAD} Resource_List.place`],
  ["select=1 place=pack:scatter", `${BAD} Resource_List.place`],
  ["select=1 place=:excl",       `${BAD} Resource_List.place`],
  ["select=1 place=group=nosuch", `${BAD} Resource_List.place`],
  ["nodes=2#odd",                "15089 node(s) specification error"],
  ["nodes=2:ppn=x",              "15089 node(s) specification error"],
  ["nodes=2 ncpus=3",            "15089 node(s) specification error"],
  ["nodes=0",                    BAD],
  ["nodes=a/b",                  "15089 node(s) specification error"],
  ["max_walltime=60",            '15162 Cannot have "max_walltime" without "min_walltime"'],
  ["min_walltime=61 max_walltime=60", '15163 "min_walltime" can not be greater than "max_walltime"'],
  ["min_walltime=61 soft_walltime=60", "15180 soft_walltime is not supported with Shrink to Fit jobs"],
];

test("refused submissions give the reference's numbers and texts", () => {
  for (const [words, expected] of REFUSED)
    assert.equal(
      refusal(() => resolved(words)),
      expected,
      words,
    );
});

test("select: what is parsed is written the same, and typed by the resources", () => {
  for (const text of ["1", "3", "2:ncpus=2:mem=1gb", "ncpus=1", '1:color="a b"+2:ncpus=1', "1:color='x+y':fast=t", "1:mem=51200KB"])
    assert.equal(selectText(parseSelect(text)), text);
  assert.equal(chunkCount(parseSelect("2:ncpus=1+ncpus=2+3")), 6);
  assert.deepEqual(typedChunks(parseSelect('2:ncpus=2:mem=1GB:fast=t:color="a:b"'), resources), [
    { count: 2, resources: { ncpus: 2, mem: "1gb", fast: true, color: "a:b" } },
  ]);
});

test("place: words in any order", () => {
  assert.deepEqual(parsePlace("excl:pack"), { arrangement: "pack", sharing: "excl" });
  assert.deepEqual(parsePlace("group=host:scatter:exclhost"), { arrangement: "scatter", sharing: "exclhost", group: "host" });
  assert.deepEqual(parsePlace("shared"), { arrangement: "free", sharing: "shared" });
  assert.equal(placeText(parsePlace("group=host:excl:vscatter")), "vscatter:excl:group=host");
});

test("qalter: changes of a request", () => {
  const alter = (words: string, changes: { readonly [resource: string]: ResourceValue | undefined }): string => {
    const before = resolveRequest(asked(words), FRESH, resources).Resource_List;
    return refusal(() => {
      const { Resource_List, schedselect } = alterRequest(before, changes, FRESH, resources);
      return `${shown(Resource_List)} | ${schedselect}`;
    }).replace(/^accepted: "(.*)"$/, "$1");
  };
  const clash = '15109 "-lresource=" cannot be used with "select" or "place", resource is: ncpus';
  // biome-ignore format: a table
  const table: readonly (readonly [string, { readonly [resource: string]: ResourceValue | undefined }, string])[] = [
    ["select=1:ncpus=2 walltime=600",         { walltime: 300 },        "ncpus=2 nodect=1 place=free select=1:ncpus=2 walltime=00:05:00 | 1:ncpus=2"],
    ["select=1:ncpus=2 walltime=600",         { walltime: undefined },  "ncpus=2 nodect=1 place=free select=1:ncpus=2 | 1:ncpus=2"],
    ["select=1:ncpus=2 walltime=600",         { select: "2:ncpus=1" },  "ncpus=2 nodect=2 place=free select=2:ncpus=1 walltime=00:10:00 | 2:ncpus=1"],
    ["select=2:ncpus=1:mem=1gb place=scatter", { select: "1:ncpus=1" }, "ncpus=1 nodect=1 place=scatter select=1:ncpus=1 | 1:ncpus=1"],
    ["select=2:ncpus=1",                      { ncpus: 3 },             clash],
    ["select=1:ncpus=2 place=free",           { ncpus: 3 },             clash],
    ["select=1",                              { select: "2", ncpus: 3 }, clash],
    ["select=1",                              { place: "pack:excl" },   "ncpus=1 nodect=1 place=pack:excl select=1 | 1:ncpus=1"],
    ["ncpus=2 mem=1gb",                       { ncpus: 3 },             "mem=1gb ncpus=3 nodect=1 place=pack select=1:mem=1gb:ncpus=3 | 1:mem=1gb:ncpus=3"],
    ["ncpus=2 mem=1gb",                       { mem: undefined },       "ncpus=2 nodect=1 place=pack select=1:ncpus=2 | 1:ncpus=2"],
    ["ncpus=2 mem=1gb",                       { select: "2" },          "ncpus=2 nodect=2 place=free select=2 | 2:ncpus=1"],
    ["ncpus=2",                               { place: "scatter" },     "ncpus=2 nodect=1 place=scatter select=1:ncpus=2 | 1:ncpus=2"],
    ["nodes=2:ppn=2+1 mem=6kb",               { walltime: 60 },         "mem=10kb mpiprocs=4 ncpus=5 nodect=3 nodes=2:ppn=2+1 place=scatter select=2:ncpus=2:mpiprocs=2:mem=4KB+1:ncpus=1:mem=2KB walltime=00:01:00 | 2:ncpus=2:mpiprocs=2:mem=4kb+1:ncpus=1:mem=2kb"],
    ["nodes=1:ppn=2+2 ncpus=12 mem=7kb",      { walltime: 60 },         "mem=8kb mpiprocs=2 ncpus=12 nodect=3 nodes=1:ppn=2+2 place=scatter select=1:ncpus=6:mpiprocs=2:mem=4KB+2:ncpus=3:mem=2KB walltime=00:01:00 | 1:ncpus=6:mpiprocs=2:mem=4kb+2:ncpus=3:mem=2kb"],
    ["nodes=1:ppn=2+2 ncpus=12",              { mem: "400kb" },         "mem=400kb mpiprocs=2 ncpus=12 nodect=3 nodes=1:ppn=2+2 place=scatter select=1:ncpus=6:mpiprocs=2:mem=200KB+2:ncpus=3:mem=100KB | 1:ncpus=6:mpiprocs=2:mem=200kb+2:ncpus=3:mem=100kb"],
    ["nodes=2:ppn=2",                         { ncpus: 8 },             "mpiprocs=4 ncpus=8 nodect=2 nodes=2:ppn=2 place=scatter select=2:ncpus=4:mpiprocs=2 | 2:ncpus=4:mpiprocs=2"],
    ["nodes=2:ppn=2",                         { select: "1" },          "ncpus=1 nodect=1 place=free select=1 | 1:ncpus=1"],
    ["nodes=2:ppn=2",                         { nodes: "1" },           "ncpus=1 nodect=1 nodes=1 place=scatter select=1:ncpus=1 | 1:ncpus=1"],
    ["select=2:ncpus=2 place=pack",           { nodes: "1" },           "ncpus=1 nodect=1 nodes=1 place=scatter select=1:ncpus=1 | 1:ncpus=1"],
  ];
  for (const [words, changes, expected] of table) assert.equal(alter(words, changes), expected, `${words} ${JSON.stringify(changes)}`);
});
