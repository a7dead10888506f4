// Splits lists of job ids that are joined by colons, as in dependencies: `afterok:1:2[3-5:2]`.

/** Splits a text at colons, except colons between brackets, which belong to a range of indices. */
export function splitOutsideBrackets(text: string): string[] {
  const parts: string[] = [];
  let start = 0;
  let inside = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === "[") inside = true;
    else if (character === "]") inside = false;
    else if (character === ":" && !inside) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}
