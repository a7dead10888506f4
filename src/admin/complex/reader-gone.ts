// Handles the end of the reader of our output (`partita status | head -1`): the process ends as by SIGPIPE, without a message.
// A call that must clean up first adds a listener of its own. (This module has no state, because each bundle has its own copy.)

const SIGPIPE_STATUS = 141;

const isGone = (error: NodeJS.ErrnoException): boolean => ["EPIPE", "ECONNRESET"].includes(error.code ?? "");

/** Must be called once, at the start of the program. */
export function watchReader(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (!isGone(error)) throw error;
    if (process.stdout.listenerCount("error") === 1) process.exit(SIGPIPE_STATUS);
  });
}

/** work: done once before the process ends. Returns a function that removes it. */
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
