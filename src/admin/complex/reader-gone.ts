// Handles the case that the program which reads our output has ended (`partita status | head -1`): this process then ends as
// if by SIGPIPE, without a message. A call that must clean up first adds a listener of its own. (This module has no state,
// because each bundle has its own copy.)

const SIGPIPE_STATUS = 141;

const isGone = (error: NodeJS.ErrnoException): boolean => ["EPIPE", "ECONNRESET"].includes(error.code ?? "");

/** Must be called once, at the start of the program. */
export function watchReader(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (!isGone(error)) throw error;
    if (process.stdout.listenerCount("error") === 1) process.exit(SIGPIPE_STATUS);
  });
}

/** Calls `work` once before the process ends because its output is no longer read. Returns a function that cancels this. */
export function atReaderGone(work: () => Promise<void>): () => void {
  let leaving = false;
  const listener = (error: NodeJS.ErrnoException): void => {
    if (!isGone(error) || leaving) return;
    leaving = true;
    void work().finally(() => process.exit(SIGPIPE_STATUS));
  };
  process.stdout.on("error", listener);
  return () => void process.stdout.off("error", listener);
}
