// Reads options as POSIX getopt does, and reports their faults as glibc does (docs/reference/commands.md 0). Letters may be grouped (-fx), and a value may
// follow its letter directly (-lselect=2). `--` ends the options. Options may follow operands unless POSIXLY_CORRECT is set. Pure.

import { nth } from "#support/assert.ts";

/** An option in the command line. invalid: the command does not know the letter. missing: the option has no value. */
export type OptionEvent =
  | { readonly kind: "option"; readonly letter: string; readonly value: string }
  | { readonly kind: "invalid"; readonly letter: string }
  | { readonly kind: "missing"; readonly letter: string };

export type OptionScan = {
  readonly events: readonly OptionEvent[];
  readonly operands: readonly string[];
  /** index in `operands` of the first operand after `--`; null: there is no `--` */
  readonly literal_from: number | null;
};

/** Reads the options of a command line. letters: as for getopt; `ab:c` means -a, -b VALUE, -c. operandsFirst false: the first operand ends the options. */
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

/** Returns getopt's message about an option, without line end; null: the option is correct. */
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
