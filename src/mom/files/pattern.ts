// Patterns of files: `*`, `?` and `[...]` in the names of a path, as stage lists have them. After a backslash, the next character has no special meaning.
//
// P1. Comparing a name with a pattern takes at most (length of the name) * (length of the pattern) steps. The pattern comes from a user, and the name perhaps from
//     another host; with the matching of Node.js, these two could be such that it takes years.
// P2. A pattern may match at most FOUND_MAX files: through links to a directory above, it could match any number of paths.
// P3. A name that begins with a dot fits only a pattern that begins with a dot.

import { lstatSync, readdirSync } from "node:fs";
import { basename } from "node:path";

type Part = { readonly kind: "many" } | { readonly kind: "one"; readonly fits: (character: string) => boolean };

const HAS_PATTERN = /[*?[]/;
const FOUND_MAX = 100_000;

/**
 * Returns the paths that match a pattern. A text without pattern, or one that is the name of an existing file, is returned as it is. Throws an error if no file
 * matches, or too many do (P2).
 */
export function matching(path: string): readonly string[] {
  if (!HAS_PATTERN.test(path) || isThere(path)) return [path];
  const [first = "", ...names] = path.replace(/\/+$/, "").split("/");
  let found: readonly string[] = HAS_PATTERN.test(first) ? inDirectory("", first) : [first];
  for (const name of names) found = HAS_PATTERN.test(name) ? inAll(path, found, name) : found.map((directory) => `${directory}/${name}`);
  const there = found.filter(isThere);
  if (there.length === 0) throw new Error(`${path}: no file matches`);
  return there.sort();
}

function inAll(path: string, directories: readonly string[], name: string): readonly string[] {
  const found: string[] = [];
  for (const directory of directories) {
    for (const each of inDirectory(`${directory}/`, name)) found.push(each);
    if (found.length > FOUND_MAX) throw new Error(`${path}: more than ${FOUND_MAX} files match`);
  }
  return found;
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    // The path leads through something that is no directory, or through a directory that this user may not enter.
    return false;
  }
}

/** Whether a file of this name can be one of those that this path or pattern means. */
export function isAskedFor(path: string, name: string): boolean {
  const last = basename(path);
  return name === last || (HAS_PATTERN.test(last) && fits(partsOf(last), name));
}

/** Returns the paths in a directory that match. directory: ends in a slash; "": the present directory. If it cannot be read, nothing matches. */
function inDirectory(directory: string, pattern: string): readonly string[] {
  const parts = partsOf(pattern);
  try {
    return readdirSync(directory === "" ? "." : directory)
      .filter((name) => fits(parts, name))
      .map((name) => directory + name);
  } catch {
    return [];
  }
}

/** Only the last `*` is ever tried anew (P1): if the rest does not fit behind it, a longer text for an earlier `*` does not help. */
function fits(parts: readonly Part[], name: string): boolean {
  const [first] = parts;
  if (name.startsWith(".") && !(first?.kind === "one" && first.fits === DOT)) return false;
  const characters = [...name];
  let at = 0;
  let part = 0;
  let star: { readonly part: number; at: number } | null = null;
  while (at < characters.length) {
    const present = parts[part];
    if (present?.kind === "many") star = { part: part++, at };
    else if (present?.fits(characters[at] ?? "") === true) {
      at++;
      part++;
    } else if (star === null) return false;
    else {
      at = ++star.at;
      part = star.part + 1;
    }
  }
  return parts.slice(part).every(({ kind }) => kind === "many");
}

const DOT = (character: string): boolean => character === ".";
const literal = (wanted: string): Part => ({ kind: "one", fits: wanted === "." ? DOT : (character) => character === wanted });

function partsOf(pattern: string): readonly Part[] {
  const characters = [...pattern];
  const parts: Part[] = [];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] ?? "";
    const set = character === "[" ? setAt(characters, at) : null;
    if (character === "*") {
      if (parts.at(-1)?.kind !== "many") parts.push({ kind: "many" });
    } else if (character === "?") parts.push({ kind: "one", fits: () => true });
    else if (set !== null) {
      parts.push({ kind: "one", fits: set.fits });
      at = set.end;
    } else if (character === "\\" && at + 1 < characters.length) parts.push(literal(characters[++at] ?? ""));
    else parts.push(literal(character));
  }
  return parts;
}

/** Returns the set `[...]` that begins at `begin`, and the position of its closing bracket; null: there is none, so that the opening bracket means itself. */
function setAt(
  characters: readonly string[],
  begin: number,
): { readonly fits: (character: string) => boolean; readonly end: number } | null {
  const is_other = characters[begin + 1] === "!" || characters[begin + 1] === "^";
  const from = begin + (is_other ? 2 : 1);
  // A closing bracket in the first place is a member of the set.
  const end = characters.indexOf("]", from + 1);
  if (end < 0) return null;
  const singles = new Set<string>();
  const ranges: (readonly [low: number, high: number])[] = [];
  for (let at = from; at < end; at++) {
    const low = characters[at] ?? "";
    const high = characters[at + 2] ?? "";
    if (characters[at + 1] === "-" && at + 2 < end) {
      ranges.push([codeOf(low), codeOf(high)]);
      at += 2;
    } else singles.add(low);
  }
  const has = (character: string): boolean =>
    singles.has(character) || ranges.some(([low, high]) => codeOf(character) >= low && codeOf(character) <= high);
  return { fits: (character) => has(character) !== is_other, end };
}

const codeOf = (character: string): number => character.codePointAt(0) ?? 0;
