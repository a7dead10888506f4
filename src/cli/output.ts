// Writes listings in large pieces, in the right order with lines on stderr.

import type { CommandIo } from "./command.ts";

const PIECE_CHARS = 1 << 17;

export type Output = {
  /** stdout, buffered */
  write(text: string): void;
  /** stderr; flushes stdout first */
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
