// Decimal whole numbers with an optional sign. Nothing beyond what a double holds exactly is taken.

const INTEGER = /^[+-]?[0-9]{1,16}$/;

/** null: not a whole number, or too large to be exact. */
export function parseInteger(text: string): number | null {
  if (!INTEGER.test(text)) return null;
  const value = Number(text);
  if (!Number.isSafeInteger(value)) return null;
  return value === 0 ? 0 : value;
}

export function renderInteger(value: number): string {
  return String(value);
}
