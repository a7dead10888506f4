// Lists of texts separated by commas. A backslash protects the next character, so that values, for example of Variable_List,
// can contain commas. The backslash remains in the element. If the elements are joined with commas, the result is the text
// again.
//
// I1. splitList(joinList(x)) is x for every x that splitList returns.

/** Splits at unprotected commas. Blanks around elements are removed unless verbatim is set. Empty elements are dropped. */
export function splitList(text: string, verbatim = false): string[] {
  const elements: string[] = [];
  let start = 0;
  const add = (end: number): void => {
    const element = verbatim ? text.slice(start, end) : trimElement(text.slice(start, end));
    if (element !== "") elements.push(element);
  };
  // indexOf is native code, which matters for elements of several megabytes.
  for (let at = text.indexOf(","); at >= 0; at = text.indexOf(",", at + 1)) {
    if (oddBackslashes(text, at)) continue;
    add(at);
    start = at + 1;
  }
  add(text.length);
  return elements;
}

export function joinList(elements: readonly string[]): string {
  return elements.join(",");
}

/** Appends elements to a list (operator +=). unique: elements that the list already contains are left out. */
export function addToList(old: readonly string[], added: readonly string[], unique = false): string[] {
  const all = [...old, ...added];
  return unique ? [...new Set(all)] : all;
}

/**
 * Removes elements from a list (operator -=). For each element in `removed`, the first equal element of the list is removed;
 * if there is none, nothing happens.
 */
export function removeFromList(old: readonly string[], removed: readonly string[]): string[] {
  const going = new Map<string, number>();
  for (const element of removed) going.set(element, (going.get(element) ?? 0) + 1);
  return old.filter((element) => {
    const count = going.get(element) ?? 0;
    if (count > 0) going.set(element, count - 1);
    return count === 0;
  });
}

/** Removes blanks at both ends, except a blank that a backslash protects. */
function trimElement(text: string): string {
  const trimmed = text.trim();
  const tail = text.slice(text.length - text.trimStart().length + trimmed.length);
  return oddBackslashes(trimmed) && tail !== "" ? trimmed + tail.slice(0, 1) : trimmed;
}

/** Whether the text before that position ends with an odd number of backslashes. */
function oddBackslashes(text: string, end = text.length): boolean {
  let count = 0;
  while (text[end - 1 - count] === "\\") count++;
  return count % 2 === 1;
}
