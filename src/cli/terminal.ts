// The terminal a command is used at, for the few that do more with it than print: what they see of it, so that tests can give them another one.

import type { WindowSize } from "#protocol/terminal/link.ts";

export type TerminalSignal = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGQUIT" | "SIGTSTP" | "SIGCONT" | "SIGWINCH";

export type Terminal = {
  window(): WindowSize;
  /** codes of interrupt, quit, erase, kill, end of file, suspend */
  readonly controls: readonly number[];
  /** every byte passes as it is */
  raw(): void;
  /** as it was when the command was started; also done at whatever end of the command that can be seen coming */
  restore(): void;
  write(bytes: Uint8Array): void;
  /** Who takes what is typed; null: nobody, it waits. gone: the terminal has no more to give. */
  listen(take: ((bytes: Uint8Array) => void) | null, gone?: () => void): void;
  /** Instead of what the signal would do; the function returned undoes it. */
  onSignal(signal: TerminalSignal, handler: () => void): () => void;
  /** As if the suspend character had been typed; returns when the command goes on. */
  suspend(): void;
};
