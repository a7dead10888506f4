// Brief status items (StatusRequest.brief). Most jobs of a listing have the same attribute values as the job before them, so a
// brief item contains only the differences.
//
// B1. Expanding brief items gives the original items: same ids, same attributes with the same values, in the same order.
// B2. The first item of every `part` frame is complete.

import { present } from "#support/assert.ts";
import type { StatusItem, WireAttrs } from "./messages.ts";

/** An item in full, or brief. `like` has only the attributes that differ from the item before. */
export type BriefItem = StatusItem | { readonly id: string; readonly like: WireAttrs };

/** Makes the items of one `part` frame brief. If two successive items have the same attribute record object, no attributes are compared. */
export function briefItems(items: readonly StatusItem[]): BriefItem[] {
  let last: WireAttrs | null = null;
  let names: readonly string[] = [];
  return items.map((item) => {
    if (!("attrs" in item)) return item;
    const { id, attrs } = item;
    const like = last === attrs ? {} : last === null ? null : difference(last, names, attrs);
    if (like !== null) {
      last = attrs;
      return { id, like };
    }
    last = attrs;
    names = Object.keys(attrs);
    return item;
  });
}

/** Returns the attributes that differ, or null if the names or their order differ. */
function difference(last: WireAttrs, names: readonly string[], attrs: WireAttrs): WireAttrs | null {
  const like: { [name: string]: WireAttrs[string] } = {};
  let at = 0;
  for (const name in attrs) {
    if (names[at++] !== name) return null;
    const value = present(attrs[name], name);
    if (value !== last[name]) like[name] = value;
  }
  return at === names.length ? like : null;
}

/** Returns a function that expands the items of a reply one after the other. */
export function wholeItems(): (item: BriefItem) => StatusItem {
  let last: WireAttrs = {};
  return (item) => {
    if ("like" in item) {
      last = { ...last, ...item.like };
      return { id: item.id, attrs: last };
    }
    if ("attrs" in item) last = item.attrs;
    return item;
  };
}
