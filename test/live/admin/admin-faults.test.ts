// `partita` and the init script in case of faults: a store that lost commits, daemons that died, an output reader that has
// gone, callers without permission.

import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Complex, isAlive, startComplex, until } from "../complex.ts";
import { ROOT } from "../shared.ts";

const partita = join(ROOT, "bin", "partita");
const needsRoot = { skip: process.geteuid?.() === 0 ? false : "needs root" };

type Ran = { readonly status: number | null; readonly out: string; readonly err: string };
function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Ran {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8", env });
  return { status, out: stdout, err: stderr };
}

async function inComplex(mode: "user" | "system", work: (complex: Complex) => Promise<void>): Promise<void> {
  const complex = await startComplex({ mode });
  try {
    await work(complex);
  } finally {
    await complex.stop();
  }
}

async function killServer(complex: Complex): Promise<void> {
  const server = complex.pid("server") as number;
  process.kill(server, "SIGKILL");
  await until("the server is gone", () => !isAlive(server));
}

test("a store that lost acknowledged commits is refused by every start, shown by doctor, and serves again when it is put back", async () => {
  await inComplex("user", async (complex) => {
    const call = (...args: string[]): Ran => run(partita, [...args, "--home", complex.home]);
    const store = join(complex.pbsHome, "server_priv/partita.db");
    const id = complex.submit(["-h", "--", "/bin/true"]);
    assert.match(call("doctor").out, /^ok +the store .*partita\.db is whole$/m);
    await killServer(complex);
    copyFileSync(`${store}-wal`, join(complex.home, "wal"));
    rmSync(`${store}-wal`);

    const refused = /partita\.db: the last \d+ of its commits (?:is|are) missing, .* remove \S+partita\.mark and start again\.$/m;
    const started = call("start");
    assert.equal(started.status, 1);
    assert.match(started.err, refused);
    const direct = complex.run("pbs_server", []);
    assert.equal(direct.status, 1);
    assert.match(direct.stderr, /^pbs_server: /);
    assert.match(direct.stderr, refused);
    assert.match(call("doctor").out, /^FAULT +.*the last \d+ of its commits/m);

    copyFileSync(join(complex.home, "wal"), `${store}-wal`);
    assert.equal(call("start").status, 0);
    assert.match(complex.must("qstat", ["-f", id]), /job_state = H/);
    // The file is removed under the running server, and can still be saved.
    rmSync(store);
    assert.match(call("doctor").out, /^FAULT +.*partita\.db .*removed or replaced .* partita backup FILE/m);
    assert.equal(call("stop").status, 0);
    const failed = call("start").err;
    assert.match(failed, /the store is missing, and this PBS_HOME had one/);
    assert.match(failed, /\npbs_comm \(pid \d+\) and pbs_mom \(pid \d+\) run: partita stop ends them\n$/);
    assert.match(call("doctor").out, /^FAULT +.*the store is missing/m);

    rmSync(join(complex.pbsHome, "server_priv/partita.mark"));
    assert.equal(call("start").status, 0);
    assert.notEqual(complex.run("qstat", [id]).status, 0);
  });
});

test("partita start ends at once when the server dies that it waits for", async () => {
  await inComplex("user", async (complex) => {
    const server = complex.pid("server") as number;
    // Makes it wait: the vnode is unknown, because the starter of its jobs hangs.
    complex.qmgr("set server node_silence_timeout = 4");
    process.kill(complex.pid("starter") as number, "SIGSTOP");
    await until("the vnode is unknown", () => complex.must("pbsnodes", ["-a"]).includes("state-unknown"));
    const before = connections(complex);
    const starting = spawn(partita, ["start", "--home", complex.home], { stdio: ["ignore", "ignore", "pipe"] });
    const ended = outcome(starting);
    await until("it asks the server", () => [...connections(complex)].some((inode) => !before.has(inode)));
    process.kill(server, "SIGKILL");
    const { status, text } = await ended;
    assert.equal(status, 1);
    assert.match(text, /^partita: pbs_server has ended; the end of \S+server_logs\/\d{8}:\n {2}/);
    assert.match(text, new RegExp(`\npbs_comm \\(pid \\d+\\) and pbs_mom \\(pid ${complex.pid("mom")}\\) run: partita stop ends them\n$`));
  });
});

/**
 * Inodes of the connections to the server's socket, including waiting ones. A count would not be sufficient, because
 * connections of earlier commands disappear late.
 */
function connections(complex: Complex): ReadonlySet<string> {
  const path = join(complex.pbsHome, "sock/server.sock");
  const lines = readFileSync("/proc/net/unix", "utf8")
    .split("\n")
    .filter((line) => line.endsWith(` ${path}`));
  return new Set(lines.map((line) => line.trim().split(/\s+/)[6] ?? ""));
}

async function outcome(child: ChildProcess): Promise<{ readonly status: number | null; readonly text: string }> {
  let text = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  const [status] = (await once(child, "close")) as [number | null];
  return { status, text };
}

/** Command lines that contain a directory. They are read from /proc, because a fresh machine has no pgrep. */
function processesOf(directory: string): readonly string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      } catch {
        return "";
      }
    })
    .filter((words) => words.includes(directory));
}

test("partita demo whose reader has gone takes its complex along", async () => {
  const child = spawn(partita, ["demo"], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => {
    said += chunk.toString();
    if (said.includes("Two vnodes")) child.stdout.destroy();
  });
  const { status, text } = await outcome(child);
  const dir = /A complex in user mode in (\S+)/.exec(said)?.[1] ?? "";
  assert.deepEqual([status, text], [141, ""]);
  assert.ok(dir !== "" && !existsSync(dir));
  assert.deepEqual(processesOf(dir), []);
});

