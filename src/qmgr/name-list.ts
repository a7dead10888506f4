// Name lists: `name[@server][,name[@server]...]` or `@server`, no blanks inside (docs/reference/qmgr.md 3). Pure.

import type { ObjectName } from "./request.ts";

export type NameList = { readonly ok: true; readonly names: readonly ObjectName[] } | { readonly ok: false; readonly offset: number };

/**
 * @param node names of nodes may begin with a digit, all others with a letter
 * @returns the names, or the offset of the error: a bad first character at itself, an empty part at the `@` or `,` before it
 */
export function parseNames(text: string, node: boolean): NameList {
  const names: ObjectName[] = [];
  let start = 0;
  for (const part of text.split(",")) {
    if (part === "") return { ok: false, offset: start === 0 ? 0 : start - 1 };
    const at = part.indexOf("@");
    const second = at < 0 ? -1 : part.indexOf("@", at + 1);
    if (second >= 0) return { ok: false, offset: start + second };
    const first = part.charAt(0);
    const isName = node ? /[A-Za-z0-9]/.test(first) : /[A-Za-z]/.test(first);
    if (at !== 0 && !isName) return { ok: false, offset: start };
    if (at === part.length - 1) return { ok: false, offset: start + at };
    names.push(at < 0 ? { name: part, server: "" } : { name: part.slice(0, at), server: part.slice(at + 1) });
    start += part.length + 1;
  }
  return { ok: true, names };
}
