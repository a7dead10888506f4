// The terminal of a command, for the few commands that do more with a terminal than print on it. Tests can replace it.

import type { WindowSize } from "#protocol/terminal/link.ts";

export type TerminalSignal = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGQUIT" | "SIGTSTP" | "SIGCONT" | "SIGWINCH";

export type Terminal = {
  window(): WindowSize;
  /** codes of interrupt, quit, erase, kill, end of file and suspend */
  readonly controls: readonly number[];
  /** switches to settings with which every byte passes unchanged */
  raw(): void;
  /** restores the settings that the terminal had when the command started. This is also done whenever the command ends, except by SIGKILL */
  restore(): void;
  write(bytes: Uint8Array): void;
  /** sets the functions for the input. take: receives it; null: the input waits. gone: called when no more input will come */
  listen(take: ((bytes: Uint8Array) => void) | null, gone?: () => void): void;
  /** Has a signal handled in place of its default action. Returns a function that undoes this. */
  onSignal(signal: TerminalSignal, handler: () => void): () => void;
  /** Suspends the command, as if the suspend character had been typed. Returns when the command continues. */
  suspend(): void;
};
