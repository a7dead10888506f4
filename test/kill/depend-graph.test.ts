// A random graph of a thousand jobs that each wait for up to three earlier jobs, while server, scheduler and mom are killed. No
// job starts before the jobs it waits for; every job that can run does so once; all others are deleted. PARTITA_SEED repeats
// the graph and the choices (not the timing).

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Prng, prng } from "#support/prng.ts";
import { type Complex, startComplex, until } from "../live/complex.ts";
import { killAtRandom, revive } from "./killer.ts";

const JOBS = 1000;
const LAYER_JOBS = 50;
const TYPES = ["afterok", "afterok", "afterany", "afternotok", "after"] as const;
const asRoot = process.geteuid?.() === 0;
const as = asRoot ? { as: "pbsuser1" } : {};
const seed = process.env["PARTITA_SEED"] ?? String(Math.trunc(Math.random() * 1e9));

type Edge = { readonly type: (typeof TYPES)[number]; readonly parent: number };
type Vertex = { readonly status: number; readonly edges: readonly Edge[] };

let complex: Complex;
let ended: string;
let early: string;

before(async () => {
  process.stdout.write(`seed ${seed}\n`);
  complex = await startComplex({ mode: asRoot ? "system" : "user" });
  [ended, early] = ["ended", "early"].map((name) => {
    const path = join(complex.work(), name);
    mkdirSync(path);
    chmodSync(path, 0o1777);
    return path;
  }) as [string, string];
  complex.qmgr("set server job_history_enable=True", "set node @default resources_available.ncpus=64", "set server scheduling=False");
});
after(() => complex?.stop());

function graph(random: Prng): readonly Vertex[] {
  return Array.from({ length: JOBS }, (_, at) => {
    // Jobs of one layer are submitted together, so they know only the ids of earlier layers.
    const known = Math.floor(at / LAYER_JOBS) * LAYER_JOBS;
    const count = known === 0 ? 0 : random.int(0, 3);
    const edges = Array.from({ length: count }, () => ({
      type: random.pick(TYPES),
      parent: random.int(Math.max(0, known - 200), known - 1),
    }));
    return { status: random.chance(0.85) ? 0 : 3, edges };
  });
}

/** Whether each job can run. */
function runs(vertices: readonly Vertex[]): readonly boolean[] {
  const result: boolean[] = [];
  const isMet = ({ type, parent }: Edge): boolean => {
    const { status } = vertices[parent] as Vertex;
    return result[parent] === true && (type === "afterok" ? status === 0 : type === "afternotok" ? status !== 0 : true);
  };
  for (const { edges } of vertices) result.push(edges.every(isMet));
  return result;
}

/** The job records its end, and the jobs that should have preceded it. */
function line({ status, edges }: Vertex, at: number, ids: readonly string[]): string {
  // A job that is awaited by `after` has started, but may not have written its first line yet.
  const parents = edges.flatMap(({ type, parent }) => (type === "after" ? [] : [parent]));
  const checks = parents.map((parent) => `[ -e ${ended}/${parent} ] || echo ${parent} >> ${early}/${at}`);
  const script = [...checks, "sleep 0.0$(($$ % 7))", `echo x >> ${ended}/${at}`, `exit ${status}`].join("\n");
  const depend = edges.map(({ type, parent }) => `${type}:${ids[parent]}`).join(",");
  const args = ["-j", "oe", "-o", "/dev/null", ...(depend === "" ? [] : ["-W", `depend=${depend}`])];
  return JSON.stringify({ args, script: `#!/bin/sh\n${script}\n` });
}

function submitAll(vertices: readonly Vertex[]): readonly string[] {
  const ids: string[] = [];
  for (let from = 0; from < JOBS; from += LAYER_JOBS) {
    const lines = vertices.slice(from, from + LAYER_JOBS).map((vertex, at) => line(vertex, from + at, ids));
    ids.push(
      ...complex
        .must("qsub", ["--batch", "-"], { input: `${lines.join("\n")}\n`, ...as })
        .trim()
        .split("\n"),
    );
  }
  return ids;
}

test("a thousand jobs run in an order that their dependencies allow, each once", { timeout: 600_000 }, async (t) => {
  const random = prng(seed);
  const vertices = graph(random.split("graph"));
  const expected = runs(vertices);
  const ids = submitAll(vertices);
  assert.equal(new Set(ids).size, JOBS);
  complex.qmgr("set server scheduling=True");
  const unfinished = (): number | undefined => {
    const { status, stdout } = complex.run("qselect", []);
    return status === 0 ? stdout.split("\n").length - 1 : undefined;
  };
  const kills = await killAtRandom(complex, {
    random: random.split("kills"),
    victims: ["server", "server", "server", "sched", "mom", "mom"],
    goesOn: () => unfinished() !== 0,
  });
  await until("all jobs finished", async () => {
    revive(complex);
    await sleep(500);
    return unfinished() === 0;
  });
  t.diagnostic(
    `seed ${seed}; kills: ${[...kills].map(([victim, count]) => `${victim} ${count}`).join(", ")}; ${expected.filter(Boolean).length} jobs run`,
  );
  assert.deepEqual(readdirSync(early), [], "jobs that began too early");
  const jobs = complex.jobs();
  const faults = vertices.flatMap(({ status }, at) => {
    const job = jobs[ids[at] as string];
    const ran = existsSync(join(ended, String(at)));
    const told = `${job?.job_state} ${job?.["substate"]} ${job?.Exit_status}`;
    const right = expected[at] === true ? `F ${status === 0 ? 92 : 93} ${status}` : "F 92 271";
    return told === right && ran === expected[at] && (job?.run_count ?? 0) === (ran ? 1 : 0)
      ? []
      : [`${at} ${ids[at]}: ${told}, should be ${right}`];
  });
  assert.deepEqual(faults.slice(0, 20), [], `${faults.length} faults; seed ${seed}`);
});
