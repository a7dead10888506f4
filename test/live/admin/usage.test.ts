// `partita report` and `partita seff` after real jobs.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { type Complex, startComplex, until } from "../complex.ts";

let complex: Complex;
let done: string;
let failed: string;

before(async () => {
  complex = await startComplex();
  complex.qmgr("set server job_history_enable=True");
  done = complex.submit(["-l", "ncpus=2,walltime=0:10:00,mem=100mb", "--", "/bin/sleep", "1"]);
  failed = complex.submit(["--", "/bin/false"]);
  await complex.untilJob(done, "F");
  await complex.untilJob(failed, "F");
  // The accounting file is written a moment after the job's state has changed.
  await until("two E records", () => accounting().split(/;E;/).length > 2);
});
after(() => complex.stop());

const directory = () => join(complex.pbsHome, "server_priv", "accounting");
const accounting = () =>
  readdirSync(directory())
    .map((name) => readFileSync(join(directory(), name), "utf8"))
    .join("");
const partita = (...args: string[]) => complex.run("partita", [...args, "--home", complex.home]);
const report = (...args: string[]) => {
  const { status, stdout, stderr } = partita("report", ...args, "-F", "json");
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout) as { readonly records: number; readonly rows: readonly Record<string, string | number>[] };
};

test("report sums the jobs by user, host and partition", () => {
  const { username } = userInfo();
  const [row] = report("--by", "user").rows;
  assert.deepEqual([row?.["user"], row?.["jobs"], row?.["failed"]], [username, 2, 1]);
  assert.equal(report("--by", "host").rows.length, 1);
  assert.deepEqual(
    report("--by", "partition,queue").rows.map(({ partition, queue }) => [partition, queue]),
    [["pbs-default", "workq"]],
  );
  assert.equal(report("--from", "2000-01", "--to", "2000-12").records, 0);
  assert.match(partita("report").stdout, /^user +jobs +failed +reruns +cpu hours/);
  assert.match(partita("report", "-F", "csv").stdout, /^user,jobs,failed,reruns,cpu_hours/);
});

test("report reads a directory of compressed files", () => {
  const other = mkdtempSync(join(tmpdir(), "partita-accounting-"));
  try {
    writeFileSync(join(other, "20261126.gz"), gzipSync(accounting()));
    assert.equal(report("--accounting", other).records, 2);
    writeFileSync(join(other, "20261127.gz"), "no gzip");
    const { status, stderr } = partita("report", "--accounting", other);
    assert.equal(status, 1);
    assert.match(stderr, /20261127\.gz: incorrect header check/);
  } finally {
    rmSync(other, { recursive: true });
  }
});

test("seff compares what a job has used with its request", () => {
  const { status, stdout, stderr } = partita("seff", done, "-F", "json");
  assert.equal(status, 0, stderr);
  const job = JSON.parse(stdout) as Record<string, number | string>;
  assert.deepEqual([job["job"], job["ncpus"], job["walltime_asked_s"], job["exit_status"]], [done, 2, 600, 0]);
  assert.ok(Number(job["walltime_s"]) >= 1);
  assert.match(partita("seff", failed).stdout, /^State: +F, exit status 1$/m);
});

test("mistakes are named", () => {
  for (const [args, text] of [
    [["report", "--by", "colour"], /--by colour: there are user, group/],
    [["report", "--from", "yesterday"], /--from yesterday is not a day YYYY-MM-DD or a month YYYY-MM/],
    [["report", "--from", "2026-11-02", "--to", "2026-11-01"], /--from 2026-11-02 is after --to 2026-11-01/],
    [["report", "--accounting", "/dev/null"], /the accounting files cannot be read/],
    [["seff", "999999"], /Unknown Job Id 999999/],
  ] as const) {
    const { status, stderr } = partita(...args);
    assert.equal(status, 1, args.join(" "));
    assert.match(stderr, text);
  }
});
