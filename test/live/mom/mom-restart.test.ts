// Mom, starter and file agent are killed and restarted while jobs run: every run is accounted for once, and nothing runs twice.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { MomJob } from "#protocol/mom-link.ts";
import { type Bed, makeBed } from "../mom-bed.ts";
import { ROOT } from "../shared.ts";

async function running(t: TestContext): Promise<Bed> {
  const bed = await makeBed();
  t.after(() => bed.close());
  await bed.launch();
  return bed;
}

const alive = (pid: number): boolean => existsSync(`/proc/${pid}`) && !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
/** Runs until the file `go` is there, then ends with 6. */
const waiter = (bed: Bed, overrides: Parameters<Bed["job"]>[1] = {}): MomJob =>
  bed.job({ argv: ["/bin/sh", "-c", `echo begun; while ! [ -e ${bed.work}/go ]; do sleep 0.1; done; exit 6`] }, overrides);
const helloOf = (bed: Bed) => {
  const hello = bed.said.findLast((each) => each.type === "mom-hello");
  return hello?.type === "mom-hello" ? hello.data.jobs : [];
};
/** "" if the file does not exist. */
const textOf = (path: string): string => (existsSync(path) ? readFileSync(path, "utf8") : "");
const starts = (bed: Bed, job: MomJob): number => readFileSync(join(bed.work, `${job.id}.out`), "utf8").split("begun\n").length - 1;

test("kill -9 of the mom: the job goes on, the next mom reports its end", async (t) => {
  const bed = await running(t);
  const job = waiter(bed);
  bed.start(job);
  const { session_id } = await bed.started(job);
  await bed.end("SIGKILL");
  assert.ok(alive(session_id));
  await bed.launch();
  assert.deepEqual(helloOf(bed), [{ job: job.id, run_count: 1, state: "running", session_id }]);
  writeFileSync(join(bed.work, "go"), "");
  const obit = await bed.obit(job);
  assert.deepEqual([obit.exit_status, obit.stageout_status, starts(bed, job)], [6, 1, 1]);
});

test("a job that ends while no mom is there keeps its status, and its obit is repeated until it is acknowledged", async (t) => {
  const bed = await running(t);
  const job = waiter(bed);
  bed.start(job);
  const { session_id } = await bed.started(job);
  await bed.end("SIGKILL");
  writeFileSync(join(bed.work, "go"), "");
  await bed.until("the job has ended", () => !alive(session_id));
  for (let time = 0; time < 2; time++) {
    const before = bed.said.length;
    await bed.launch();
    const said = await bed.until("obit", () => bed.said.slice(before).find((each) => each.type === "mom-obit"));
    assert.deepEqual(said.type === "mom-obit" && [said.data.exit_status, said.data.stageout_status], [6, 1]);
    if (time === 0) await bed.end("SIGKILL");
  }
  bed.send("mom-obit-ack", { jobs: [{ job: job.id, run_count: 1 }] });
  await bed.until("it is forgotten", () => !readFileSync(`${bed.home}/mom_priv/jobs/records`, "utf8").trim().endsWith(`"breach":null}}`));
  await bed.end("SIGKILL");
  await bed.launch();
  assert.deepEqual([helloOf(bed), starts(bed, job)], [[], 1]);
});

test("kill -9 of the starter: its jobs are lost with nothing left of them, others start under a new one", async (t) => {
  const bed = await running(t);
  const job = waiter(bed);
  bed.start(job);
  const { session_id } = await bed.started(job);
  process.kill(bed.starter_pid, "SIGKILL");
  const obit = await bed.obit(job);
  assert.equal(obit.exit_status, -4);
  assert.match(obit.message ?? "", /starter was lost/);
  assert.equal(alive(session_id), false);
  const next = bed.job({ argv: ["/bin/true"] });
  bed.start(next);
  assert.equal((await bed.obit(next)).exit_status, 0);
});

