// A scheduler alone: its directories, and a server that the test scripts.

import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Change, Decision, SchedCommand, Snapshot, Verdict } from "#protocol/sched-link.ts";
import { frameTypes } from "#protocol/schema-link.ts";
import { type LinkServer, listenLinks, type ServerLink } from "#protocol/wire/ipc-transport.ts";
import { serverSocketPath } from "#protocol/wire/socket-path.ts";
import { ROOT } from "./shared.ts";

export const PROGRAM = join(ROOT, "src/sched/main.ts");
const DEFAULTS = {
  sched_config: "pbs_sched_config",
  holidays: "pbs_holidays",
  resource_group: "pbs_resource_group",
  dedicated_time: "pbs_dedicated",
};
export const PATIENCE_MS = 60_000;

export type Home = { readonly dir: string; readonly home: string; readonly env: NodeJS.ProcessEnv };

export function makeHome(): Home {
  const dir = mkdtempSync(join(tmpdir(), "partita-sched-"));
  const home = join(dir, "home");
  mkdirSync(home);
  const conf = join(dir, "pbs.conf");
  writeFileSync(conf, `PBS_EXEC=${dir}\nPBS_HOME=${home}\nPBS_SERVER=${hostname()}\nPARTITA_MODE=user\n`);
  return { dir, home, env: { ...process.env, PBS_CONF_FILE: conf } };
}

export function makePrivate(home: string, suffix = ""): string {
  const dir = join(home, `sched_priv${suffix}`);
  mkdirSync(dir, { mode: 0o750 });
  for (const [file, source] of Object.entries(DEFAULTS)) {
    copyFileSync(join(ROOT, "etc", source), join(dir, file));
    chmodSync(join(dir, file), 0o644);
  }
  mkdirSync(join(home, `sched_logs${suffix}`), { mode: 0o755 });
  return dir;
}

export async function until<T>(what: string, look: () => T | undefined | null | false): Promise<T> {
  for (const end = Date.now() + PATIENCE_MS; ; ) {
    const found = look();
    if (found !== undefined && found !== null && found !== false) return found;
    if (Date.now() > end) throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
    await sleep(20);
  }
}

export function logOf(dir: string): string {
  return existsSync(dir)
    ? readdirSync(dir)
        .map((file) => readFileSync(join(dir, file), "utf8"))
        .join("")
    : "";
}
export const lines = (dir: string): string[] =>
  logOf(dir)
    .split("\n")
    .map((line) => line.slice(line.indexOf(";") + 1));

/** A server that answers hello with a snapshot and records what it receives. */
export type FakeServer = {
  /** the scheduler; started again by restart() */
  child(): ChildProcess;
  /** waits for its end, then starts another process */
  restart(): Promise<void>;
  /** runs a complete cycle and returns the decisions */
  cycle(command?: SchedCommand): Promise<Decision[]>;
  delta(...changes: Change[]): void;
  send(type: "sched-configure"): void;
  /** the snapshot for later hellos */
  snapshot: Snapshot;
  verdict: (decision: Decision) => Verdict;
  stop(): Promise<void>;
};

export async function startFakeServer(world: Home, first: Snapshot, logs: string): Promise<FakeServer> {
  const frames: { readonly type: string; readonly data: unknown }[] = [];
  let link: ServerLink | null = null;
  let [hellos, cycles, revision] = [0, 0, 0];
  const server: LinkServer = await listenLinks({
    path: serverSocketPath(world.home),
    types: frameTypes("sched-to-server"),
    everyone: false,
    onFrame(from, type, data) {
      frames.push({ type, data });
      if (type === "sched-hello") {
        link = from;
        hellos++;
        revision = fake.snapshot.revision;
        from.welcome();
        from.send("sched-snapshot", fake.snapshot);
      } else if (type === "sched-decisions") {
        const { cycle, decisions } = data as { cycle: number; decisions: Decision[] };
        from.send("sched-verdicts", { cycle, verdicts: decisions.map((decision) => fake.verdict(decision)) });
      }
    },
  });
  let child: ChildProcess;
  const start = async (): Promise<void> => {
    const before = { hellos, connected: connectionsIn(logs) };
    child = spawn(process.execPath, ["--no-warnings", PROGRAM, "-N"], { env: world.env, stdio: ["ignore", "ignore", "inherit"] });
    await until("hello", () => hellos > before.hellos);
    await until("the snapshot is taken", () => connectionsIn(logs) > before.connected);
  };
  const fake: FakeServer = {
    snapshot: first,
    verdict: () => ({ ok: true }),
    child: () => child,
    async restart() {
      await until("the scheduler has ended", () => child.exitCode !== null || child.signalCode !== null);
      await start();
    },
    async cycle(command = 3) {
      const from = frames.length;
      link?.send("sched-cycle", { cycle: ++cycles, command });
      await until("the cycle ends", () => frames.slice(from).some(({ type }) => type === "sched-cycle-end"));
      return frames
        .slice(from)
        .flatMap(({ type, data }) => (type === "sched-decisions" ? (data as { decisions: Decision[] }).decisions : []));
    },
    delta: (...changes) => void link?.send("sched-delta", { revision: ++revision, changes }),
    send: (type) => void link?.send(type, {}),
    async stop() {
      child.kill("SIGKILL");
      await server.close();
      rmSync(world.dir, { recursive: true, force: true });
    },
  };
  await start();
  return fake;
}

const connectionsIn = (logs: string): number => logOf(logs).split("Connected to the server").length - 1;
