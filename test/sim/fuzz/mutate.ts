// Random and mutated texts: random words of a dictionary, corpus lines with exchanged words, damaged characters, pieces
// repeated beyond every limit.

import type { Prng } from "#support/prng.ts";

const NASTY: readonly string[] = [
  "",
  " ",
  '"',
  "'",
  '""',
  "''",
  "\\",
  ",",
  "=",
  "+=",
  "-=",
  "@",
  ".",
  ":",
  "+",
  "#",
  "\t",
  "\u0000",
  "\u0001",
  "\u001b[0m",
  "\u007f",
  "\u00e9",
  "\u2028",
  "\ud800",
  "\u{1f600}",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "NaN",
  "Infinity",
  "-0",
  "1e309",
  "0x10",
  "9007199254740993",
  "99999999999999999999999",
  "-1",
  "1.5",
  "%s%n",
  "../../etc/passwd",
  "a".repeat(65),
  "b".repeat(237),
  "c".repeat(1025),
  "[".repeat(50),
  "u:".repeat(20),
  "1:".repeat(30),
  "1+".repeat(30),
];

/** A text that is usually wrong somewhere. */
export function mutated(random: Prng, text: string, words: readonly string[]): string {
  let result = text;
  for (let times = random.int(0, 3); times > 0; times--) result = once(random, result, words);
  return result;
}

function once(random: Prng, text: string, words: readonly string[]): string {
  const at = random.int(0, text.length);
  const to = Math.min(text.length, at + random.int(0, 5));
  switch (random.int(0, 7)) {
    case 0:
      return text.slice(0, at) + random.pick(NASTY) + text.slice(at);
    case 1:
      return text.slice(0, at) + text.slice(to);
    case 2:
      return text.slice(0, at) + String.fromCharCode(random.chance(0.9) ? random.int(32, 126) : random.int(0, 0xffff)) + text.slice(at);
    case 3:
      return text.slice(0, to) + text.slice(at).repeat(random.int(0, 2));
    default: {
      // Exchanging words keeps the form and changes the meaning.
      const pieces = text.split(/([\s=,.:+@]+)/);
      const which = random.int(0, Math.floor((pieces.length - 1) / 2)) * 2;
      pieces[which] = random.chance(0.9) ? random.pick(words) : random.pick(NASTY);
      return pieces.join("");
    }
  }
}

/** Words of a dictionary and damage, put together at random. */
export function babble(random: Prng, words: readonly string[], most: number): string {
  return Array.from({ length: random.int(0, most) }, () => (random.chance(0.85) ? random.pick(words) : random.pick(NASTY))).join(
    random.pick([" ", " ", "", ",", " = "]),
  );
}

/** Random bytes as text. */
export function noise(random: Prng, most: number): string {
  return String.fromCharCode(
    ...Array.from({ length: random.int(0, most) }, () => (random.chance(0.95) ? random.int(0, 255) : random.int(0, 0xffff))),
  );
}

/** Values of any JSON type, in place of the expected type. */
export function anyValue(random: Prng, depth = 2): unknown {
  const kinds = depth > 0 ? 10 : 7;
  switch (random.int(0, kinds)) {
    case 0:
      return null;
    case 1:
      return random.chance(0.5);
    case 2:
      return random.pick([0, 1, -1, 1.5, 2 ** 31, 2 ** 53, -(2 ** 63), 1e308]);
    case 3:
    case 4:
    case 5:
      return random.pick(NASTY);
    case 6:
      return random.pick(["1.svr", "workq", "n1", "default", "Q", "True", "8gb"]);
    case 7:
    case 8:
      return Array.from({ length: random.int(0, 3) }, () => anyValue(random, depth - 1));
    default:
      return Object.fromEntries(
        Array.from({ length: random.int(0, 3) }, () => [
          random.pick(["name", "value", "id", "kind", "job", "attrs", "x", "__proto__x"]),
          anyValue(random, depth - 1),
        ]),
      );
  }
}

/** A copy of a value in which one element is changed, removed or duplicated. */
export function damaged(random: Prng, value: unknown): unknown {
  if (typeof value !== "object" || value === null || random.chance(0.15)) return anyValue(random);
  if (Array.isArray(value)) {
    const copy = [...value];
    if (copy.length === 0 || random.chance(0.2)) copy.push(anyValue(random));
    else {
      const at = random.int(0, copy.length - 1);
      if (random.chance(0.2)) copy.splice(at, 1);
      else copy[at] = damaged(random, copy[at]);
    }
    return copy;
  }
  const entries = Object.entries(value);
  if (entries.length === 0 || random.chance(0.1)) return { ...value, [random.pick(["extra", "id", "kind", "toString"])]: anyValue(random) };
  const at = random.int(0, entries.length - 1);
  const [name, old] = entries[at] as [string, unknown];
  if (random.chance(0.15)) return Object.fromEntries(entries.filter((_, index) => index !== at));
  return { ...value, [name]: damaged(random, old) };
}
