// A helper process that a daemon keeps running while it is wanted. The helper reads one line of JSON from its stdin, ends when its stdin ends, and says on its stdout
// what the log of the daemon should show.

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

export type KeptProcessOptions = {
  readonly program: string;
  /** the name that process lists show */
  readonly name: string;
  /** what the process gets on its stdin, as one line of JSON */
  readonly order: unknown;
  readonly isWanted: () => boolean;
  /** writes into the log */
  readonly say: (text: string) => void;
};

const LOOK_MS = 2000;
const AGAIN_MS_MAX = 60_000;

export type KeptProcess = { close(): void };

/**
 * Starts the process when it is wanted. If the process ends, it is started again: the first time at once, later after a pause that grows up to AGAIN_MS_MAX. A
 * process that has run longer than AGAIN_MS_MAX is started again at once. A start that fails, because the system lacks memory or descriptors, is repeated after
 * the same pauses.
 */
export function keepProcess({ program, name, order, isWanted, say }: KeptProcessOptions): KeptProcess {
  let child: ChildProcess | null = null;
  let pause_ms = 0;
  let again_ms = 0;
  let started_ms = 0;
  const startLater = (): void => {
    const now_ms = performance.now();
    if (now_ms - started_ms > AGAIN_MS_MAX) pause_ms = 0;
    again_ms = now_ms + pause_ms;
    pause_ms = Math.min(Math.max(2 * pause_ms, LOOK_MS), AGAIN_MS_MAX);
  };
  const start = (): void => {
    started_ms = performance.now();
    const started = spawn(process.execPath, ["--no-warnings", program], {
      argv0: name,
      stdio: ["pipe", "pipe", "ignore"],
      cwd: "/",
      env: { PATH: "/usr/bin:/bin" },
    });
    started.once("error", (error) => say(`${name}: ${error.message}`));
    // If the system had no descriptors left, the process was not started. Then there are no streams, and `close` never comes.
    if (started.pid === undefined) return startLater();
    child = started;
    started.stdin.on("error", () => undefined);
    started.stdin.write(`${JSON.stringify(order)}\n`);
    createInterface({ input: started.stdout }).on("line", say);
    started.once("close", (status, signal) => {
      if (child !== started) return;
      child = null;
      startLater();
      say(`${name} ended with ${status ?? signal} and is started again`);
    });
  };
  const look = (): void => {
    if (child !== null || performance.now() < again_ms || !isWanted()) return;
    try {
      start();
    } catch (error) {
      // spawn throws if there is no memory for another process. The daemon must not end because of this.
      say(`${name} cannot be started: ${error instanceof Error ? error.message : String(error)}`);
      startLater();
    }
  };
  look();
  const timer = setInterval(look, LOOK_MS);
  return {
    close() {
      clearInterval(timer);
      const last = child;
      child = null;
      last?.stdin?.end();
    },
  };
}
