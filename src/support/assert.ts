// Programmer errors. A failed assertion is a bug: the process ends, its supervisor restarts it, and the store has everything
// that was acknowledged.

export class AssertionFailed extends Error {
  override readonly name = "AssertionFailed";
}

/** Stays active in production. message: the condition that should hold. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionFailed(message);
}

/** The end of a `switch` over a closed union: `default: return unreachable(kind)`. */
export function unreachable(value: never): never {
  throw new AssertionFailed(`unreachable: ${JSON.stringify(value)}`);
}

/** Returns the value, which must be present. what: its name in the error. */
export function present<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new AssertionFailed(`missing: ${what}`);
  return value;
}
