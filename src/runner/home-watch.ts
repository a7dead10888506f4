// Whether the home of a complex is gone. A single look may fail although the home is there: a file server does not answer, or is mounted anew.

/** So many looks in succession must miss the home before it counts as gone. */
export const MISSES_MAX = 5;

/**
 * Returns a function to be called again and again. Each call looks once, and returns true if the last misses_max looks have all missed the home. exists: whether
 * the home can be seen now
 */
export function homeWatch(exists: () => boolean, misses_max = MISSES_MAX): () => boolean {
  let misses = 0;
  return () => {
    misses = exists() ? 0 : misses + 1;
    return misses >= misses_max;
  };
}
