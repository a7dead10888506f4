// A munged of the tests' own, with a key and a socket of its own.

import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Munged = {
  readonly socket: string;
  /** stops it, so that it answers nobody, or lets it go on */
  pause(): void;
  resume(): void;
  close(): Promise<void>;
};

const START_MS_MAX = 60_000;

/** The reason why this machine cannot run munged, for `skip`; false: it can. */
export function lackOfMunge(): string | false {
  const { error, status } = spawnSync("munged", ["--version"], { env: { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin` } });
  return error === undefined && status === 0 ? false : "needs munged (scripts/test-host.sh installs it)";
}

/** Starts munged. Every user can reach its socket. */
export async function startMunged(): Promise<Munged> {
  const dir = mkdtempSync(join(tmpdir(), "partita-munge-"));
  chmodSync(dir, 0o755);
  const path = (name: string): string => join(dir, name);
  writeFileSync(path("key"), randomBytes(128), { mode: 0o600 });
  const files = ["key-file:key", "socket:socket", "pid-file:pid", "log-file:log", "seed-file:seed"].map((text) => {
    const [option, name = ""] = text.split(":");
    return `--${option}=${path(name)}`;
  });
  const child = spawn("munged", ["--foreground", "--num-threads=2", ...files], {
    stdio: "ignore",
    env: { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin` },
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const kill = (): void => void child.kill("SIGKILL");
  process.once("exit", kill);
  const close = async (): Promise<void> => {
    process.off("exit", kill);
    kill();
    await ended;
    rmSync(dir, { recursive: true, force: true });
  };
  const begin_ms = performance.now();
  while (!existsSync(path("socket"))) {
    if (child.exitCode !== null || performance.now() - begin_ms > START_MS_MAX) {
      const log = existsSync(path("log")) ? readFileSync(path("log"), "utf8") : "";
      await close();
      throw new Error(`munged did not start: ${log}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return { socket: path("socket"), pause: () => void child.kill("SIGSTOP"), resume: () => void child.kill("SIGCONT"), close };
}
