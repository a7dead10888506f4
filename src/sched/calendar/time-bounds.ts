// The bounds of dedicated and prime time: the times at which such a time begins or ends. Jobs may become possible then.

import { primeStatus } from "../shapes/holidays.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";

/** Returns the next bound of dedicated or prime time after a time; null: there is none. */
export function nextBound(book: PolicyBook, after_s: number): number | null {
  for (const bound_s of timeBounds(book, after_s, true)) return bound_s;
  return null;
}

/**
 * Yields the bounds of dedicated time after a time, ascending, and the bounds of prime time if requested. With prime time the
 * sequence is endless: take as many as needed.
 */
export function* timeBounds({ dedicated, holidays, local }: PolicyBook, after_s: number, prime: boolean): Iterable<number> {
  const fixed = dedicated
    .flatMap(({ from_s, to_s }) => [from_s, to_s])
    .filter((at_s) => at_s > after_s)
    .sort((a, b) => a - b);
  let change_s = prime ? primeStatus(holidays, local, after_s).until_s : null;
  for (let at = 0; at < fixed.length || change_s !== null; ) {
    const next_s = fixed[at] ?? Number.POSITIVE_INFINITY;
    if (change_s !== null && change_s <= next_s) {
      yield change_s;
      change_s = primeStatus(holidays, local, change_s).until_s;
    } else {
      yield next_s;
      at++;
    }
  }
}
