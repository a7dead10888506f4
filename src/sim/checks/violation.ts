// The fault of a world that broke an invariant.

export class Violation extends Error {
  override readonly name = "Violation";
}

export function fail(text: string): never {
  throw new Violation(text);
}
