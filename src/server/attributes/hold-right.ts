// Which holds somebody may set and take back: u everybody on his own jobs, o operators, s and p managers (docs/reference/commands.md 3).

import { PBSE, reject } from "#model/pbse.ts";
import type { Identity } from "../engine/transaction.ts";

const SETTERS: { readonly [letter: string]: readonly Identity["level"][] } = {
  u: ["user", "operator", "manager"],
  o: ["operator", "manager"],
  s: ["manager"],
  p: ["manager"],
};

/** Refuses with 15007 when a letter that comes or goes is beyond the asker's right. */
export function checkHoldRight(who: Identity, before: string, after: string): void {
  for (const letter of "uosp") {
    if (before.includes(letter) !== after.includes(letter) && !SETTERS[letter]?.includes(who.level)) throw reject(PBSE.PERM);
  }
}
