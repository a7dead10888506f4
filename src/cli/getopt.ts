// Options as POSIX getopt reads them and glibc reports them (docs/reference/commands.md 0): grouped letters (-fx), joined values (-lselect=2), `--` ends the
// options, and options may follow operands unless POSIXLY_CORRECT is set. Pure.

import { nth } from "#support/assert.ts";

/**
 * One element of the command line, in order. invalid: a letter that the command does not know; missing: the option's value is
 * absent.
 */
export type OptionEvent =
  | { readonly kind: "option"; readonly letter: string; readonly value: string }
  | { readonly kind: "invalid"; readonly letter: string }
  | { readonly kind: "missing"; readonly letter: string };

export type OptionScan = {
  readonly events: readonly OptionEvent[];
  readonly operands: readonly string[];
  /** position of the operands after `--` in operands, or null without `--` */
  readonly literal_from: number | null;
};

/** letters: as for getopt; `ab:c` means -a, -b VALUE, -c. If operandsFirst is false, the first operand ends the options. */
export function scanOptions(words: readonly string[], letters: string, operandsFirst = true): OptionScan {
  const events: OptionEvent[] = [];
  const operands: string[] = [];
  let literal_from: number | null = null;
  for (let at = 0; at < words.length; at++) {
    const word = nth(words, at);
    if (word === "--") {
      literal_from = operands.length;
      operands.push(...words.slice(at + 1));
      break;
    }
    if (word.length < 2 || word[0] !== "-") {
      operands.push(word);
      if (operandsFirst) continue;
      operands.push(...words.slice(at + 1));
      break;
    }
    for (let i = 1; i < word.length; i++) {
      const letter = word.charAt(i);
      const known = letter === ":" ? -1 : letters.indexOf(letter);
      if (known < 0) {
        events.push({ kind: "invalid", letter });
        continue;
      }
      if (letters[known + 1] !== ":") {
        events.push({ kind: "option", letter, value: "" });
        continue;
      }
      const joined = word.slice(i + 1);
      const next = words[at + 1];
      if (joined !== "") events.push({ kind: "option", letter, value: joined });
      else if (next !== undefined) {
        events.push({ kind: "option", letter, value: next });
        at++;
      } else events.push({ kind: "missing", letter });
      break;
    }
  }
  return { events, operands, literal_from };
}

/** getopt's message for a fault, without line end. Returns null if the option is correct. */
export function optionFault(command: string, event: OptionEvent): string | null {
  switch (event.kind) {
    case "option":
      return null;
    case "invalid":
      return `${command}: invalid option -- '${event.letter}'`;
    case "missing":
      return `${command}: option requires an argument -- '${event.letter}'`;
    default: {
      const unreachable: never = event;
      return unreachable;
    }
  }
}
