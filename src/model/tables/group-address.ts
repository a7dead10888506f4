// Addresses of multicast groups.

/** Whether a text is the address of a multicast group. */
export function isGroupAddress(text: string): boolean {
  const four = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (four !== null) {
    const [first = 0, ...others] = four.slice(1).map(Number);
    return first >= 224 && first <= 239 && others.every((part) => part <= 255);
  }
  const halves = text.split("::");
  const groups = halves.flatMap((half) => (half === "" ? [] : half.split(":")));
  const isWhole = halves.length === 1 ? groups.length === 8 : halves.length === 2 && groups.length < 8;
  return isWhole && /^ff/i.test(text) && groups.every((part) => /^[0-9a-f]{1,4}$/i.test(part));
}