test("kill -9 of the starter in the midst of a batch of starts: each run is told of once, and none runs twice", async (t) => {
  const bed = await running(t);
  const jobs = Array.from({ length: 120 }, () => waiter(bed));
  bed.start(...jobs);
  const spooled = (job: MomJob): string => textOf(`${bed.home}/spool/${job.id}.OU`);
  await bed.until("some have begun", () => jobs.some((job) => spooled(job).includes("begun")));
  process.kill(bed.starter_pid, "SIGKILL");
  writeFileSync(`${bed.work}/go`, "");
  const statuses = new Map<string, Set<number>>();
  await bed.until("all have ended", () => {
    for (const each of bed.said)
      if (each.type === "mom-obit") statuses.set(each.data.job, (statuses.get(each.data.job) ?? new Set()).add(each.data.exit_status));
    return statuses.size === jobs.length;
  });
  const lost = jobs.filter((job) => statuses.get(job.id)?.has(-4));
  assert.ok(lost.length > 0);
  for (const job of jobs) {
    const text = lost.includes(job) ? spooled(job) : textOf(join(bed.work, `${job.id}.out`));
    const begun = text.split("begun\n").length - 1;
    assert.deepEqual([...(statuses.get(job.id) ?? [])], lost.includes(job) ? [-4] : [6], job.id);
    // A lost run may not have begun yet.
    assert.ok(lost.includes(job) ? begun <= 1 : begun === 1, `${job.id} began ${begun} times`);
  }
});

test("kill -9 of mom and starter together: the job is lost, not run again by itself", async (t) => {
  const bed = await running(t);
  const job = waiter(bed);
  bed.start(job);
  const { session_id } = await bed.started(job);
  process.kill(bed.starter_pid, "SIGKILL");
  await bed.end("SIGKILL");
  await bed.launch();
  assert.equal((await bed.obit(job)).exit_status, -4);
  assert.equal(alive(session_id), false);
});

test("kill -9 of the file agent: it is started again and what it was asked is done", async (t) => {
  const bed = await running(t);
  const agent = (): number[] =>
    readFileSync(`/proc/${bed.pid}/task/${bed.pid}/children`, "latin1")
      .trim()
      .split(" ")
      .map(Number)
      .filter((pid) => pid > 0 && readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("file-agent"));
  const first = bed.job({ argv: ["/bin/true"] });
  bed.start(first);
  await bed.obit(first);
  const [pid] = agent();
  process.kill(pid as number, "SIGKILL");
  const jobs = Array.from({ length: 20 }, () => bed.job({ argv: ["/bin/echo", "hi"] }));
  bed.start(...jobs);
  for (const job of jobs) {
    assert.equal((await bed.obit(job)).exit_status, 0);
    assert.equal(readFileSync(join(bed.work, `${job.id}.out`), "utf8"), "hi\n");
  }
  assert.notEqual(agent()[0], pid);
});

test("pbs_mom -r kills the jobs it finds and has them requeued", async (t) => {
  const bed = await running(t);
  const job = waiter(bed);
  bed.start(job);
  const { session_id } = await bed.started(job);
  await bed.end("SIGINT");
  assert.ok(alive(session_id), "SIGINT leaves jobs alone");
  await bed.launch("-r");
  assert.equal((await bed.obit(job)).exit_status, -11);
  assert.equal(alive(session_id), false);
});

test("SIGTERM: jobs are killed, mom and starter end, and the next mom has the obits", async (t) => {
  const bed = await running(t);
  const job = waiter(bed);
  bed.start(job);
  const { session_id } = await bed.started(job);
  const starter = bed.starter_pid;
  await bed.end("SIGTERM");
  assert.equal(alive(session_id), false);
  await bed.until("the starter has ended", () => !alive(starter));
  await bed.launch();
  assert.equal((await bed.obit(job)).exit_status, -11);
});

test("a hundred jobs while mom and file agent are killed again and again: each has one run and one status", async (t) => {
  const bed = await running(t);
  const jobs = Array.from({ length: 100 }, (_, at) =>
    bed.job({ argv: ["/bin/sh", "-c", `echo begun; sleep 0.0${at % 10}; exit ${at % 7}`] }),
  );
  const ended = new Map<string, number>();
  for (let from = 0; from < jobs.length; from += 20) {
    bed.start(...jobs.slice(from, from + 20));
    await bed.until("some have started", () =>
      bed.said.some((each) => each.type === "mom-started" && Number(each.data.job.split(".")[0]) > from),
    );
    await bed.end("SIGKILL");
    await bed.launch();
    // The server repeats starts that the mom does not hold and never confirmed (mom-host I2).
    const held = new Set(helloOf(bed).map((each) => each.job));
    const confirmed = new Set(bed.said.flatMap((each) => (each.type === "mom-started" || each.type === "mom-obit" ? [each.data.job] : [])));
    bed.start(...jobs.slice(from, from + 20).filter((job) => !held.has(job.id) && !confirmed.has(job.id)));
  }
  await bed.until("all have ended", () => {
    for (const each of bed.said) if (each.type === "mom-obit") ended.set(each.data.job, each.data.exit_status);
    return ended.size === jobs.length;
  });
  for (const [at, job] of jobs.entries()) assert.deepEqual([ended.get(job.id), starts(bed, job)], [at % 7, 1], job.id);
});

