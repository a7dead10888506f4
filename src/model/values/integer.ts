// Decimal whole numbers with an optional sign. A number that a double cannot hold exactly is refused.

const INTEGER = /^[+-]?[0-9]{1,16}$/;

/** Returns null if the text is not a whole number or is too large to be exact. */
export function parseInteger(text: string): number | null {
  if (!INTEGER.test(text)) return null;
  const value = Number(text);
  if (!Number.isSafeInteger(value)) return null;
  return value === 0 ? 0 : value;
}

export function renderInteger(value: number): string {
  return String(value);
}
