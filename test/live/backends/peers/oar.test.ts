// Clusters of type oar against a real OAR: by its commands and by its REST API.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import type { ClusterAdapter, JobBatch, JobSighting, JobText } from "#backends/contract/cluster.ts";
import { BackendError } from "#backends/contract/fault.ts";
import { openCluster } from "#backends/open-cluster.ts";
import { until } from "../../complex.ts";
import { owner, startFreshPeer, stopPeer, whyNoPeer } from "./peer-bed.ts";

const skip = whyNoPeer("oar") ?? false;
before(() => skip === false && startFreshPeer("oar"));
after(() => skip === false && stopPeer("oar"));

const URL = "http://127.0.0.1:26668/oarapi";
const WAYS = ["commands", "rest"] as const;
/** Answers take long on a busy machine. */
const PATIENT = { timeout: "120" };

type Bed = {
  readonly dir: string;
  readonly open: (more?: Readonly<Record<string, string>>) => ClusterAdapter;
  readonly batch: (jobs: readonly JobText[], more?: Partial<JobBatch>) => JobBatch;
};

function bed(t: TestContext, way: (typeof WAYS)[number]): Bed {
  const dir = mkdtempSync(join(tmpdir(), "partita-oar-"));
  chmodSync(dir, 0o1777);
  writeFileSync(join(dir, "credentials"), "batch1 batch1\n", { mode: 0o600 });
  const grid = `t${process.pid.toString(36)}${Math.floor(Math.random() * 36 ** 4).toString(36)}`;
  const options = way === "rest" ? { url: URL, credentials: join(dir, "credentials"), ...PATIENT } : PATIENT;
  const open: Bed["open"] = (more = {}) =>
    openCluster({ name: "luke", type: "oar", grid, options: { ...options, ...more }, user: null, state_dir: dir });
  let serial = 0;
  t.after(async () => {
    const cluster = open();
    await cluster.cancel(await cluster.list());
    rmSync(dir, { recursive: true, force: true });
  });
  const common = {
    isFirst: true,
    walltime_s: 300,
    best_effort: false,
    project: null,
    queue: null,
    job_type: null,
    properties: null,
  } as const;
  return {
    dir,
    open,
    batch: (jobs, more = {}) => ({
      ...common,
      tag: `${grid}.luke.${++serial}`,
      owner: owner(),
      jobs,
      resources: { kind: "hierarchy", resources: "/resource_id=1", cpus: 1 },
      ...more,
    }),
  };
}

const shell = (script: string, ...words: readonly string[]): JobText => ({
  exec: ["/bin/sh", "-c", script],
  parameters: words,
  env: {},
  directory: "/",
  output: null,
});

async function ended(cluster: ClusterAdapter, jobs: readonly JobSighting[]): Promise<readonly JobSighting[]> {
  const ids = new Set(jobs.map(({ id }) => id));
  await until("the end of the jobs", async () => !(await cluster.list()).some(({ id }) => ids.has(id)));
  return cluster.outcomes(jobs);
}

