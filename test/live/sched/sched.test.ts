// pbs_sched as a process, against a server that the test scripts, so that it can refuse, lag and break the protocol.

import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Decision, SchedJob, Snapshot, Verdict } from "#protocol/sched-link.ts";
import { frameTypes } from "#protocol/schema-link.ts";
import { type LinkServer, listenLinks, type ServerLink } from "#protocol/wire/ipc-transport.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { jobOf, snapshotOf } from "../../sched/world.ts";
import { type Home, lines, logOf, makeHome, makePrivate, PATIENCE_MS, PROGRAM, until } from "../sched-bed.ts";

const pbsSched = ({ env }: Home, ...args: string[]) =>
  spawnSync(process.execPath, ["--no-warnings", PROGRAM, ...args], { env, encoding: "utf8", timeout: PATIENCE_MS });

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}

describe("pbs_sched: by hand", () => {
  const world = makeHome();
  after(() => rmSync(world.dir, { recursive: true, force: true }));

  test("pbs_sched: version, usage and wrong options", () => {
    assert.match(pbsSched(world, "--version").stdout, /^pbs_version = /);
    const wrong = pbsSched(world, "-a");
    assert.deepEqual([wrong.status, wrong.stdout], [1, ""]);
    assert.match(wrong.stderr, /^usage: pbs_sched \[-d home\]/);
  });

  test("pbs_sched: without its directory it ends with 1 and prints nothing", () => {
    const { status, stdout, stderr } = pbsSched(world, "-I", "nosuch");
    assert.deepEqual([status, stdout, stderr], [1, "", ""]);
  });

  test("pbs_sched: a directory that others can write is refused", () => {
    const dir = makePrivate(world.home, "_open");
    chmodSync(dir, 0o777);
    const { status, stderr } = pbsSched(world, "-I", "open");
    assert.equal(status, 1);
    assert.match(stderr, /can be written by group or others/);
  });

  test("pbs_sched: goes into the background, holds its lock, ends on SIGTERM", async () => {
    const dir = makePrivate(world.home, "_s1");
    const first = pbsSched(world, "-I", "s1");
    assert.deepEqual([first.status, first.stderr], [0, ""]);
    const pid = Number(readFileSync(join(dir, "sched.lock"), "utf8"));
    assert.ok(lives(pid));
    const second = pbsSched(world, "-I", "s1");
    assert.deepEqual([second.status, second.stderr], [1, "pbs_sched: another scheduler running\n"]);
    assert.match(readFileSync(`/proc/${pid}/cmdline`, "utf8"), /pbs_sched/);
    process.kill(pid, "SIGTERM");
    await until("the daemon has ended", () => !lives(pid));
    assert.deepEqual(lines(join(world.home, "sched_logs_s1")).slice(-3), [
      "0002;pbs_sched;Svr;die;caught signal 15",
      "0002;pbs_sched;Svr;Log;Log closed",
      "",
    ]);
  });
});

/** A server that answers hello with a snapshot and records what it receives. */
type Fake = {
  readonly server: LinkServer;
  readonly frames: { readonly type: string; readonly data: unknown }[];
  link: ServerLink | null;
  snapshot: Snapshot;
  hellos: number;
  verdict(decision: Decision): Verdict;
};

