// Where jobs are placed, and why others are not: nodes | jobs => decisions.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Policy } from "#sched/shapes/policy.ts";
import type { World } from "../world.ts";
import { decisionTexts, queue, run } from "../world.ts";

type Row = readonly [
  title: string,
  nodes: string,
  jobs: string,
  expected: readonly string[],
  policy?: Partial<Policy>,
  world?: Partial<World>,
];

const VA = "H ncpus=0 host=H; va[0] ncpus=4 host=H; va[1] ncpus=4 host=H; va[2] ncpus=4 host=H";
const CUSTOM = [
  { name: "gpus", type: "long", flags: "hn" },
  { name: "color", type: "string", flags: "h" },
  { name: "fast", type: "boolean", flags: "h" },
  { name: "scratch", type: "size", flags: "hn" },
  { name: "apps", type: "string_array", flags: "h" },
];
const BEST = { matcher: "best_fit" } as const;
const CHECK_CUSTOM: Partial<Policy> = {
  resources: new Set(["ncpus", "mem", "arch", "host", "vnode", "gpus", "color", "fast", "scratch", "apps"]),
};
const C16 = "H ncpus=16 gpus=2 color=blue fast=False scratch=10gb apps=gauss,vasp";

// biome-ignore format: a table
const ROWS: readonly Row[] = [
  // --- free, pack, scatter, vscatter over vnodes of one host (sched-place-vnodes)
  ["chunks fill the first vnode that has room",     VA, "1 3:ncpus=2",                      ["1=(va[0]:ncpus=2)+(va[0]:ncpus=2)+(va[1]:ncpus=2)"]],
  ["vscatter takes another vnode for each chunk",   VA, "1 3:ncpus=2 vscatter",             ["1=(va[0]:ncpus=2)+(va[1]:ncpus=2)+(va[2]:ncpus=2)"]],
  ["a chunk larger than a vnode is split",          VA, "1 ncpus=6",                        ["1=(va[0]:ncpus=4+va[1]:ncpus=2)"]],
  ["scatter needs hosts, not vnodes",               VA, "9 R (va[0]:ncpus=4+va[1]:ncpus=2); 1 2:ncpus=1 scatter", ["1: Not Running: No available resources on nodes"]],
  ["vscatter counts free vnodes",                   VA, "9 R (va[0]:ncpus=4+va[1]:ncpus=2); 1 4:ncpus=1 vscatter", ["1: Not Running: Not enough free nodes available"]],
  ["pack over what is left on the host",            VA, "9 R (va[0]:ncpus=4+va[1]:ncpus=2); 1 2:ncpus=4 pack", ["1: Not Running: Insufficient amount of resource: ncpus (R: 8 A: 6 T: 12)"]],
  ["larger than all vnodes never runs",             VA, "9 R (va[0]:ncpus=4+va[1]:ncpus=2); 1 ncpus=13", ["1: Can Never Run: Insufficient amount of resource: ncpus (R: 13 A: 12 T: 12)"]],
  ["pack puts all chunks on one host",              "a ncpus=2; b ncpus=4; c ncpus=4", "1 2:ncpus=2 pack", ["1=(b:ncpus=2)+(b:ncpus=2)"]],
  ["free spreads where pack does not",              "a ncpus=2; b ncpus=4; c ncpus=4", "1 2:ncpus=2 free", ["1=(a:ncpus=2)+(b:ncpus=2)"]],
  ["scatter: one chunk a host",                     "a ncpus=4; b ncpus=4; c ncpus=4", "1 2:ncpus=1+1:ncpus=2 scatter", ["1=(a:ncpus=1)+(b:ncpus=1)+(c:ncpus=2)"]],
  ["scatter over hosts with several vnodes",        "a0 ncpus=2 host=a; a1 ncpus=2 host=a; b0 ncpus=2 host=b; b1 ncpus=2 host=b", "1 2:ncpus=3 scatter", ["1=(a0:ncpus=2+a1:ncpus=1)+(b0:ncpus=2+b1:ncpus=1)"]],
  ["pack: chunks fit, all together do not",         "a ncpus=3; b ncpus=3", "1 2:ncpus=2 pack", ["1: Not Running: Node ineligible because job requested pack placement and won't fit on node"]],
  ["pack: a chunk fits nowhere",                    "a ncpus=3; b ncpus=3", "1 1:ncpus=4+1:ncpus=1 pack", ["1: Can Never Run: Insufficient amount of resource: ncpus (R: 4 A: 3 T: 3)"]],
  ["different chunks keep their order",             "a ncpus=2; b ncpus=8", "1 1:ncpus=4+1:ncpus=1", ["1=(b:ncpus=4)+(a:ncpus=1)"]],
  ["no single vnode has enough, all together do",   "a ncpus=4; b ncpus=4", "9 R (a:ncpus=3); 8 R (b:ncpus=3); 1 ncpus=2", ["1: Not Running: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 4)"]],

  // --- amounts and matches (sched-comment-ncpus, sched-comment-custom)
  ["too little now",                                "H ncpus=16", "9 R (H:ncpus=12); 1 ncpus=8",   ["1: Not Running: Insufficient amount of resource: ncpus (R: 8 A: 4 T: 16)"]],
  ["too little ever",                               "H ncpus=16", "9 R (H:ncpus=12); 1 ncpus=32",  ["1: Can Never Run: Insufficient amount of resource: ncpus (R: 32 A: 16 T: 16)"]],
  ["a chunk larger than every host, busy or not",   "H ncpus=4; I ncpus=6; J ncpus=3", "9 R (I:ncpus=6); 1 2:ncpus=1+ncpus=7; 2 ncpus=6", ["1: Can Never Run: Insufficient amount of resource: ncpus (R: 7 A: 6 T: 6)", "2: Not Running: Insufficient amount of resource: ncpus (R: 6 A: 4 T: 4)"]],
  ["a chunk larger than those that match",          "H ncpus=4 fast=True; I ncpus=6", "1 ncpus=5:fast=True", ["1: Can Never Run: Insufficient amount of resource: ncpus (R: 5 A: 4 T: 4)"], {}, { resources: CUSTOM }],
  ["a chunk larger than the vnode that it names",   "a ncpus=2; b0 ncpus=4 host=b; b1 ncpus=4 host=b", "1 1:ncpus=3:vnode=a; 2 1:ncpus=5:vnode=b0; 3 1:ncpus=3:vnode=b0", ["1: Can Never Run: Insufficient amount of resource: ncpus (R: 3 A: 2 T: 2)", "2: Can Never Run: Insufficient amount of resource: ncpus (R: 5 A: 4 T: 4)", "3=(b0:ncpus=3)"]],
  ["a chunk larger than the host that it names",    "a ncpus=2; b0 ncpus=4 host=b; b1 ncpus=4 host=b", "1 1:ncpus=3:host=a; 2 1:ncpus=8:host=b", ["1: Can Never Run: Insufficient amount of resource: ncpus (R: 3 A: 2 T: 2)", "2=(b0:ncpus=4+b1:ncpus=4)"]],
  ["chunks too large together for what they name",  "a ncpus=2; b0 ncpus=4 host=b; b1 ncpus=4 host=b", "1 2:ncpus=2:vnode=a; 2 3:ncpus=3:host=b; 3 1:ncpus=4:vnode=b0+1:ncpus=5:host=b; 4 1:ncpus=4:vnode=b0+1:ncpus=4:host=b", ["1: Can Never Run: Insufficient amount of resource: ncpus (R: 4 A: 2 T: 2)", "2: Can Never Run: Insufficient amount of resource: ncpus (R: 9 A: 8 T: 8)", "3: Can Never Run: Insufficient amount of resource: ncpus (R: 9 A: 8 T: 8)", "4=(b0:ncpus=4)+(b1:ncpus=4)"]],
  ["chunks scattered over less than they name",     "a ncpus=4; b0 ncpus=4 host=b; b1 ncpus=4 host=b", "1 2:ncpus=1:vnode=a scatter; 2 1:ncpus=1:vnode=b0+1:ncpus=1:vnode=b1 scatter; 3 2:ncpus=1:vnode=a vscatter; 4 2:ncpus=1:host=b vscatter; 5 3:ncpus=1:host=b vscatter", ["1: Can Never Run: Not enough total nodes available", "2: Can Never Run: Not enough total nodes available", "3: Can Never Run: Not enough total nodes available", "4=(b0:ncpus=1)+(b1:ncpus=1)", "5: Can Never Run: Not enough total nodes available"]],
  ["chunks packed on hosts that they name",         "a ncpus=2; b ncpus=2", "1 1:ncpus=1:host=a+1:ncpus=1:host=b pack; 2 1:ncpus=1:host=a+1:ncpus=2 pack; 3 1:ncpus=1:host=a+1:ncpus=1 pack", ["1: Can Never Run: Not enough total nodes available", "2: Can Never Run: Insufficient amount of resource: ncpus (R: 3 A: 2 T: 2)", "3=(a:ncpus=1)+(a:ncpus=1)"]],
  ["a chunk split over a host, but for vscatter",   "a0 ncpus=2 host=a; a1 ncpus=2 host=a; b ncpus=3", "9 R (a0:ncpus=2); 1 ncpus=4; 2 ncpus=4 vscatter; 3 ncpus=5", ["1: Not Running: Insufficient amount of resource: ncpus (R: 4 A: 2 T: 4)", "2: Can Never Run: Insufficient amount of resource: ncpus (R: 4 A: 3 T: 3)", "3: Can Never Run: Insufficient amount of resource: ncpus (R: 5 A: 4 T: 4)"]],
  ["many chunks, too little ever",                  "H ncpus=16", "1 20:ncpus=1",                  ["1: Can Never Run: Insufficient amount of resource: ncpus (R: 20 A: 16 T: 16)"]],
  ["unknown host",                                  "H ncpus=16", "1 ncpus=1:host=nosuch",         ["1: Can Never Run: Insufficient amount of resource: host (nosuch != H)"]],
  ["other architecture",                            "H ncpus=16", "1 ncpus=1:arch=solaris",        ["1: Can Never Run: Insufficient amount of resource: arch (solaris != linux)"]],
  ["memory in the unit that divides it",            "H ncpus=16 mem=24gb", "1 ncpus=1:mem=900gb",  ["1: Can Never Run: Insufficient amount of resource: mem (R: 900gb A: 24gb T: 24gb)"]],
  ["memory in kilobytes in exec_vnode",             "H ncpus=16 mem=24gb", "1 mem=1gb:ncpus=2",    ["1=(H:mem=1048576kb:ncpus=2)"]],
  ["an environment a vnode has not got now",        "H ncpus=16 aoe=rhel,suse :current_aoe=suse", "1 ncpus=1:aoe=rhel",  ["1: Can Never Run: Insufficient amount of resource: aoe (rhel != suse)"]],
  ["the environment a vnode has",                   "G ncpus=16 aoe=rhel,suse; H ncpus=16 aoe=rhel,suse :current_aoe=suse", "1 ncpus=1:aoe=suse", ["1=(H:ncpus=1)"]],
  ["what jobs count is not the mom's to say",       "H ncpus=16 :site.gpus=2", "1 ncpus=1:gpus=1",     ["1: Can Never Run: Insufficient amount of resource: gpus (R: 1 A: 0 T: 0)"], { ...CHECK_CUSTOM, mom_resources: new Set(["gpus"]) }, { resources: CUSTOM }],
  ["unset memory is none",                          "H ncpus=16", "1 ncpus=1:mem=1gb",             ["1: Can Never Run: Insufficient amount of resource: mem (R: 1gb A: 0kb T: 0kb)"]],
  ["unset memory is infinite where the site says so", "H ncpus=16", "1 ncpus=1:mem=1gb",           ["1=(H:ncpus=1:mem=1048576kb)"], { resource_unset_infinite: new Set(["mem"]) }],
  ["a resource that is not listed is not checked",  "H ncpus=16 mem=1gb", "1 ncpus=1:mem=2gb",     ["1=(H:ncpus=1)"], { resources: new Set(["ncpus"]) }],
  ["custom resources",                              C16, "1 ncpus=1:gpus=1:color=blue:scratch=6gb:apps=vasp", ["1=(H:ncpus=1:gpus=1:scratch=6291456kb)"], CHECK_CUSTOM, { resources: CUSTOM }],
  ["custom amount, not now",                        C16, "9 R (H:gpus=1); 1 ncpus=1:gpus=2",     ["1: Not Running: Insufficient amount of resource: gpus (R: 2 A: 1 T: 2)"], CHECK_CUSTOM, { resources: CUSTOM }],
  ["custom amount, never",                          C16, "1 ncpus=1:gpus=3",                     ["1: Can Never Run: Insufficient amount of resource: gpus (R: 3 A: 2 T: 2)"], CHECK_CUSTOM, { resources: CUSTOM }],
  ["string",                                        C16, "1 ncpus=1:color=red",                  ["1: Can Never Run: Insufficient amount of resource: color (red != blue)"], CHECK_CUSTOM, { resources: CUSTOM }],
  ["string that no vnode sets",                     "H ncpus=16", "1 ncpus=1:color=red",           ["1: Can Never Run: Insufficient amount of resource: color (red != )"], CHECK_CUSTOM, { resources: CUSTOM }],
  ["boolean",                                       C16, "1 ncpus=1:fast=True",                  ["1: Can Never Run: Insufficient amount of resource: fast (True != False)"], CHECK_CUSTOM, { resources: CUSTOM }],
  ["boolean is checked though it is not listed",    C16, "1 ncpus=1:fast=True",                  ["1: Can Never Run: Insufficient amount of resource: fast (True != False)"], {}, { resources: CUSTOM }],
  ["an unset boolean is False",                     "H ncpus=16", "1 ncpus=1:fast=False",          ["1=(H:ncpus=1)"], CHECK_CUSTOM, { resources: CUSTOM }],
  ["size amount",                                   C16, "9 R (H:ncpus=1:scratch=6gb); 1 ncpus=1:scratch=5gb", ["1: Not Running: Insufficient amount of resource: scratch (R: 5gb A: 4gb T: 10gb)"], CHECK_CUSTOM, { resources: CUSTOM }],
  ["string array",                                  C16, "1 ncpus=1:apps=abaqus",                ["1: Can Never Run: Insufficient amount of resource: apps (abaqus != gauss,vasp)"], CHECK_CUSTOM, { resources: CUSTOM }],
  ["the vnode with the right value is taken",       "a ncpus=4 color=blue; b ncpus=4 color=red", "1 ncpus=1:color=red", ["1=(b:ncpus=1)"], CHECK_CUSTOM, { resources: CUSTOM }],

  // --- named vnodes and hosts
  ["a vnode by name",                               "a ncpus=4; b ncpus=4", "1 ncpus=1:vnode=b", ["1=(b:ncpus=1)"]],
  ["a host by name",                                VA, "1 ncpus=6:host=H",    ["1=(va[0]:ncpus=4+va[1]:ncpus=2)"]],
  ["a named vnode is not left for others",          VA, "1 ncpus=6:vnode=va[1]", ["1: Can Never Run: Insufficient amount of resource: ncpus (R: 6 A: 4 T: 4)"]],
  ["a named vnode in exclusive use",                "a ncpus=4; b ncpus=4", "9 R (b:ncpus=1) excl; 1 ncpus=1:vnode=b", ["1: Not Running: Insufficient amount of resource: vnode "]],
  ["a named vnode with too little",                 "a ncpus=4; b ncpus=4", "9 R (b:ncpus=3); 1 ncpus=2:vnode=b", ["1: Not Running: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 4)"]],
  ["packed on a named host",                        "a ncpus=4; b ncpus=4", "1 1:ncpus=1:host=b+1:ncpus=1 pack", ["1=(b:ncpus=1)+(b:ncpus=1)"]],

  // --- states and sharing (sched-comment-states, comments-fit2)
  ["the only vnode is offline",                     "H ncpus=16 :offline", "1 2:ncpus=2",                             ["1: Not Running: Not enough free nodes available"]],
  ["one vnode offline, the other too small",        "a ncpus=16 :offline; b ncpus=1", "1 ncpus=2",                    ["1: Not Running: Insufficient amount of resource: ncpus (R: 2 A: 1 T: 17)"]],
  ["scatter over one vnode",                        "H ncpus=16", "1 2:ncpus=2 scatter",                              ["1: Can Never Run: Not enough total nodes available"]],
  ["excl on a vnode in use",                        "H ncpus=16", "9 R (H:ncpus=4); 1 ncpus=2 excl",                  ["1: Not Running: No available resources on nodes"]],
  ["exclhost on a vnode in use",                    "H ncpus=16", "9 R (H:ncpus=4); 1 ncpus=2 exclhost",              ["1: Not Running: No available resources on nodes"]],
  ["pack:exclhost on a vnode in use",               "H ncpus=16", "9 R (H:ncpus=4); 1 ncpus=2 pack:exclhost",         ["1: Not Running: Job is requesting an exclusive node and node is in use"]],
  ["excl where a host has several vnodes",          VA, "9 R (va[0]:ncpus=1); 8 R (va[1]:ncpus=1); 7 R (va[2]:ncpus=1); 6 R (H:ncpus=0); 1 ncpus=2 excl", ["1: Not Running: Job is requesting an exclusive node and node is in use"]],
  ["excl takes a vnode, the next job another",      "a ncpus=4; b ncpus=4", "1 ncpus=1 excl; 2 ncpus=1; 3 ncpus=1",  ["1=(a:ncpus=1)", "2=(b:ncpus=1)", "3=(b:ncpus=1)"]],
  ["excl does not take the whole host",             VA, "1 ncpus=1 excl; 2 ncpus=1",                               ["1=(va[0]:ncpus=1)", "2=(va[1]:ncpus=1)"]],
  ["exclhost takes the whole host",                 VA, "1 ncpus=1 exclhost; 2 ncpus=1",                           ["1=(va[0]:ncpus=1)", "2: Not Running: Not enough free nodes available"]],
  ["exclhost needs a host without jobs",            "a0 ncpus=2 host=a; a1 ncpus=2 host=a; b0 ncpus=2 host=b", "9 R (a1:ncpus=1); 1 ncpus=1 exclhost", ["1=(b0:ncpus=1)"]],
  ["exclhost needs a host without jobs in any set", "a0 ncpus=2 host=a :queue=q; a1 ncpus=2 host=a; b0 ncpus=2 host=b :queue=q; b1 ncpus=2 host=b", "9 R (a1:ncpus=1); 1 ncpus=1 exclhost @q; 2 ncpus=1 @q", ["1=(b0:ncpus=1)", "2=(a0:ncpus=1)"], {}, { queues: [queue("workq"), queue("q")] }],
  ["force_excl makes a shared job exclusive",       "a ncpus=4 :sharing=force_excl; b ncpus=4", "1 ncpus=1 shared; 2 ncpus=1", ["1=(a:ncpus=1)", "2=(b:ncpus=1)"]],
  ["default_excl leaves shared jobs shared",        "a ncpus=4 :sharing=default_excl; b ncpus=4", "1 ncpus=1 shared; 2 ncpus=1 shared", ["1=(a:ncpus=1)", "2=(a:ncpus=1)"]],
  ["default_excl without a word is exclusive",      "a ncpus=4 :sharing=default_excl; b ncpus=4", "1 ncpus=1; 2 ncpus=1",      ["1=(a:ncpus=1)", "2=(b:ncpus=1)"]],
  ["ignore_excl shares in spite of excl",           "a ncpus=4 :sharing=ignore_excl", "1 ncpus=1 excl; 2 ncpus=1 excl",        ["1=(a:ncpus=1)", "2=(a:ncpus=1)"]],
  ["a full vnode is not eligible",                  "a ncpus=1; b ncpus=1", "1 ncpus=1; 2 ncpus=1; 3 ncpus=1",       ["1=(a:ncpus=1)", "2=(b:ncpus=1)", "3: Not Running: Not enough free nodes available"]],

  // --- backfill.matcher: best_fit
  ["best fit: the host that has least left",        "a ncpus=8; b ncpus=4; c ncpus=6", "9 R (b:ncpus=1); 1 ncpus=3; 2 ncpus=3", ["1=(b:ncpus=3)", "2=(c:ncpus=3)"], BEST],
  ["first fit: the first host",                     "a ncpus=8; b ncpus=4; c ncpus=6", "9 R (b:ncpus=1); 1 ncpus=3; 2 ncpus=3", ["1=(a:ncpus=3)", "2=(a:ncpus=3)"]],
  ["best fit: equal hosts in the order of definition", "a ncpus=4; b ncpus=4",         "1 ncpus=2; 2 ncpus=2",               ["1=(a:ncpus=2)", "2=(a:ncpus=2)"], BEST],
  ["best fit: the large hole stays for the large job", "a ncpus=4; b ncpus=8",         "9 R (b:ncpus=4); 8 R (a:ncpus=1); 1 ncpus=3; 2 ncpus=4", ["1=(a:ncpus=3)", "2=(b:ncpus=4)"], BEST],
  ["best fit: all copies on one host where one can take them", "a ncpus=2; b ncpus=7; c ncpus=6", "1 3:ncpus=2", ["1=(c:ncpus=2)+(c:ncpus=2)+(c:ncpus=2)"], BEST],
  ["best fit: on as few hosts as possible where none can", "a ncpus=2; b ncpus=4; c ncpus=2", "1 3:ncpus=2",  ["1=(b:ncpus=2)+(b:ncpus=2)+(a:ncpus=2)"], BEST],
  ["best fit: scattered copies each where least is left", "a ncpus=8; b ncpus=2; c ncpus=4", "1 2:ncpus=2 scatter", ["1=(b:ncpus=2)+(c:ncpus=2)"], BEST],
  ["best fit: packed where least is left of all",   "a ncpus=8; b ncpus=4; c ncpus=5", "1 1:ncpus=1+1:ncpus=3 pack",         ["1=(b:ncpus=1)+(b:ncpus=3)"], BEST],
  ["best fit: what the site prefers comes first",   "a ncpus=8 :Priority=5; b ncpus=4", "1 ncpus=4",                         ["1=(a:ncpus=4)"], BEST],
  ["best fit: memory counts where it is asked",     "a ncpus=4 mem=16gb; b ncpus=4 mem=4gb", "1 ncpus=1; 2 ncpus=1:mem=2gb", ["1=(a:ncpus=1)", "2=(b:ncpus=1:mem=2097152kb)"], BEST],
  ["best fit: a chunk split over a host's vnodes",  "x0 ncpus=4 host=x; x1 ncpus=4 host=x; y0 ncpus=3 host=y; y1 ncpus=3 host=y", "1 ncpus=6", ["1=(y0:ncpus=3+y1:ncpus=3)"], BEST],
  ["best fit has no say where hosts are gone around", "a ncpus=8; b ncpus=4",          "1 ncpus=1; 2 ncpus=1; 3 ncpus=1",    ["1=(a:ncpus=1)", "2=(b:ncpus=1)", "3=(a:ncpus=1)"], { ...BEST, smp_cluster_dist: "round_robin" }],

  // --- limits of vnodes
  ["max_running of a vnode",                        "a ncpus=4 :max_running=1; b ncpus=4", "1 ncpus=1; 2 ncpus=1",             ["1=(a:ncpus=1)", "2=(b:ncpus=1)"]],
  ["max_user_run of a vnode",                       "a ncpus=4 :max_user_run=1", "9 R (a:ncpus=1); 1 ncpus=1; 2 ncpus=1 u=bob", ["1: Not Running: Node has reached user run limit", "2=(a:ncpus=1)"]],
  ["max_group_run of a vnode",                      "a ncpus=4 :max_group_run=2", "1 ncpus=1; 2 ncpus=1 u=bob; 3 ncpus=1; 4 ncpus=1 g=staff", ["1=(a:ncpus=1)", "2=(a:ncpus=1)", "3: Not Running: Node has reached group run limit", "4=(a:ncpus=1)"]],
  ["no_multinode_jobs",                             "a ncpus=4 :no_multinode_jobs=True; b ncpus=4", "1 2:ncpus=1; 2 ncpus=1",  ["1=(b:ncpus=1)+(b:ncpus=1)", "2=(a:ncpus=1)"]],
];

for (const [title, nodes, jobs, expected, policy, world] of ROWS) {
  test(`placement: ${title}`, () => {
    assert.deepEqual(decisionTexts(run({ nodes, jobs, ...world }, policy)), expected);
  });
}

test("round_robin: a job that fits only in a round from the first host on starts wherever the last round ended", () => {
  const nodes = "a ncpus=4; b ncpus=3";
  const policy: Partial<Policy> = { ...BEST, smp_cluster_dist: "round_robin" };
  const first = run({ nodes, jobs: "1 ncpus=1" }, policy);
  assert.deepEqual(decisionTexts(first), ["1=(a:ncpus=1)"]);
  // 1 has ended. After a, b takes the first chunk and then has no room for one of 3.
  const second = run({ nodes, jobs: "2 1:ncpus=1+2:ncpus=3" }, policy, { memory: first.memory });
  assert.deepEqual(decisionTexts(second), ["2=(a:ncpus=1)+(a:ncpus=3)+(b:ncpus=3)"]);
});