for (const way of WAYS) {
  test(`${way}: jobs are held, start when they are released, and tell how they ended`, { skip }, async (t) => {
    const { dir, open, batch } = bed(t, way);
    const cluster = open();
    assert.match((await cluster.probe()).text, /^oar 2\.5/);
    assert.deepEqual(await cluster.capacity(), { total: 16, free: 16 });
    const print = `printf '%s|' "$CIGRI_X" "$PWD" "$#" "$1" > ${dir}/out-$2; cat "$CIGRI_NODE_FILE" >> ${dir}/out-$2; id -un >> ${dir}/out-$2; exit $2`;
    const jobs = [0, 66].map((code) => ({
      ...shell(print, "x", `it's "é" $HOME`, String(code)),
      env: { CIGRI_X: "a\n'b'" },
      directory: "~",
    }));
    const submitted = await cluster.submit(batch(jobs));
    const listed = await cluster.list();
    assert.deepEqual(
      listed.map(({ id, index, state, user }) => [id, index, state, user]).sort(),
      submitted.map(({ id }, index) => [id, index, "queued", "batch1"]).sort(),
    );
    assert.ok(!existsSync(join(dir, "out-0")), "a held job does not start");
    await cluster.release(submitted);
    await cluster.release(submitted);
    const outcomes = await ended(cluster, submitted);
    assert.deepEqual(
      outcomes.map(({ index, ending, exit_code }) => [index, ending, exit_code]),
      [
        [0, "exit", 0],
        [1, "exit", 66],
      ],
    );
    assert.equal(readFileSync(join(dir, "out-66"), "utf8"), `a\n'b'|/home/batch1|2|it's "é" $HOME|127.0.0.1\nbatch1\n`);
  });

  test(`${way}: jobs end at their limit, by a deletion and for a local user; each is told apart`, { skip }, async (t) => {
    const { open, batch } = bed(t, way);
    const cluster = open();
    const [limited, deleted, preempted] = await Promise.all([
      cluster.submit(batch([shell("sleep 600")], { walltime_s: 5 })),
      cluster.submit(batch([shell("sleep 600")])),
      cluster.submit(
        batch([shell("sleep 600")], { best_effort: true, resources: { kind: "hierarchy", resources: "/resource_id=14", cpus: 14 } }),
      ),
    ]);
    const all = [...limited, ...deleted, ...preempted];
    await cluster.release(all);
    await until("the jobs run", async () => (await cluster.list()).filter(({ state }) => state === "running").length === 3);
    await cluster.cancel(deleted);
    await cluster.cancel(deleted);
    const local = await cluster.submit(
      batch([shell("exit 0")], { resources: { kind: "hierarchy", resources: "/resource_id=16", cpus: 16 } }),
    );
    await cluster.release(local);
    const outcomes = await ended(cluster, [...all, ...local]);
    assert.deepEqual(
      outcomes.map(({ ending }) => ending),
      ["walltime", "killed", "killed", "exit"],
    );
  });

  test(`${way}: a submission that is sent again is found; waiting jobs are deleted, running ones continue`, { skip }, async (t) => {
    const { open, batch } = bed(t, way);
    const cluster = open();
    const asked = batch(Array.from({ length: 20 }, () => shell("sleep 300")));
    const first = await cluster.submit(asked);
    const again = await open().submit({ ...asked, isFirst: false });
    assert.deepEqual(again.map(({ id, index }) => [id, index]).sort(), first.map(({ id, index }) => [id, index]).sort());
    await cluster.release(first);
    await until("16 jobs run", async () => (await cluster.list()).filter(({ state }) => state === "running").length === 16);
    assert.equal((await cluster.capacity()).free, 0);
    // OAR holds jobs some seconds after it was asked to; the grid asks again until no job waits.
    await until("no job waits", async () => {
      await cluster.cancel(first, { queued_only: true });
      return (await cluster.list()).every(({ state }) => state === "running");
    });
    assert.equal((await cluster.list()).length, 16);
    await cluster.cancel(first);
    await ended(cluster, first);
  });

  test(`${way}: impossible requests, unknown jobs`, { skip }, async (t) => {
    const { open, batch } = bed(t, way);
    const cluster = open();
    const impossible = batch([shell("exit 0")], { resources: { kind: "hierarchy", resources: "/nodes=9/resource_id=1", cpus: 9 } });
    await assert.rejects(
      cluster.submit(impossible),
      (error) => error instanceof BackendError && error.kind === "impossible" && !error.uncertain,
    );
    const [lost] = await cluster.outcomes([{ tag: "t.luke.1", index: 0, id: "999999", user: "batch1" }]);
    assert.equal(lost?.ending, "lost");
  });
}

test("a wrong password is a fault of the configuration", { skip }, async (t) => {
  const { dir, open } = bed(t, "rest");
  const wrong = join(dir, "wrong");
  writeFileSync(wrong, "batch1 sesame\n", { mode: 0o600 });
  await assert.rejects(
    open({ credentials: wrong }).list(),
    (error) => error instanceof BackendError && error.kind === "configuration" && !/sesame/.test(error.message),
  );
});
