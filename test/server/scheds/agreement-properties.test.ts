// Server and schedulers agree: the server does not refuse a decision that a scheduler made from an up-to-date mirror. Otherwise
// it would refuse the job again in every cycle. The test uses random complexes of hosts with several vnodes, partitions, queues
// with separate vnodes, states, sharing, custom resources.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Decision, type Delta, SCHED_COMMAND, type Snapshot } from "#protocol/sched-link.ts";
import { cycle as decide } from "#sched/cycle/cycle.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import { POLICY_DEFAULT } from "#sched/shapes/policy.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import { type Prng, prng } from "#support/prng.ts";
import { book } from "../../sched/world.ts";
import { addJob, addQueue, addSched, apply, cycle, type Harness, harness, jobAttrs, mom, obit, schedHello } from "../harness.ts";

const WORLDS = Number(process.env["AGREEMENT_WORLDS"] ?? 80);
const ROUNDS = 4;
const SCHEDS = [
  { name: "default", link: 1 },
  { name: "s1", link: 2 },
] as const;
const QUEUES = ["workq", "own", "pq", "pown"] as const;
const STATES = [["offline"], ["maintenance"], ["sleep"], ["stale"], ["provisioning"], ["wait-provisioning"], ["busy"], ["down", "offline"]];
const SHARING = ["default_shared", "default_shared", "default_excl", "ignore_excl", "force_excl", "default_exclhost", "force_exclhost"];

type Mirror = { universe: Universe | null; seen: number; readonly book: PolicyBook };

function makeComplex(random: Prng): Harness {
  const h = harness();
  for (const [name, type, flags] of [
    ["lic", "long", "hn"],
    ["bb", "size", "hn"],
    ["once", "long", "fh"],
    ["color", "string", "h"],
    ["fast", "boolean", "h"],
  ] as const)
    apply(h, { kind: "resource-put", resource: { name, type, flags, read: "all", set: "user" } });
  addQueue(h, "own");
  addQueue(h, "pq", { partition: "p1" });
  addQueue(h, "pown", { partition: "p1" });
  addSched(h, "s1", { partition: ["p1"] });
  const hosts = random.int(1, 3);
  for (let at = 0; at < hosts; at++) addMom(h, random, `m${at}`, 100 + at);
  for (const vnode of [...h.core.state.vnodes.values()]) {
    const p1 = random.chance(0.3);
    const owned = random.int(0, 4) === 0 ? { queue: p1 ? "pown" : "own" } : {};
    const state = random.int(0, 7) === 0 ? { state: random.pick(STATES) } : {};
    apply(h, {
      kind: "changed",
      object: "node",
      name: vnode.name,
      set: { ...(p1 ? { partition: "p1" } : {}), ...owned, ...state },
      unset: [],
    });
  }
  return h;
}

/** A mom with vnodes of one host or of several hosts. */
function addMom(h: Harness, random: Prng, host: string, link: number): void {
  const vnodes = Array.from({ length: random.int(1, 4) }, (_, at) => ({
    name: at === 0 ? host : `${host}v${at}`,
    attrs: {
      resources_available: {
        host: random.chance(0.3) ? `${host}x` : host,
        vnode: at === 0 ? host : `${host}v${at}`,
        ncpus: random.int(0, 4),
        mem: `${random.int(1, 4)}gb`,
        arch: "linux",
        ...(random.chance(0.5) ? { lic: random.int(0, 2) } : {}),
        ...(random.chance(0.5) ? { bb: `${random.int(0, 3)}gb` } : {}),
        ...(random.chance(0.5) ? { once: random.int(0, 1) } : {}),
        ...(random.chance(0.5) ? { color: random.pick(["red", "blue"]) } : {}),
        ...(random.chance(0.5) ? { fast: random.chance(0.5) } : {}),
      },
      pcpus: 4,
      sharing: random.pick(SHARING),
    },
  }));
  apply(h, {
    kind: "created",
    object: "node",
    name: host,
    attrs: { Mom: [host], Port: 15002, state: ["state-unknown", "down"], sharing: "default_shared", resources_available: {} },
  });
  mom(h, link, "mom-hello", { host, port: 15002, pid: 1, version: "23.06.06", vnodes, jobs: [] } as never);
}

