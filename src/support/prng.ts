// Reproducible randomness for tests and the simulator: one seed gives one history. The generator is xoshiro128**; splitmix
// mixes its seed. Not for secrets.
//
// P1. The same seed gives the same sequence on every machine.
// P2. The sequence of a generator made by split() depends only on the seed of its parent and on the label, not on how often
//     the parent was used.

export type Prng = {
  /** a float in [0, 1) */
  next(): number;
  /** a whole number in [low, high] */
  int(low: number, high: number): number;
  /** true with the given probability */
  chance(probability: number): boolean;
  /** one of the items; items must not be empty */
  pick<T>(items: readonly T[]): T;
  /** a shuffled copy */
  shuffle<T>(items: readonly T[]): T[];
  /** another generator, which is independent of this one. label: its name */
  split(label: string | number): Prng;
};

/** Returns a generator. seed: any number or text. */
export function prng(seed: number | string): Prng {
  const origin = hashText(String(seed));
  let [a, b, c, d] = spread(origin);
  const next32 = (): number => {
    const result = Math.imul(rotl(Math.imul(b, 5), 7), 9) >>> 0;
    const t = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= t;
    d = rotl(d, 11);
    return result;
  };
  const next = (): number => next32() / 0x1_0000_0000;
  const int = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    next,
    int,
    chance: (probability) => next() < probability,
    pick<T>(items: readonly T[]): T {
      if (items.length === 0) throw new RangeError("nothing to pick from");
      return items[int(0, items.length - 1)] as T;
    },
    shuffle<T>(items: readonly T[]): T[] {
      const copy = [...items];
      for (let at = copy.length - 1; at > 0; at--) {
        const other = int(0, at);
        [copy[at], copy[other]] = [copy[other] as T, copy[at] as T];
      }
      return copy;
    },
    split: (label) => prng(`${origin}/${label}`),
  };
}

const rotl = (value: number, by: number): number => (value << by) | (value >>> (32 - by));

/** Returns the FNV-1a hash of a text, 32 bits. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** Expands one 32-bit number into four well-mixed ones: the generator must not start with zeros. */
function spread(seed: number): [number, number, number, number] {
  let state = seed;
  const word = (): number => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = state ^ (state >>> 16);
    mixed = Math.imul(mixed, 0x21f0aaad);
    mixed ^= mixed >>> 15;
    mixed = Math.imul(mixed, 0x735a2d97);
    return mixed ^ (mixed >>> 15);
  };
  return [word(), word(), word(), word() | 1];
}
