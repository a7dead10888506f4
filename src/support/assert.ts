// Programmer errors. An assertion that fails is a bug: the process ends, its supervisor starts it again, the store knows what was promised.

export class AssertionFailed extends Error {
  override readonly name = "AssertionFailed";
}

/** Stays on in production. message: what should have held. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionFailed(message);
}

/** The end of a `switch` over a closed union: `default: return unreachable(kind)`. */
export function unreachable(value: never): never {
  throw new AssertionFailed(`unreachable: ${JSON.stringify(value)}`);
}

/** The value, which must be there. what: its name in the error. */
export function present<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new AssertionFailed(`missing: ${what}`);
  return value;
}
