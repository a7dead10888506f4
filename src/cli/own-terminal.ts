// The terminal at standard input and output of this process (terminal.ts). This file loads the C library, so it is imported
// only for interactive jobs.

import { writeSync } from "node:fs";
import { codeOf } from "#support/caught.ts";
import { applySettings, controlsOf, rawSettings, terminalSettings, windowSize } from "#support/libc/terminal-modes.ts";
import type { Terminal } from "./terminal.ts";

/** Window size that is assumed if the terminal does not know its own. */
const UNKNOWN_SIZE = { rows: 20, columns: 80 };
const RETRY_MS = 1;

/** Takes the terminal of this process. Throws if standard input is not a terminal. */
export function ownTerminal(): Terminal {
  const { stdin } = process;
  const before = terminalSettings(0);
  const raw = rawSettings(before);
  let is_raw = false;
  let take: ((bytes: Uint8Array) => void) | null = null;
  let gone: (() => void) | undefined;
  const restore = (): void => {
    if (!is_raw) return;
    is_raw = false;
    try {
      applySettings(0, before, { drain: true });
    } catch {
      // The terminal no longer exists.
    }
  };
  process.on("exit", restore);
  stdin.on("data", (bytes: Buffer) => take?.(bytes));
  stdin.on("end", () => gone?.());
  stdin.on("error", () => gone?.());
  stdin.pause();
  return {
    window() {
      try {
        const size = windowSize(0);
        return size.rows > 0 && size.columns > 0 ? size : UNKNOWN_SIZE;
      } catch {
        return UNKNOWN_SIZE;
      }
    },
    controls: controlsOf(before),
    raw() {
      applySettings(0, raw);
      is_raw = true;
    },
    restore,
    write(bytes) {
      let rest = bytes;
      while (rest.length > 0) {
        try {
          rest = rest.subarray(writeSync(1, rest));
        } catch (error) {
          const code = codeOf(error);
          if (code === "EIO" || code === "EPIPE") return gone?.();
          if (code !== "EAGAIN") throw error;
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
        }
      }
    },
    listen(next, ended) {
      take = next;
      if (ended !== undefined) gone = ended;
      if (next === null) stdin.pause();
      else stdin.resume();
    },
    onSignal(signal, handler) {
      process.on(signal, handler);
      return () => void process.off(signal, handler);
    },
    suspend() {
      process.kill(0, "SIGTSTP");
    },
  };
}
