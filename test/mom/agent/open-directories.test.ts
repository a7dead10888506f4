// Files that users may plant in directories where the file agent creates files and directories of jobs: spool, the directory of
// TMPDIRs, $jobdir_root.

import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { finishJob, prepareJobs } from "#mom/agent/file-work.ts";
import type { FilePlan, OutputPlan, Prepared } from "#mom/job/agent-link.ts";
import { openHistory } from "#qmgr/history.ts";
import { exited, job, OWNER, started, world } from "../world.ts";

const isRoot = process.geteuid?.() === 0;

function inDirectory(work: (dir: string) => void): void {
  const dir = mkdtempSync(join(tmpdir(), "open-directories-"));
  try {
    for (const name of ["spool", "tmp", "aux", "root", "undelivered"]) mkdirSync(join(dir, name));
    work(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function planIn(dir: string): FilePlan {
  const output = (letter: "o" | "e"): OutputPlan => ({
    letter,
    how: "spool",
    path: join(dir, "spool", `1.n1.${letter}`),
    target: { host: null, path: join(dir, `out.${letter}`) },
    name: `1.n1.${letter}`,
    remove: false,
  });
  return {
    job: "1.n1",
    run_count: 1,
    owner: null,
    umask: 0o77,
    script: null,
    nodefile: join(dir, "aux/1.n1"),
    tmpdir: join(dir, "tmp/pbs.1.n1"),
    sandbox: join(dir, "root/pbs.1.n1.x8z"),
    stdout: output("o"),
    stderr: output("e"),
    undelivered: join(dir, "undelivered"),
    stagein: [],
    stageout: [{ local: join(dir, "root/pbs.1.n1.x8z/result"), remote: { host: null, path: join(dir, "result") } }],
    staged: join(dir, "1.n1.SI"),
    user: "",
    home: dir,
    scp: [],
  };
}

function prepare(plan: FilePlan): Extract<Prepared, { ok: true }> {
  const [made] = prepareJobs([{ plan, script_text: null, nodefile_text: "n1\n" }]);
  assert.equal(made?.ok, true, JSON.stringify(made));
  return made as Extract<Prepared, { ok: true }>;
}

/** What may occupy the path of a job's directory. */
const PLANTS: { readonly [what: string]: (path: string, dir: string) => void } = {
  "a file": (path) => writeFileSync(path, "kept"),
  "a link to a directory of the owner's": (path, dir) => symlinkSync(join(dir, "undelivered"), path),
  "a link that leads nowhere": (path) => symlinkSync("nowhere", path),
  "a directory that others could write, moved here": (path) => {
    mkdirSync(path);
    chmodSync(path, 0o777);
  },
  ...(isRoot
    ? {
        "a directory of another user's": (path: string) => {
          mkdirSync(path, { mode: 0o700 });
          chownSync(path, 65534, 65534);
        },
      }
    : {}),
};

for (const [what, plant] of Object.entries(PLANTS)) {
  test(`${what} in the way of TMPDIR and sandbox: both get a name with a random part, and are removed in the end`, () =>
    inDirectory((dir) => {
      const plan = planIn(dir);
      plant(plan.tmpdir, dir);
      plant(plan.sandbox as string, dir);
      const before = [plan.tmpdir, plan.sandbox as string].map((path) => lstatSync(path).ino);
      const { places } = prepare(plan);
      assert.ok(places !== undefined);
      assert.match(places.tmpdir.slice(dir.length), /^\/tmp\/pbs\.1\.n1\.[0-9a-f]{8}$/);
      assert.match((places.sandbox ?? "").slice(dir.length), /^\/root\/pbs\.1\.n1\.x8z\.[0-9a-f]{8}$/);
      for (const path of [places.tmpdir, places.sandbox as string]) {
        assert.equal(lstatSync(path).mode & 0o7777, 0o700);
        assert.deepEqual(readdirSync(path), []);
      }
      writeFileSync(join(places.sandbox as string, "result"), "42");
      const finished = finishJob({ plan: { ...plan, ...places }, success: true, output: "deliver" });
      assert.equal(readFileSync(join(dir, "result"), "utf8"), "42", finished.failures.join());
      assert.deepEqual(
        [places.tmpdir, places.sandbox as string].map((path) => existsSync(path)),
        [false, false],
      );
      assert.deepEqual(
        [plan.tmpdir, plan.sandbox as string].map((path) => lstatSync(path).ino),
        before,
        "what was in the way is untouched",
      );
    }));
}

test("directories that a first request made are used again: asked twice, nothing is left behind", () =>
  inDirectory((dir) => {
    const plan = planIn(dir);
    assert.equal(prepare(plan).places, undefined);
    assert.equal(prepare(plan).places, undefined);
    assert.deepEqual(readdirSync(join(dir, "tmp")), ["pbs.1.n1"]);
  }));

test("what somebody planted in spool is replaced in one step or moved away whole, never walked through or written to", () =>
  inDirectory((dir) => {
    const { stdout, stderr, ...rest } = planIn(dir);
    const plan = { ...rest, sandbox: null, stageout: [], stdout: { ...stdout, target: null }, stderr: { ...stderr, target: null } };
    mkdirSync(plan.stdout.path);
    writeFileSync(join(plan.stdout.path, "planted"), "kept");
    writeFileSync(join(dir, "victim"), "kept");
    linkSync(join(dir, "victim"), plan.stderr.path);
    prepare(plan);
    const aside = readdirSync(join(dir, "spool")).find((name) => name.startsWith("1.n1.o."));
    assert.equal(readFileSync(join(dir, "spool", aside ?? "", "planted"), "utf8"), "kept");
    for (const { path } of [plan.stdout, plan.stderr]) assert.ok(lstatSync(path).isFile() && lstatSync(path).nlink === 1);
    writeFileSync(plan.stderr.path, "output");
    assert.equal(readFileSync(join(dir, "victim"), "utf8"), "kept");
    // output that cannot be delivered goes to undelivered, where a user has planted a directory too
    mkdirSync(join(dir, "undelivered/1.n1.e"));
    const { failures } = finishJob({ plan, success: false, output: "deliver" });
    assert.equal(readFileSync(join(dir, "undelivered/1.n1.e"), "utf8"), "output", failures.join());
  }));

test("the directories that were made are those of the job: TMPDIR, PBS_JOBDIR, what the server hears, what is removed, also after a restart of the mom", () => {
  const w = world({ config: {} });
  const j = job({ attrs: { sandbox: "PRIVATE" } });
  w.on({ kind: "start", job: j, owner: OWNER });
  const places = { tmpdir: "/var/tmp/pbs.1.n1.0f", sandbox: "/home/alice/pbs.1.n1.x8z.1e", stagein: [], stageout: [] };
  w.on({
    kind: "prepared",
    outcome: { job: j.id, run_count: 1, ok: true, stdout: "/pbs/spool/1.n1.OU", stderr: "/pbs/spool/1.n1.ER", places },
  });
  const spec = w.actions.findLast((action) => action.kind === "start")?.spec;
  const named = spec?.env.filter((entry) => /^(TMPDIR|PBS_JOBDIR)=/.test(entry)).sort();
  assert.deepEqual(named, [`PBS_JOBDIR=${places.sandbox}`, `TMPDIR=${places.tmpdir}`]);
  assert.equal(spec?.cwd, places.sandbox);
  const saved = w.records.get(j.id);
  assert.deepEqual([saved?.plan.tmpdir, saved?.plan.sandbox], [places.tmpdir, places.sandbox]);
  w.on(started(j, w.now_ms));
  w.on(exited(j, w.now_ms, { code: 0 }));
  const finish = w.actions.findLast((action) => action.kind === "finish")?.request.plan;
  assert.deepEqual([finish?.tmpdir, finish?.sandbox], [places.tmpdir, places.sandbox]);
});

test("qmgr's history in spool must be a file of one's own", { skip: isRoot ? false : "needs root" }, () =>
  inDirectory((dir) => {
    const file = join(dir, "spool/.pbs_qmgr_history_root");
    writeFileSync(file, "delete queue workq\n", { mode: 0o666 });
    chownSync(file, 65534, 65534);
    const history = openHistory(undefined, dir, { name: "root", uid: 0 });
    assert.deepEqual(history.lines, []);
    assert.match(history.fault ?? "", /^Cannot read\/write history file/);
  }),
);