describe("pbs_sched: with a server", () => {
  const world = makeHome();
  const logs = join(world.home, "sched_logs");
  let fake: Fake;
  let child: ChildProcess;
  let cycle = 0;

  const frame = (type: string, from = 0) => fake.frames.slice(from).find((one) => one.type === type)?.data;
  /** Runs a cycle to its end; returns the decisions. */
  const runCycle = async (during?: () => void): Promise<Decision[]> => {
    const from = fake.frames.length;
    fake.link?.send("sched-cycle", { cycle: ++cycle, command: 5 });
    during?.();
    await until("the cycle ends", () => frame("sched-cycle-end", from));
    return fake.frames
      .slice(from)
      .flatMap((one) => (one.type === "sched-decisions" ? (one.data as { decisions: Decision[] }).decisions : []));
  };
  const delta = (revision: number, ...changes: unknown[]) => fake.link?.send("sched-delta", { revision, changes });

  before(async () => {
    makePrivate(world.home);
    const snapshot = snapshotOf({
      nodes: "a ncpus=4",
      jobs: "1 ncpus=2; 2 ncpus=8",
      sched: { sched_priv: join(world.home, "sched_priv"), sched_log: logs },
    });
    fake = { frames: [], link: null, snapshot, hellos: 0, verdict: () => ({ ok: true }) } as unknown as Fake;
    const server = await listenLinks({
      path: serverSocketPath(world.home),
      types: frameTypes("sched-to-server"),
      everyone: false,
      onFrame(link, type, data) {
        fake.frames.push({ type, data });
        if (type === "sched-hello") {
          fake.link = link;
          fake.hellos++;
          link.welcome();
          link.send("sched-snapshot", fake.snapshot);
        } else if (type === "sched-decisions") {
          const { cycle: number, decisions } = data as { cycle: number; decisions: Decision[] };
          link.send("sched-verdicts", { cycle: number, verdicts: decisions.map(fake.verdict) });
        }
      },
    });
    Object.assign(fake, { server });
    child = spawn(process.execPath, ["--no-warnings", PROGRAM, "-N"], { env: world.env, stdio: ["ignore", "ignore", "inherit"] });
    await until("hello", () => fake.hellos === 1);
    await until("the snapshot is taken", () => logOf(logs).includes("Connected to the server"));
  });
  after(async () => {
    child.kill("SIGKILL");
    await fake.server.close();
    rmSync(world.dir, { recursive: true, force: true });
  });

  test("pbs_sched: a start that the server refuses is logged, the job is told, the cycle goes on", async () => {
    fake.verdict = (decision) => (decision.kind === "run" ? { ok: false, code: 15018, text: "Job deleted" } : { ok: true });
    const decisions = await runCycle();
    assert.deepEqual(
      decisions.map(({ kind }) => kind),
      ["run", "comment", "comment"],
    );
    assert.deepEqual(
      decisions.map((one) => ("comment" in one ? `${one.job} ${one.comment}` : "")),
      ["", "2 Can Never Run: Insufficient amount of resource: ncpus (R: 8 A: 4 T: 4)", "1 Not Running: PBS Error: Job deleted"],
    );
    await until("the log is written", () => logOf(logs).includes("Leaving Scheduling Cycle"));
    assert.deepEqual(
      lines(logs).filter((line) => line.includes(";Job;1;")),
      ["0080;pbs_sched;Job;1;Considering job to run", "0040;pbs_sched;Job;1;Failed to run: Job deleted (15018)"],
    );
    assert.deepEqual(await runCycle(), decisions.slice(0, 1), "comments that the server took are not sent again");
  });

  test("pbs_sched: deltas that come during a cycle count for the next one", async () => {
    fake.verdict = () => ({ ok: true });
    const decisions = await runCycle(() => {
      const job: SchedJob = { ...jobOf("1 ncpus=2", 1), state: "R", exec_vnode: "(a:ncpus=2)" };
      const node = { ...(fake.snapshot.nodes[0] as Snapshot["nodes"][number]), assigned: { ncpus: 2 }, jobs: ["1"] };
      delta(2, { put: "job", value: job }, { put: "node", value: node });
      delta(3, { put: "job", value: jobOf("3 ncpus=3", 3) });
    });
    assert.deepEqual(
      decisions.map(({ kind }) => kind),
      ["run"],
    );
    assert.deepEqual(
      (await runCycle()).map((one) => ("comment" in one ? one.comment : one.kind)),
      ["Not Running: Insufficient amount of resource: ncpus (R: 3 A: 2 T: 4)"],
    );
  });

  test("pbs_sched: SIGHUP reads the files again", async () => {
    writeFileSync(join(world.home, "sched_priv/sched_config"), "by_queue: False ALL\nnosuch: 1\n", { mode: 0o644 });
    child.kill("SIGHUP");
    await until("the file is read", () =>
      logOf(logs).includes("0040;pbs_sched;Fil;sched_config;Error reading line 2: Unknown config parameter"),
    );
    assert.ok(lines(logs).includes("0002;pbs_sched;Svr;restart;restart on signal 1"));
    assert.ok(lines(logs).includes("0040;pbs_sched;Sched;reconfigure;Scheduler is reconfiguring"));
  });

  test("pbs_sched: directories that fail their checks are a fault until they are right", async () => {
    const configure = async (revision: number, attrs: Record<string, unknown>): Promise<unknown> => {
      const from = fake.frames.length;
      delta(revision, { put: "sched", value: { name: "default", attrs: { ...fake.snapshot.sched.attrs, ...attrs } } });
      fake.link?.send("sched-configure", {});
      return await until("the fault is told", () => frame("sched-fault", from));
    };
    const logs_new = join(world.dir, "logs");
    assert.deepEqual(await configure(4, { sched_log: logs_new }), { fault: "Unable to change the sched_log directory" });
    mkdirSync(logs_new);
    assert.deepEqual(await configure(5, { sched_log: logs_new }), { fault: null });
    await until("the log has moved", () =>
      logOf(logs_new).includes(`0400;pbs_sched;Sched;reconfigure;scheduler log directory is changed to ${logs_new}`),
    );
    const missing = join(world.home, "sched_priv_new");
    assert.deepEqual(await configure(6, { sched_log: logs_new, sched_priv: missing }), {
      fault: "PBS failed validation checks for sched_priv directory",
    });
    const cyclesIn = (): number => logOf(logs_new).split("Starting Scheduling Cycle").length;
    const before = cyclesIn();
    await runCycle();
    assert.equal(cyclesIn(), before, "nothing is scheduled with the files of another directory");
    const open = join(world.dir, "open");
    mkdirSync(open);
    chmodSync(open, 0o777);
    assert.deepEqual(
      await configure(7, { sched_log: open }),
      { fault: "Unable to change the sched_log directory" },
      "others can write there",
    );
    chmodSync(open, 0o755);
    const from = fake.frames.length;
    await runCycle();
    await until("mended and switched on again, it works", () => logOf(open).includes("Starting Scheduling Cycle"));
    assert.deepEqual(frame("sched-fault", from), { fault: null });
    assert.deepEqual(await configure(8, { sched_log: logs_new, sched_priv: missing }), {
      fault: "PBS failed validation checks for sched_priv directory",
    });
    const priv = makePrivate(world.home, "_new");
    assert.deepEqual(await configure(9, { sched_log: logs_new, sched_priv: priv }), { fault: null });
    await until("the directory has changed", () => logOf(logs_new).includes(`scheduler priv directory has changed to ${priv}`));
    // Enabling a scheduler makes it use its files in their present state, even if only a mode has changed.
    chmodSync(join(priv, "sched_config"), 0o777);
    const opened = fake.frames.length;
    await runCycle();
    assert.deepEqual(frame("sched-fault", opened), { fault: "PBS failed validation checks for sched_priv directory" });
    chmodSync(join(priv, "sched_config"), 0o644);
    const closed = fake.frames.length;
    await runCycle();
    assert.deepEqual(frame("sched-fault", closed), { fault: null });
    assert.equal(Number(readFileSync(join(priv, "sched.lock"), "utf8")), child.pid);
    assert.equal(readFileSync(join(world.home, "sched_priv/sched.lock"), "utf8"), "", "the old lock is given back");
  });

  test("pbs_sched: a gap in revisions, and a server that goes and comes, end in a new hello", async () => {
    delta(99, { put: "job", value: jobOf("4", 4) });
    await until("a second hello", () => fake.hellos === 2);
    fake.link?.destroy();
    await until("a third hello", () => fake.hellos === 3);
    assert.deepEqual(
      (await runCycle()).map(({ kind }) => kind),
      ["run", "comment"],
      "the snapshot is what counts",
    );
  });

  test("pbs_sched: ends when the server says quit", async () => {
    const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
    fake.link?.send("sched-quit", {});
    assert.equal(await ended, 0);
    assert.ok(fake.frames.some(({ type }) => type === "sched-leaving"));
    assert.match(logOf(logs), /pbs_sched normal finish pid \d+/, "the third snapshot named the first directory again");
  });
});
