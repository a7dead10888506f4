// `modules:` and `NAME.key: value` of sched_config as data (docs/modules.md). Pure: the code in shell/ checks whether the files exist and are safe.
//
// L1. A module has one name in a chain. A site's module is named after its file without the ending, and may have the name of a built-in module that is not
//     listed.

import { MODULES_LATER, moduleNamed, SERVICES } from "../modules/index.ts";
import type { ModuleOptions, Options } from "../shapes/module.ts";

/** A site's own module. path: as written in the line; a relative path begins in sched_priv. */
export type SiteModule = { readonly name: string; readonly path: string };
export type ModuleLine = {
  readonly names: readonly string[];
  readonly site: readonly SiteModule[];
  readonly wrong: readonly WrongModule[];
};
/** A name in the line that cannot be part of the chain, and the reason. */
export type WrongModule = { readonly name: string; readonly text: string };

/** Reads the value of `modules:`. wrong: the mistakes in it. */
export function readModules(value: string): ModuleLine {
  const names: string[] = [];
  const site: SiteModule[] = [];
  const wrong: WrongModule[] = [];
  for (const word of value.split(/[\s,]+/).filter((each) => each !== "")) {
    const own = siteModule(word);
    const name = own?.name ?? word;
    const text = wrongWith(own, name, names);
    if (text !== null) {
      wrong.push({ name, text });
      continue;
    }
    names.push(name);
    if (own !== null) site.push(own);
  }
  return { names, site, wrong };
}

/** Returns the module that a word names by its path; null: the word is a name. A word with a slash, or with the ending of a program, is a path. */
function siteModule(word: string): SiteModule | null {
  if (!/\/|\.m?[jt]s$/.test(word)) return null;
  const file = word.slice(word.lastIndexOf("/") + 1);
  return { name: file.replace(/\.m?[jt]s$/, ""), path: word };
}

function wrongWith(own: SiteModule | null, name: string, names: readonly string[]): string | null {
  if (own !== null && !/^[A-Za-z_][\w-]*$/.test(name)) return `module ${own.path} is left out: its file name is no name for a module`;
  if (names.includes(name)) return `module ${name} is listed twice`;
  if (own !== null || moduleNamed(name) !== undefined || SERVICES.includes(name)) return null;
  return MODULES_LATER.includes(name) ? `module ${name} is not supported yet and left out` : `Unknown module ${name}`;
}

/** Splits the name of an option, `NAME.key`; null: the text is no such name. */
export function optionName(name: string): { readonly module: string; readonly key: string } | null {
  const at = name.lastIndexOf(".");
  return at <= 0 || at === name.length - 1 ? null : { module: name.slice(0, at), key: name.slice(at + 1) };
}

const NONE: Options = new Map();

/** Returns the options of a module. */
export function optionsOf(all: ModuleOptions | undefined, module: string): Options {
  return all?.get(module) ?? NONE;
}
