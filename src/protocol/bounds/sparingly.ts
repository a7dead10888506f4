// Limits log lines that anybody on the network can cause: only a few of them per minute are written.

const TOLD_MAX = 10;
const TOLD_MS = 60_000;

/** Returns a function that passes texts to `tell`, at most ten per minute. The last text of a minute says that further ones are left out. */
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