test("partita init --server NAME: a name that no name service knows makes a complex that runs jobs", () => {
  const dir = mkdtempSync(join(tmpdir(), "partita-named-"));
  const call = (...args: string[]): Ran => run(partita, [...args, "--home", dir]);
  try {
    assert.equal(call("init", "--server", "nowhere.invalid").status, 0);
    const started = call("start");
    assert.equal(started.status, 0, started.err);
    const env = { ...process.env, PBS_CONF_FILE: join(dir, "pbs.conf"), PARTITA_RESIDENT: "no" };
    const id = run(join(ROOT, "bin/qsub"), ["-o", dir, "-e", dir, "-W", "block=true", "--", "/bin/true"], env);
    assert.deepEqual([id.status, id.out], [0, "1.nowhere\n"], id.err);
    // Defaults of init: finished jobs are kept, and the node has this machine's own cpus.
    assert.match(run(join(ROOT, "bin/qstat"), ["-x"], env).out, /^1\.nowhere .* F workq/m);
    const cpus = Number(run("nproc", []).out);
    assert.match(run(join(ROOT, "bin/pbsnodes"), ["-a"], env).out, new RegExp(`resources_available\\.ncpus = ${cpus}\n`));
  } finally {
    call("stop");
    rmSync(dir, { recursive: true, force: true });
  }
});

test("partita status: an ordinary user is told what he may know; a scheduler that is down makes it 1", needsRoot, async () => {
  await inComplex("system", async (complex) => {
    const installed = complex.command("partita");
    const asUser = (): Ran => {
      const words = ["--reuid=daemon", "--regid=daemon", "--init-groups", "--reset-env", installed, "status", "--home", complex.home];
      return run("setpriv", words);
    };
    const { status, out } = asUser();
    assert.equal(status, 0, out);
    assert.doesNotMatch(out, /not running/);
    assert.match(
      out,
      /: the server answers\n {2}pbs_comm +not known \(only root may look\)\n {2}pbs_mom +running\n {2}pbs_server +running\n/,
    );
    complex.qmgr("create sched s1 partition=p1");
    const directory = join(complex.pbsHome, "sched_priv_s1");
    rmSync(directory, { recursive: true, force: true });
    writeFileSync(directory, "no directory");
    complex.qmgr("set sched s1 scheduling=True");
    await until("the scheduler says why it is down", () => /comment = /.test(complex.must("qmgr", ["-c", "list sched s1"])));
    for (const ran of [asUser(), run(installed, ["status", "--home", complex.home])]) {
      assert.equal(ran.status, 1, ran.out);
      assert.match(ran.out, /^ {2}scheduler s1: down, p1, \S/m);
    }
    const started = run(installed, ["start", "--home", complex.home]);
    assert.equal(started.status, 1);
    assert.match(started.err, /^partita: scheduler s1 is down: \S/);
  });
});

/** A process that starts a program and never reaps it, like process 1 of many containers. */
async function careless(
  words: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ readonly parent: ChildProcess; readonly child: number }> {
  const script =
    "import os, sys, time\nprint(os.spawnvpe(os.P_NOWAIT, sys.argv[1], sys.argv[1:], os.environ), flush=True)\nwhile True: time.sleep(60)";
  const parent = spawn("python3", ["-c", script, ...words], { env, stdio: ["ignore", "pipe", "ignore"] });
  const [line] = (await once(parent.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  return { parent, child: Number(line.toString()) };
}

test(
  "a zombie is not running: init script and partita stop, start and tell the state of a complex whose server nobody buries",
  needsRoot,
  async () => {
    await inComplex("system", async (complex) => {
      const env = { ...process.env, PBS_CONF_FILE: join(complex.home, "pbs.conf") };
      const script = join(complex.home, "../opt/libexec/pbs_init.d");
      const lock = join(complex.pbsHome, "server_priv/server.lock");
      const call = (action: string): Ran => run(script, [action], env);
      assert.equal(call("stop").status, 0);

      // A pid file that names a zombie with that name, as a killed server leaves it.
      const program = join(complex.home, "pbs_server");
      symlinkSync("/bin/true", program);
      const dead = await careless([program], env);
      try {
        await until("there is a zombie", () => !isAlive(dead.child));
        writeFileSync(lock, `${dead.child}\n`);
        assert.match(call("status").out, /^pbs_server is not running$/m);
        assert.match(run(partita, ["status", "--home", complex.home]).out, /pbs_server +not running/);
        assert.match(call("start").out, /^PBS server$/m);
        assert.equal(call("stop").status, 0);
      } finally {
        dead.parent.kill("SIGKILL");
      }

      for (const stop of [() => call("stop"), () => run(partita, ["stop", "--home", complex.home])]) {
        const server = await careless([complex.command("pbs_server"), "-N"], env);
        try {
          await until("the server answers", () => complex.run("qstat", ["-B"]).status === 0);
          const stopped = stop();
          assert.equal(stopped.status, 0, stopped.err);
          assert.doesNotMatch(stopped.err, /still active/);
          assert.ok(existsSync(`/proc/${server.child}`) && !isAlive(server.child), "nobody has buried it");
          assert.match(call("status").out, /^pbs_server is not running$/m);
        } finally {
          server.parent.kill("SIGKILL");
        }
      }
      assert.equal(call("start").status, 0);
      assert.match(readFileSync(lock, "utf8"), /^\d+\n$/);
    });
  },
);
