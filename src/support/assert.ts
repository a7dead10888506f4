// Assertions for errors of the programmer. If one fails, the program has a bug: the process ends, its supervisor restarts
// it, and the store still has everything that was acknowledged.

export class AssertionFailed extends Error {
  override readonly name = "AssertionFailed";
}

/** Throws AssertionFailed unless the condition holds, also in production. message: the condition that should hold. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionFailed(message);
}

/** Ends a `switch` over a closed union: `default: return unreachable(kind)`. Throws if it is reached. */
export function unreachable(value: never): never {
  throw new AssertionFailed(`unreachable: ${JSON.stringify(value)}`);
}

/** Returns a value. Throws if it is null or undefined. what: the name of the value in the error. */
export function present<T>(value: T | null | undefined, what: string): T {
  return value ?? missing(what);
}

/**
 * Returns an element of a list, counted from 0. Throws if there is none. Loops in which a scheduler spends most time of a cycle use `present(list[index], what)`
 * instead: V8 then optimizes each access for its own list.
 */
export function nth<T>(list: ArrayLike<T>, index: number): NonNullable<T> {
  return list[index] ?? missing(`element ${index} of ${list.length}`);
}

/** Returns the value of a key in a map. Throws if the map does not have the key. */
export function mustGet<K, V>(map: { get(key: K): V | undefined }, key: K): V {
  return map.get(key) ?? missing(`entry ${String(key)}`);
}

function missing(what: string): never {
  throw new AssertionFailed(`missing: ${what}`);
}
