// Properties of every universe, tested with a thousand random ones. A failure prints its seed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sizeKb } from "#model/values/size.ts";
import type { Change, SchedJob, SchedNode, Snapshot } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import type { CycleResult } from "#sched/cycle/result.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import { MATCHER_NAMES, type Policy } from "#sched/shapes/policy.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import type { Prng } from "#support/prng.ts";
import { prng } from "#support/prng.ts";
import { describeUniverse } from "../describe.ts";
import { naiveCycle } from "../naive.ts";
import { randomJob, randomPolicy, randomSnapshot, taking } from "../random-world.ts";
import { book } from "../world.ts";

const SEEDS = Number(process.env["PARTITA_SEEDS"] ?? 600);
const INPUT = { now_s: 1_000_000, command: SCHED_COMMAND.TIME } as const;

function forSeeds(label: string, check: (random: Prng) => void, seeds = SEEDS): void {
  for (let seed = 1; seed <= seeds; seed++) {
    try {
      check(prng(`${label} ${seed}`));
    } catch (error) {
      throw new Error(`seed=${label} ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  }
}

function worldOf(random: Prng, policy: Partial<Policy> = {}): { snapshot: Snapshot; policies: PolicyBook; universe: Universe } {
  const snapshot = randomSnapshot(random);
  const policies = book({ ...randomPolicy(random), ...policy });
  return { snapshot, policies, universe: createUniverse(snapshot, { policy: policies.prime, times_matter: false }) };
}

const starts = (result: CycleResult) =>
  result.decisions.flatMap((decision) => (decision.kind === "run" ? [{ job: decision.job, exec_vnode: decision.exec_vnode }] : []));

for (const matcher of MATCHER_NAMES)
  test(`properties: a cycle with buckets starts what one without any starts, in the same places (${matcher})`, () => {
    let compared = 0;
    const seeds = matcher === "first_fit" ? SEEDS : SEEDS / 3;
    const check = (random: Prng): void => {
      const { snapshot, policies, universe } = worldOf(random, { matcher });
      const [again, once] = [naiveCycle(snapshot, policies.prime, false), naiveCycle(snapshot, policies.prime, true)];
      // Where a second attempt succeeds, a class of jobs is meant to give up earlier.
      if (JSON.stringify(again) !== JSON.stringify(once)) return;
      assert.deepEqual(starts(cycle(universe, policies, INPUT)), again);
      compared++;
    };
    forSeeds(`naive ${matcher}`, check, seeds);
    assert.ok(compared > 0.95 * seeds, `only ${compared} of ${seeds} compared`);
  });

test("properties: no vnode gives more than it has, and exclusive use is exclusive", () => {
  forSeeds("room", (random) => {
    const { snapshot, policies, universe } = worldOf(random);
    const after = carryOut(snapshot, starts(cycle(universe, policies, INPUT)));
    for (const node of after.nodes) checkNode(node, after);
  });
});

function checkNode(node: SchedNode, { jobs }: Snapshot): void {
  const available = node.attrs["resources_available"] as { ncpus: number; mem: string };
  assert.ok((node.assigned["ncpus"] ?? 0) <= available.ncpus, `${node.name} has too few cpus`);
  assert.ok((node.assigned["mem"] ?? 0) <= sizeKb(available.mem), `${node.name} has too little memory`);
  const here = jobs.filter((job) => node.jobs.includes(job.id));
  const alone = here.filter((job) => job.place.includes("excl"));
  if (node.attrs["sharing"] !== "ignore_excl" && alone.length > 0)
    assert.equal(here.length, 1, `${node.name} is shared by ${node.jobs.join()}`);
}

test("properties: each chunk is on one host, scatter and vscatter keep chunks apart, pack keeps them together", () => {
  forSeeds("arrangement", (random) => {
    const { snapshot, policies, universe } = worldOf(random);
    const hosts = new Map(snapshot.nodes.map((node) => [node.name, (node.attrs["resources_available"] as { host: string }).host]));
    for (const { job: id, exec_vnode } of starts(cycle(universe, policies, INPUT))) {
      const job = snapshot.jobs.find((one) => one.id === id) as SchedJob;
      const chunks = exec_vnode
        .slice(1, -1)
        .split(")+(")
        .map((chunk) => chunk.split("+").map((piece) => piece.split(":")[0] ?? ""));
      const chunkHosts = chunks.map((vnodes) => new Set(vnodes.map((vnode) => hosts.get(vnode))));
      assert.ok(
        chunkHosts.every((names) => names.size === 1),
        exec_vnode,
      );
      const names = chunkHosts.map((one) => [...one][0]);
      if (job.place.startsWith("scatter")) assert.equal(new Set(names).size, chunks.length, exec_vnode);
      if (job.place.startsWith("pack")) assert.equal(new Set(names).size, 1, exec_vnode);
      if (job.place.startsWith("vscatter")) assert.equal(new Set(chunks.flat()).size, chunks.length, exec_vnode);
      assert.equal(cpusOf(exec_vnode), job.resources["ncpus"], exec_vnode);
    }
  });
});

function cpusOf(exec_vnode: string): number {
  return [...exec_vnode.matchAll(/ncpus=(\d+)/g)].reduce((sum, match) => sum + Number(match[1]), 0);
}

test("properties: run limits hold after a cycle", () => {
  forSeeds("limits", (random) => {
    const { snapshot, policies, universe } = worldOf(random);
    const started = new Set(starts(cycle(universe, policies, INPUT)).map(({ job }) => job));
    const running = (queue: string | undefined, jobs: readonly SchedJob[]) =>
      jobs.filter((job) => (job.state === "R" || started.has(job.id)) && (queue === undefined || job.queue === queue));
    for (const scope of [
      { queue: undefined, attrs: snapshot.server.attrs },
      ...snapshot.queues.map(({ name, attrs }) => ({ queue: name, attrs })),
    ]) {
      const all = running(scope.queue, snapshot.jobs);
      const isNew = (jobs: readonly SchedJob[]) => jobs.some((job) => started.has(job.id));
      for (const [key, limit] of Object.entries((scope.attrs["max_run"] ?? {}) as Record<string, number>)) {
        const [kind, name] = key.split(":");
        if (name === "PBS_GENERIC") continue;
        const counted = kind === "o" ? all : all.filter((job) => (kind === "u" ? job.user : job.group) === name);
        // Jobs that ran before the limit was set may exceed it, but no further start may.
        assert.ok(counted.length <= limit || !isNew(counted), `${key}=${limit}: ${counted.length} run`);
      }
    }
  });
});

test("properties: equal jobs of one queue get equal answers, and a later one never runs before an earlier", () => {
  forSeeds("equal", (random) => {
    const { snapshot, policies } = worldOf(random);
    const twins = snapshot.jobs.filter((job) => job.state === "Q").map((job) => ({ ...job, id: `t${job.id}`, rank: job.rank + 500 }));
    const doubled = { ...snapshot, jobs: [...snapshot.jobs, ...twins] };
    const universe = createUniverse(doubled, { policy: policies.prime, times_matter: false });
    const result = cycle(universe, policies, INPUT);
    const started = new Set(starts(result).map(({ job }) => job));
    const comments = new Map(
      result.decisions.flatMap((decision) => (decision.kind === "comment" ? [[decision.job, decision.comment]] : [])),
    );
    for (const twin of twins) {
      const original = twin.id.slice(1);
      if (started.has(twin.id)) assert.ok(started.has(original), `${twin.id} before ${original}`);
      if (!started.has(original)) assert.equal(comments.get(twin.id), comments.get(original));
    }
  });
});

test("properties: every queued job of a started queue is started or told why", () => {
  forSeeds("answer", (random) => {
    const { snapshot, policies, universe } = worldOf(random);
    const result = cycle(universe, policies, INPUT);
    const answered = result.decisions.map((decision) => ("job" in decision ? decision.job : "")).sort();
    assert.deepEqual(
      answered,
      snapshot.jobs
        .filter((job) => job.state === "Q")
        .map((job) => job.id)
        .sort(),
    );
  });
});

test("properties: a cycle leaves the universe as it was, and says the same again", () => {
  forSeeds("undo", (random) => {
    const { policies, universe } = worldOf(random);
    const before = describeUniverse(universe);
    const first = cycle(universe, policies, INPUT);
    assert.deepEqual(describeUniverse(universe), before);
    const second = cycle(universe, policies, INPUT);
    assert.deepEqual([second.decisions, second.log], [first.decisions, first.log]);
  });
});

test("properties: a mirror kept by deltas equals one made from the same objects", () => {
  forSeeds("deltas", (random) => {
    const { policies, universe } = worldOf(random);
    for (let step = 0; step < 6; step++) {
      applyDelta(universe, { revision: universe.revision + 1, changes: randomChanges(random, universe) });
      const fresh = createUniverse(snapshotOfUniverse(universe), { policy: policies.prime, times_matter: false });
      assert.deepEqual(describeUniverse(universe), describeUniverse(fresh));
      const [kept, made] = [cycle(universe, policies, INPUT), cycle(fresh, policies, INPUT)];
      assert.deepEqual(kept.decisions, made.decisions);
    }
  });
});

function snapshotOfUniverse(universe: Universe): Snapshot {
  return {
    revision: universe.revision,
    server: universe.server,
    sched: universe.sched,
    resources: [...universe.resources.values()],
    queues: [...universe.queues.values()].sort((a, b) => a.order - b.order).map(({ name, attrs }) => ({ name, attrs })),
    nodes: [...universe.nodes.values()],
    jobs: [...universe.jobs.values()],
    resvs: [],
  };
}

function randomChanges(random: Prng, universe: Universe): Change[] {
  const changes: Change[] = [];
  const [jobs, nodes, queues] = [[...universe.jobs.values()], [...universe.nodes.values()], [...universe.queues.values()]];
  for (let count = random.int(1, 5); count > 0; count--) {
    const kind = random.int(0, 8);
    const job = jobs.length === 0 ? undefined : random.pick(jobs);
    const node = nodes.length === 0 ? undefined : random.pick(nodes);
    if (kind === 0) changes.push({ put: "job", value: randomJob(random, 2000 + universe.revision * 10 + count, queues) });
    else if (kind === 1 && job !== undefined) changes.push({ drop: "job", id: job.id });
    else if (kind === 2 && job !== undefined)
      changes.push({ put: "job", value: { ...job, comment: random.pick(["a", "b"]), rank: job.rank + random.int(0, 3) } });
    else if (kind === 3 && job !== undefined) changes.push({ put: "job", value: { ...job, state: random.pick(["Q", "R", "H"]) } });
    else if (kind === 4 && node !== undefined)
      changes.push({ put: "node", value: { ...node, attrs: { ...node.attrs, state: random.chance(0.5) ? [] : ["offline"] } } });
    else if (kind === 5 && node !== undefined) changes.push({ put: "node", value: { ...node, assigned: { ncpus: random.int(0, 2) } } });
    else if (kind === 6 && nodes.length > 1 && node !== undefined) changes.push({ drop: "node", id: node.name });
    else if (kind === 7)
      changes.push({
        put: "queue",
        value: { name: "workq", attrs: { ...universe.queues.get("workq")?.attrs, max_run: { "u:PBS_GENERIC": random.int(0, 5) } } },
      });
    else if (kind === 8 && node !== undefined)
      changes.push({
        put: "node",
        value: { ...node, attrs: { ...node.attrs, ...(random.chance(0.5) ? { queue: "high" } : { queue: undefined }) } },
      });
  }
  return changes;
}

/** The snapshot after the server has carried out the decisions. */
function carryOut(snapshot: Snapshot, started: readonly { readonly job: string; readonly exec_vnode: string }[]): Snapshot {
  let { nodes } = snapshot;
  const places = new Map(started.map(({ job, exec_vnode }) => [job, exec_vnode]));
  const jobs = snapshot.jobs.map((job) => (places.has(job.id) ? { ...job, state: "R", exec_vnode: places.get(job.id) as string } : job));
  for (const job of jobs) {
    const where = places.get(job.id);
    if (where === undefined) continue;
    const names = new Set(
      where
        .replaceAll(/[()]/g, "")
        .split("+")
        .map((piece) => piece.split(":")[0]),
    );
    nodes = nodes.map((node) => (names.has(node.name) ? taking(node, job, job.place.includes("excl")) : node));
  }
  return { ...snapshot, nodes, jobs };
}