test("a starter whose complex was removed kills its jobs and ends", async (t) => {
  const bed = await running(t);
  const job = waiter(bed);
  bed.start(job);
  const { session_id } = await bed.started(job);
  const starter = bed.starter_pid;
  await bed.end("SIGKILL");
  assert.ok(alive(session_id));
  rmSync(`${bed.home}/mom_priv`, { recursive: true });
  await bed.until("job and starter have ended", () => !alive(session_id) && !alive(starter));
});

test("pbs_mom without -N returns when the mom is up; a second one for the same home is refused", async (t) => {
  const bed = await makeBed();
  t.after(() => bed.close());
  const mom = (...args: string[]) =>
    spawnSync(process.execPath, [join(ROOT, "src/mom/main.ts"), ...args], {
      encoding: "utf8",
      env: { ...process.env, PBS_CONF_FILE: join(bed.home, "../pbs.conf") },
    });
  const first = mom();
  assert.deepEqual([first.status, first.stderr], [0, ""]);
  const pid = Number(readFileSync(`${bed.home}/mom_priv/mom.lock`, "utf8"));
  try {
    await bed.until("hello", () => bed.said.length > 0);
    assert.match(readFileSync(`/proc/${pid}/cmdline`, "latin1"), /pbs_mom/);
    const second = mom();
    assert.deepEqual([second.status, second.stderr], [1, `pbs_mom: another mom is running, pid ${pid}\n`]);
  } finally {
    process.kill(pid, "SIGTERM");
    await bed.until("it ends", () => !alive(pid));
  }
  assert.equal(mom("--version").stdout.startsWith("pbs_version = "), true);
  writeFileSync(`${bed.home}/mom_priv/config`, "$nonsense 1\n$wallmult 2\n");
  await bed.launch();
  assert.match(bed.log(), /\$nonsense is not known and ignored/);
  await bed.end("SIGTERM");
  writeFileSync(`${bed.home}/mom_priv/config`, "$cputmult fast\n");
  const wrong = mom();
  assert.deepEqual([wrong.status, wrong.stderr], [1, `pbs_mom: ${bed.home}/mom_priv/config: config line 1: $cputmult must be a number\n`]);
});

test("only its own user and root may talk to a starter", {
  skip: process.getuid?.() === 0 ? false : "needs root to become somebody else",
}, async (t) => {
  const bed = await running(t);
  const path = `${bed.home}/mom_priv/starter.sock`;
  const ask = `const s=require("net").connect(${JSON.stringify(path)});s.on("error",e=>{console.log(e.code);process.exit()});s.on("connect",()=>s.write('{"type":"starter-hello","data":{}}\\f'));s.on("data",()=>{console.log("ANSWERED");process.exit()});s.on("close",()=>console.log("closed"))`;
  const nobody = spawnSync("setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups", process.execPath, "-e", ask], {
    encoding: "utf8",
    cwd: "/",
  });
  assert.match(nobody.stdout, /^EACCES\n/);
  // The mode of the socket keeps the user out. If the socket were open, the credentials of the peer would.
  chmodSync(path, 0o777);
  const again = spawnSync("setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups", process.execPath, "-e", ask], {
    encoding: "utf8",
    cwd: "/",
  });
  assert.match(again.stdout, /^(closed|ECONNRESET|EPIPE)\n$/);
});

/** A mom that knows that its server gives up after a second. */
async function watched(t: TestContext): Promise<{ readonly bed: Bed; readonly ping: () => Promise<string | undefined> }> {
  const bed = await running(t);
  let number = 0;
  const ping = async (): Promise<string | undefined> => {
    const asked = ++number;
    bed.send("mom-ping", { number: asked, silence_s: 1 });
    const pong = await bed.until("an answer", () => bed.said.find((each) => each.type === "mom-pong" && each.data.number === asked));
    return pong.type === "mom-pong" ? pong.data.ill : undefined;
  };
  await ping();
  return { bed, ping };
}
const stop = async (bed: Bed, pid: number): Promise<void> => {
  process.kill(pid, "SIGSTOP");
  await bed.until("it stands", () => /\) T /.test(readFileSync(`/proc/${pid}/stat`, "latin1")));
};

