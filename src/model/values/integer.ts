// Decimal whole numbers with an optional sign. A number that a double cannot represent exactly is not accepted.

const INTEGER = /^[+-]?[0-9]{1,16}$/;

/** Parses a whole number. Returns null if the text is not one or is too large to be exact. */
export function parseInteger(text: string): number | null {
  if (!INTEGER.test(text)) return null;
  const value = Number(text);
  if (!Number.isSafeInteger(value)) return null;
  return value === 0 ? 0 : value;
}

export function renderInteger(value: number): string {
  return String(value);
}
