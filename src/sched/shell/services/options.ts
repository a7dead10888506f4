// Reads options of service modules. A wrong value keeps the module out of the chain, and the reason is reported.

import { parseSize, sizeBytes } from "#model/values/size.ts";
import type { OptionRow, Options } from "../../shapes/module.ts";

export type Reader = {
  /** Returns the number of bytes of a size such as 100mb. */
  size(name: string): number;
  /** Returns a whole number. */
  whole(name: string): number;
  boolean(name: string): boolean;
};

/** Creates a reader for options. Options that are not set have the defaults of their rows. */
export function optionReader(rows: readonly OptionRow[], options: Options): Reader {
  const text = (name: string): string => options.get(name) ?? rows.find((row) => row.name === name)?.default ?? "";
  const wrong = (name: string, what: string): Error => new Error(`option ${name}: ${text(name)} is no ${what}`);
  return {
    size(name) {
      const size = parseSize(text(name));
      if (size === null) throw wrong(name, "size");
      return sizeBytes(size);
    },
    whole(name) {
      if (!/^\d{1,9}$/.test(text(name))) throw wrong(name, "whole number");
      return Number(text(name));
    },
    boolean(name) {
      if (/^(true|t|yes|y|1)$/i.test(text(name))) return true;
      if (/^(false|f|no|n|0)$/i.test(text(name))) return false;
      throw wrong(name, "boolean");
    },
  };
}
