// Which staged-in copies are removed again.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { FarCopies } from "#mom/agent/far-copy.ts";
import { removeStagedIn, stageIn, stageInFar } from "#mom/agent/stage-work.ts";
import type { FilePlan } from "#mom/job/agent-link.ts";

type Get = FarCopies["get"];

function inDirectory(work: (dir: string, plan: FilePlan) => Promise<void>): () => Promise<void> {
  return async () => {
    const dir = mkdtempSync(join(tmpdir(), "partita-stage-"));
    const far = (name: string) => ({ local: `${dir}/`, remote: { host: "other", path: name } });
    const plan = { owner: null, staged: `${dir}/1.s.SI`, stagein: [far("a"), far("b")], stageout: [] } as unknown as FilePlan;
    try {
      await work(dir, plan);
    } finally {
      rmSync(dir, { recursive: true });
    }
  };
}
const copies = (get: Get): FarCopies => ({ get }) as unknown as FarCopies;
const copyOf =
  (dir: string): Get =>
  async (_host, path, _local, onPlace) => {
    onPlace(`${dir}/${path}`);
    writeFileSync(`${dir}/${path}`, "copied");
    return true;
  };

test(
  "copies of an agent that was killed are removed by the next one, what stood there before stays",
  inDirectory(async (dir, plan) => {
    writeFileSync(`${dir}/b`, "mine");
    const copy = copyOf(dir);
    let isKilled = false;
    const killed: Get = async (...args) => {
      await copy(...args);
      isKilled = true;
      return new Promise<boolean>(() => undefined);
    };
    void stageInFar(plan, copies(killed));
    while (!isKilled) await new Promise((resolve) => setImmediate(resolve));
    assert.ok(existsSync(`${dir}/a`));
    const refused: Get = async (host, path, local, onPlace) => {
      if (path === "b") throw new Error("no right");
      return copy(host, path, local, onPlace);
    };
    await assert.rejects(stageInFar(plan, copies(refused)), /Unable to stage in .* from other:b: no right/);
    assert.deepEqual(readdirSync(dir), ["b"]);
  }),
);

test(
  "a list of an earlier release is read, too",
  inDirectory(async (dir, plan) => {
    for (const name of ["a", "b", "c", "from"]) writeFileSync(`${dir}/${name}`, "x");
    writeFileSync(plan.staged, JSON.stringify([`${dir}/a`, `${dir}/b`]));
    const item = { local: `${dir}/d`, remote: { host: null, path: `${dir}/from` } };
    stageIn({ ...plan, stagein: [item] }, new Set());
    assert.ok(existsSync(`${dir}/d`));
    removeStagedIn(plan);
    assert.deepEqual(readdirSync(dir), ["c", "from"]);
  }),
);
