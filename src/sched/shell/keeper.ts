// The keeper of a scheduler on another host than the server: starts the scheduler again when it has crashed, by the same rules as
// the server for its own schedulers (#model/restart-rules.ts).
//
// K1. A scheduler that ends by itself with status 0, because the server or an administrator has told it to, is not started again,
//     and the keeper ends with it. If the first start fails, the keeper ends, too.
// K2. A keeper that is told to end (SIGTERM, SIGINT) lets its scheduler end first. At SIGHUP, a keeper that waits starts the
//     scheduler at once.

import type { ChildProcess } from "node:child_process";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterCrash } from "#model/restart-rules.ts";

export type KeeperOptions = {
  /** starts the scheduler, which reports on descriptor ready_fd whether it is up */
  readonly start: () => ChildProcess;
  readonly ready_fd: number;
  /** passes on what the first scheduler reports: `up`, or why it did not start */
  readonly tell: (text: string) => void;
  readonly note: (text: string) => void;
};

/** How a process has ended: its status, or the signal. */
type End = { readonly status: number | null; readonly signal: NodeJS.Signals | null };

/** Keeps a scheduler running. Resolves with the exit status of the keeper. */
export async function keepRunning({ start, ready_fd, tell, note }: KeeperOptions): Promise<number> {
  let child: ChildProcess | null = null;
  let is_ending = false;
  let crashes: readonly number[] = [];
  let goOn = (): void => undefined;
  const endWith = (signal: NodeJS.Signals): void => {
    is_ending = true;
    child?.kill(signal);
    goOn();
  };
  process.on("SIGTERM", () => endWith("SIGTERM"));
  process.on("SIGINT", () => endWith("SIGINT"));
  process.on("SIGHUP", () => void (child === null ? goOn() : child.kill("SIGHUP")));

  for (let is_first = true; ; is_first = false) {
    child = start();
    const said = saidBy(child, ready_fd);
    if (is_first) void said.then(tell);
    const end = await endOf(child);
    child = null;
    if (is_first && (await said) !== "up") return 1;
    if (is_ending || end.status === 0) return 0;
    const after = afterCrash(crashes, performance.now());
    crashes = after.crashes;
    note(`the scheduler ${wordsOf(end)}: it is started again ${after.delay_ms === 0 ? "at once" : `in ${after.delay_ms / 1000} seconds`}`);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, after.delay_ms);
      goOn = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    if (is_ending) return 0;
  }
}

const wordsOf = ({ status, signal }: End): string => (signal === null ? `has ended with status ${status}` : `was ended by ${signal}`);

/** Resolves when the process has ended, or could not be started. */
const endOf = (child: ChildProcess): Promise<End> =>
  new Promise((resolve) => {
    child.once("error", () => resolve({ status: 1, signal: null }));
    child.once("exit", (status, signal) => resolve({ status, signal }));
  });

/** Returns what a process reports on its descriptor, until it closes the descriptor. */
async function saidBy(child: ChildProcess, fd: number): Promise<string> {
  const stream = child.stdio[fd];
  return stream instanceof Readable ? text(stream).catch(() => "") : "";
}
