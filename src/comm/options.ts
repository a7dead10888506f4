// The command line of pbs_comm (docs/reference/files.md 10). Pure.

import { nth } from "#support/assert.ts";

export type CommOptions = {
  /** -N */
  readonly foreground: boolean;
  /** -e: mask of log events */
  readonly log_events: number | null;
};

export const USAGE = "Usage: pbs_comm [-r other_pbs_comms] [-t number_of_threads] [-e log_events] [-N]\n       pbs_comm --version\n";

/**
 * Parses the command line. Returns a string that describes the fault if there is one. -r and -t are checked but have no effect, because there is nothing to
 * route.
 */
export function parseCommOptions(argv: readonly string[]): CommOptions | string {
  let foreground = false;
  let log_events: number | null = null;
  for (let at = 0; at < argv.length; at++) {
    const word = nth(argv, at);
    if (word === "-N") {
      foreground = true;
      continue;
    }
    const letter = word[1] ?? "";
    if (!/^-[a-zA-Z]/.test(word)) return `unexpected argument ${word}`;
    if (!"rte".includes(letter)) return `invalid option -- '${letter}'`;
    const value = word.length > 2 ? word.slice(2) : argv[++at];
    if (value === undefined) return `option requires an argument -- '${letter}'`;
    if (letter === "t" && !/^[1-9]\d{0,2}$/.test(value)) return `-t ${value}: must be a number from 1 to 999`;
    if (letter === "e") {
      if (!/^(0x[0-9a-f]{1,8}|\d{1,9})$/i.test(value)) return `-e ${value}: must be a number`;
      log_events = Number(value);
    }
  }
  return { foreground, log_events };
}
