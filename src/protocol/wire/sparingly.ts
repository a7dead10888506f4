// Log lines that everybody on the network can cause: a few of them a minute are passed on.

const TOLD_MAX = 10;
const TOLD_MS = 60_000;

/** tell is called at most ten times a minute; the last text says that more is left out. */
export function sparingly(tell: (text: string) => void): (text: string) => void {
  let since_ms = Number.NEGATIVE_INFINITY;
  let told = 0;
  return (text) => {
    const now_ms = performance.now();
    if (now_ms - since_ms >= TOLD_MS) {
      since_ms = now_ms;
      told = 0;
    }
    told++;
    if (told < TOLD_MAX) tell(text);
    else if (told === TOLD_MAX) tell(`${text}; more of this kind is not logged for a minute`);
  };
}