function submit(h: Harness, random: Prng): void {
  const chunk = (): string => {
    const more = [
      random.chance(0.4) ? `:lic=${random.int(0, 2)}` : "",
      random.chance(0.3) ? `:bb=${random.int(0, 2)}gb` : "",
      random.chance(0.3) ? ":once=1" : "",
      random.chance(0.2) ? `:color=${random.pick(["red", "blue"])}` : "",
      random.chance(0.2) ? `:fast=${random.chance(0.5) ? "True" : "False"}` : "",
      random.chance(0.4) ? `:mem=${random.int(0, 2)}gb` : "",
    ];
    return `${random.pick([1, 1, 2])}:ncpus=${random.int(0, 3)}${more.join("")}`;
  };
  const select = Array.from({ length: random.pick([1, 1, 2]) }, chunk).join("+");
  const sharing = random.pick(["", "", ":excl", ":exclhost", ":shared"]);
  const place = `${random.pick(["free", "free", "pack", "scatter", "vscatter"])}${sharing}`;
  addJob(h, { queue: random.pick(QUEUES), schedselect: select, Resource_List: { ncpus: 1, nodect: 1, place, select } });
}

/** Applies the new frames for a scheduler. */
function follow(h: Harness, mirror: Mirror, link: number): Universe {
  for (; mirror.seen < h.to_scheds.length; mirror.seen++) {
    const frame = h.to_scheds[mirror.seen] as Harness["to_scheds"][number];
    if (frame.link !== link) continue;
    if (frame.type === "sched-snapshot") mirror.universe = createUniverse(frame.data as Snapshot, mirrorOptions(mirror.book));
    else if (frame.type === "sched-delta") applyDelta(mirror.universe as Universe, frame.data as Delta);
  }
  return mirror.universe as Universe;
}

/**
 * Runs cycles of one scheduler until nothing more starts, and returns the number of starts. A start may be refused because of
 * an earlier start in the same cycle, on a host that queues with separate vnodes share. The first start of a cycle is never
 * refused, because nothing has changed since the mirror was updated.
 */
function startAll(h: Harness, mirror: Mirror, { name, link, where }: { name: string; link: number; where: string }): number {
  for (let cycles = 1, started = 0; ; cycles++) {
    apply(h, { kind: "changed", object: "sched", name, set: { scheduling: true }, unset: [] });
    const { decisions } = decide(follow(h, mirror, link), mirror.book, { now_s: Math.floor(h.now_ms / 1000), command: SCHED_COMMAND.CMD });
    const own = decisions.filter(({ kind }) => kind === "run");
    const verdicts = cycle(h, link, own);
    assert.ok(verdicts[0]?.ok !== false, `${where}: ${runs(own[0])}: ${JSON.stringify(verdicts[0])}`);
    started += verdicts.filter(({ ok }) => ok).length;
    if (verdicts.every(({ ok }) => ok)) return started;
    assert.ok(cycles < 20, where);
  }
}

const runs = (decision: Decision | undefined): string =>
  decision?.kind === "run" ? `${decision.job} on ${decision.exec_vnode}` : String(decision?.kind);

test(`what a scheduler decides from what it was told the server carries out, over ${WORLDS} random complexes`, () => {
  let started = 0;
  for (let seed = 1; seed <= WORLDS; seed++) {
    const random = prng(seed);
    const h = makeComplex(random);
    const mirrors = SCHEDS.map(({ name, link }) => {
      schedHello(h, link, name);
      const names = ["ncpus", "mem", "arch", "host", "vnode"].filter((resource) => resource !== "mem" || random.chance(0.8));
      const custom = ["lic", "bb", "once", "color"].filter(() => random.chance(0.5));
      const unset = new Set(random.chance(0.2) ? ["lic"] : []);
      const policy = { ...POLICY_DEFAULT, resources: new Set([...names, ...custom]), resource_unset_infinite: unset };
      return { universe: null, seen: 0, book: book(policy) } as Mirror;
    });
    for (let round = 0; round < ROUNDS; round++) {
      for (let jobs = random.int(1, 6); jobs > 0; jobs--) submit(h, random);
      SCHEDS.forEach(({ name, link }, at) => {
        const where = `seed ${seed}, round ${round}, ${name}`;
        started += startAll(h, mirrors[at] as Mirror, { name, link, where });
      });
      h.now_ms += 1000;
      endSome(h, random);
    }
  }
  assert.ok(started > WORLDS, "jobs were started");
});

/** Ends some of the jobs of the moms. */
function endSome(h: Harness, random: Prng): void {
  for (const job of [...h.core.state.jobs.values()]) {
    if (job.attrs.job_state !== "R") continue;
    const host = /^[^/]+/.exec(job.attrs.exec_host ?? "")?.[0] ?? "";
    const link = 100 + Number(host.slice(1));
    mom(h, link, "mom-started", { job: job.id, run_count: job.attrs.run_count ?? 0, session_id: 1, jobdir: "/x" });
    if (random.chance(0.4) && h.core.state.jobs.has(job.id)) obit(h, link, job.id, 0, jobAttrs(h, job.id).run_count ?? 0);
  }
}
