// What a world did that it must not do.

export class Violation extends Error {
  override readonly name = "Violation";
}

export function fail(text: string): never {
  throw new Violation(text);
}
