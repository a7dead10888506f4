// Writes listings in large pieces, and keeps the order between stdout and stderr.

import type { CommandIo } from "./command.ts";

const PIECE_CHARS = 1 << 17;

export type Output = {
  /** writes to stdout, buffered */
  write(text: string): void;
  /** writes to stderr, after everything that was written to stdout before */
  error(text: string): void;
  flush(): void;
};

export function gatheredOutput(io: Pick<CommandIo, "out" | "err">): Output {
  let gathered = "";
  const flush = (): void => {
    if (gathered === "") return;
    const text = gathered;
    gathered = "";
    io.out(text);
  };
  return {
    write(text) {
      gathered += text;
      if (gathered.length >= PIECE_CHARS) flush();
    },
    error(text) {
      flush();
      io.err(text);
    },
    flush,
  };
}
