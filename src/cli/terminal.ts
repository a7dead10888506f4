// The terminal of a command, for the few commands that do more with it than print. Tests can replace it.

import type { WindowSize } from "#protocol/terminal/link.ts";

export type TerminalSignal = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGQUIT" | "SIGTSTP" | "SIGCONT" | "SIGWINCH";

export type Terminal = {
  window(): WindowSize;
  /** codes of interrupt, quit, erase, kill, end of file, suspend */
  readonly controls: readonly number[];
  /** passes every byte unchanged */
  raw(): void;
  /** restores the settings from the start of the command; also done at every end of the command that can be foreseen */
  restore(): void;
  write(bytes: Uint8Array): void;
  /** take: receives input; null: input waits. gone: called when the terminal has no more input. */
  listen(take: ((bytes: Uint8Array) => void) | null, gone?: () => void): void;
  /** Handles a signal instead of its default action. The returned function undoes this. */
  onSignal(signal: TerminalSignal, handler: () => void): () => void;
  /** Acts as if the suspend character had been typed. Returns when the command continues. */
  suspend(): void;
};
