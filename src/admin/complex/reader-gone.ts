// The reader of our output has gone (`partita status | head -1`): the process ends as by SIGPIPE, without a message. A call that has to clean up first does it in
// a listener of its own. (No state is kept in this module: each bundle has a copy of it.)

const SIGPIPE_STATUS = 141;

const isGone = (error: NodeJS.ErrnoException): boolean => ["EPIPE", "ECONNRESET"].includes(error.code ?? "");

/** Once, at the start of the program. */
export function watchReader(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (!isGone(error)) throw error;
    if (process.stdout.listenerCount("error") === 1) process.exit(SIGPIPE_STATUS);
  });
}

/** work: done once before the process ends. Returns what takes it back. */
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
