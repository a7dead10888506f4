// A short identifier of a long text, for comparing texts. Pure. It gives no protection against texts that were made to have the same identifier.

const PRIMES = [2654435761, 1597334677, 2246822507, 3266489909] as const;

/** Returns 32 hexadecimal digits. Equal texts have equal digits. */
export function digestOf(text: string): string {
  let [a, b, c, d] = [0xdeadbeef ^ text.length, 0x41c6ce57, 0x9e3779b9, 0x85ebca6b];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, PRIMES[0]);
    b = Math.imul(b ^ code, PRIMES[1]);
    c = Math.imul((c << 7) ^ (c >>> 25) ^ code, PRIMES[2]);
    d = Math.imul((d << 13) ^ (d >>> 19) ^ code, PRIMES[3]);
  }
  return [a ^ (c >>> 16), b ^ (d >>> 15), c ^ (a >>> 13), d ^ (b >>> 16)]
    .map((word) => (word >>> 0).toString(16).padStart(8, "0"))
    .join("");
}
