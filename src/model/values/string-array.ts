// Comma lists. A backslash protects the character after it, so that values such as those of Variable_List can hold commas; it stays in the element,
// and joining the elements with commas gives the text back.
//
// I1. splitList(joinList(x)) is x for every x that splitList returns.

/** Splits at unprotected commas. Unless verbatim, blanks around elements go. Empty elements are left out. */
export function splitList(text: string, verbatim = false): string[] {
  const elements: string[] = [];
  let start = 0;
  const add = (end: number): void => {
    const element = verbatim ? text.slice(start, end) : trimElement(text.slice(start, end));
    if (element !== "") elements.push(element);
  };
  // indexOf is native code: an element may have megabytes.
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

/** += : the new elements follow the old ones; with `unique`, those already there are left out. */
export function addToList(old: readonly string[], added: readonly string[], unique = false): string[] {
  const all = [...old, ...added];
  return unique ? [...new Set(all)] : all;
}

/** `-=`: each element to be removed takes one equal element, the first, out of the list. Elements that the list does not have are ignored. */
export function removeFromList(old: readonly string[], removed: readonly string[]): string[] {
  const going = new Map<string, number>();
  for (const element of removed) going.set(element, (going.get(element) ?? 0) + 1);
  return old.filter((element) => {
    const count = going.get(element) ?? 0;
    if (count > 0) going.set(element, count - 1);
    return count === 0;
  });
}

/** Blanks at both ends go, but not a blank that a backslash protects. */
function trimElement(text: string): string {
  const trimmed = text.trim();
  const tail = text.slice(text.length - text.trimStart().length + trimmed.length);
  return oddBackslashes(trimmed) && tail !== "" ? trimmed + tail.slice(0, 1) : trimmed;
}

/** Whether the text up to that place ends with an odd number of backslashes. */
function oddBackslashes(text: string, end = text.length): boolean {
  let count = 0;
  while (text[end - 1 - count] === "\\") count++;
  return count % 2 === 1;
}
