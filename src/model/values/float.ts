// Floating-point numbers: 2.5, -1, .5, 1e3. No hexadecimal, no infinity, no blanks.
//
// I1. renderFloat writes no exponent, and parseFloatText(renderFloat(x)) is x.

const FLOAT = /^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$/;
const LARGEST = 1e18;
const SMALLEST = 1e-18;

/** Returns null if the text is not a number, or if its magnitude is above 1e18, or not 0 and below 1e-18. */
export function parseFloatText(text: string): number | null {
  if (text.length > 64 || !FLOAT.test(text)) return null;
  const value = Number(text);
  const magnitude = Math.abs(value);
  if (magnitude > LARGEST || (magnitude !== 0 && magnitude < SMALLEST)) return null;
  return value === 0 ? 0 : value;
}

/** The shortest decimal text that parses to the same number. */
export function renderFloat(value: number): string {
  const text = String(value);
  const exponent = /e([+-][0-9]+)$/.exec(text);
  return exponent === null ? text : withoutExponent(text.slice(0, exponent.index), Number(exponent[1]));
}

/** Moves the decimal point of a mantissa such as `-1.25` by a number of places. */
function withoutExponent(mantissa: string, exponent: number): string {
  const sign = mantissa.startsWith("-") ? "-" : "";
  const [whole = "0", fraction = ""] = mantissa.slice(sign.length).split(".");
  const digits = whole + fraction;
  const point = whole.length + exponent;
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  return point >= digits.length ? sign + digits.padEnd(point, "0") : `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}
