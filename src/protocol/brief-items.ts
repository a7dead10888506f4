// Status items in brief (StatusRequest.brief): jobs in a listing mostly have what the job before them has, so an item says only what is different.
//
// B1. What one side makes brief the other makes whole again: same ids, same attributes with the same values, in the same order.
// B2. The first item of every part is whole.

import type { StatusItem, WireAttrs } from "./messages.ts";

/** like: as the item before, but for these attributes. */
export type BriefItem = StatusItem | { readonly id: string; readonly like: WireAttrs };

/** The items of one part. Records of attributes that are the same object are not looked into. */
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

/** null: not the same names in the same order. */
function difference(last: WireAttrs, names: readonly string[], attrs: WireAttrs): WireAttrs | null {
  const like: { [name: string]: WireAttrs[string] } = {};
  let at = 0;
  for (const name in attrs) {
    if (names[at++] !== name) return null;
    const value = attrs[name] as WireAttrs[string];
    if (value !== last[name]) like[name] = value;
  }
  return at === names.length ? like : null;
}

/** Makes the items of a reply whole, one after the other. */
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