test("SIGSTOP of the mom: when it goes on it asks the server before it starts what came meanwhile", async (t) => {
  const { bed } = await watched(t);
  const hellos = (): number => bed.said.filter(({ type }) => type === "mom-hello").length;
  const before = hellos();
  await stop(bed, bed.pid);
  const job = waiter(bed);
  bed.start(job);
  // The mom must notice the time for which it was stopped.
  await sleep(1000);
  process.kill(bed.pid, "SIGCONT");
  await bed.until("it says hello", () => hellos() > before);
  assert.deepEqual(helloOf(bed), [], "it has read the start and done nothing with it");
  assert.ok(!bed.said.some(({ type }) => type === "mom-accepted"));
  assert.match(bed.log(), /this mom stood still for \d+ seconds: the server is asked what it still wants/);
  bed.start(job);
  await bed.started(job);
  writeFileSync(`${bed.work}/go`, "");
  assert.equal((await bed.obit(job)).exit_status, 6);
  assert.equal(starts(bed, job), 1);
});

for (const [what, pidOf, ill] of [
  ["starter", (bed: Bed) => bed.starter_pid, "the starter of its jobs does not answer"],
  ["file agent", (bed: Bed) => childOf(bed.pid, "pbs_file_agent"), "its file agent does not answer"],
] as const) {
  test(`SIGSTOP of the ${what}: the mom tells its server, and goes on with the job when it is well`, async (t) => {
    const { bed, ping } = await watched(t);
    const pid = pidOf(bed);
    await stop(bed, pid);
    const job = waiter(bed);
    bed.start(job);
    await bed.until("it is taken", () => bed.said.find(({ type }) => type === "mom-accepted"));
    while ((await ping()) !== ill) await sleep(50);
    process.kill(pid, "SIGCONT");
    await bed.started(job);
    while ((await ping()) !== undefined) await sleep(50);
    writeFileSync(`${bed.work}/go`, "");
    assert.equal((await bed.obit(job)).exit_status, 6);
    assert.equal(starts(bed, job), 1);
  });
}

/** The child process of that name. */
function childOf(pid: number, name: string): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
  const found = children.find((child) => readFileSync(`/proc/${child}/cmdline`, "latin1").startsWith(name));
  assert.ok(found !== undefined, `no ${name} among ${children}`);
  return found;
}

test("the system clock is set by two days: a job of an hour goes on", async (t) => {
  const bed = await makeBed();
  t.after(() => bed.close());
  // Our processes cannot be given another time, so the file that the mom reads as its system's clock is changed.
  const ahead = join(bed.work, "ahead");
  const preload = join(bed.work, "clock.mjs");
  const lines = [
    'import { existsSync } from "node:fs";',
    "const real = Date.now;",
    "let by = 0;",
    `setInterval(() => { by = existsSync(${JSON.stringify(ahead)}) ? 172800000 : 0; }, 50).unref();`,
    "Date.now = () => real() + by;",
  ];
  writeFileSync(preload, lines.join("\n"));
  const before = process.env["NODE_OPTIONS"];
  process.env["NODE_OPTIONS"] = `${before ?? ""} --import=${preload}`;
  try {
    await bed.launch();
  } finally {
    if (before === undefined) delete process.env["NODE_OPTIONS"];
    else process.env["NODE_OPTIONS"] = before;
  }
  const job = waiter(bed, { attrs: { Resource_List: { ncpus: 1, walltime: 3600 } } });
  bed.start(job);
  await bed.started(job);
  writeFileSync(ahead, "");
  // The mom samples its jobs every second, and would have ended one at the third sample after that.
  const looks = 3;
  for (let look = 0; look < looks; look++) await sleep(1000);
  writeFileSync(`${bed.work}/go`, "");
  const { exit_status, used } = await bed.obit(job);
  assert.equal(exit_status, 6);
  assert.ok(Number(used["walltime"]) < 3600, `${used["walltime"]}`);
  assert.match(bed.log(), /the system clock was set 17\d{4} seconds forward: walltime of jobs goes on as before/);
});
