// Distinguishes a hanging run from a slow one: a slow run still makes progress.

const CHECK_MS = 2_000;

/**
 * Calls hang() once when progress() has returned the same value for silence_ms. Returns a function that ends the watch.
 * The time is counted in checks and not read from a clock: a machine that was suspended, or whose clock was set, is not a run that hangs.
 */
export function watchSilence({ silence_ms, progress, hang }) {
  let silent = 0;
  let seen;
  const timer = setInterval(() => {
    const now = progress();
    silent = now === seen ? silent + 1 : 0;
    seen = now;
    if (silent * CHECK_MS < silence_ms) return;
    clearInterval(timer);
    hang();
  }, CHECK_MS);
  return () => clearInterval(timer);
}
