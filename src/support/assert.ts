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
  return value ?? missing(what);
}

/** An element of a list, counted from 0, which must be there. Loops that decide how long a cycle takes use `present(list[index], what)` instead: V8 then optimizes each access for its own list. */
export function nth<T>(list: ArrayLike<T>, index: number): NonNullable<T> {
  return list[index] ?? missing(`element ${index} of ${list.length}`);
}

/** A value of a map, whose key must be there. */
export function mustGet<K, V>(map: { get(key: K): V | undefined }, key: K): V {
  return map.get(key) ?? missing(`entry ${String(key)}`);
}

function missing(what: string): never {
  throw new AssertionFailed(`missing: ${what}`);
}
