// Floating-point numbers, such as 2.5, -1, .5, 1e3. Hexadecimal numbers, infinity and blanks are not allowed.
//
// I1. renderFloat writes no exponent, and parseFloatText(renderFloat(x)) is x.

const FLOAT = /^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$/;
const LARGEST = 1e18;
const SMALLEST = 1e-18;

/** Parses a number. Returns null if the text is not a number, or if its absolute value is above 1e18, or below 1e-18 but not 0. */
export function parseFloatText(text: string): number | null {
  if (text.length > 64 || !FLOAT.test(text)) return null;
  const value = Number(text);
  const magnitude = Math.abs(value);
  if (magnitude > LARGEST || (magnitude !== 0 && magnitude < SMALLEST)) return null;
  return value === 0 ? 0 : value;
}

/** The shortest decimal text of a number. If it is parsed again, the result is the same number. */
export function renderFloat(value: number): string {
  const text = String(value);
  const exponent = /e([+-][0-9]+)$/.exec(text);
  return exponent === null ? text : withoutExponent(text.slice(0, exponent.index), Number(exponent[1]));
}

/** The decimal text of a number with an exponent: moves the decimal point of a mantissa such as `-1.25` by `exponent` digits. */
function withoutExponent(mantissa: string, exponent: number): string {
  const sign = mantissa.startsWith("-") ? "-" : "";
  const [whole = "0", fraction = ""] = mantissa.slice(sign.length).split(".");
  const digits = whole + fraction;
  const point = whole.length + exponent;
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  return point >= digits.length ? sign + digits.padEnd(point, "0") : `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}
