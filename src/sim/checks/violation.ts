// The error that a check throws when it finds an invariant broken.

export class Violation extends Error {
  override readonly name = "Violation";
}

export function fail(text: string): never {
  throw new Violation(text);
}
