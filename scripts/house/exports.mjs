// Exported values that no other file imports: what only its own file uses needs no `export`, what nobody uses need not be there. Types are not counted: a type
// that stands in the signature of an exported function is exported so that it can be named.

import { dirname, join } from "node:path/posix";
import { PROGRAMS } from "../lib/programs.mjs";

/** Files that entries of bundles import. */
export const PROGRAM_SOURCES = new Set([...PROGRAMS.map(({ source }) => source), "src/cli/run-process.ts"]);

const EXPORT = /^export (?:declare )?(?:abstract )?(?:async )?(?:const|let|function\*?|class) (\w+)/gm;
const EXPORT_LIST = /^export \{([^}]*)\}/gm;
const IMPORT_LIST = /\b(?:import|export)\s+(?:type\s+)?(?:\w+\s*,\s*)?\{([^}]*)\}\s+from\s+["']([^"']+)["']/g;
/** A namespace, a dynamic import, a type by its path: every name of the importing file's text may be meant. */
const WHOLE = /(?:\*(?:\s+as\s+\w+)?\s+from\s+|\bimport\(\s*)["'`]([^"'`]+)["'`]/g;

/**
 * `path name` of each unused export. files: [{path, text}]; exports of files below src/ must be used by another file. entries:
 * files whose `run` is found by its name, or with which entries of bundles start.
 */
export function unusedExports(files, entries) {
  const paths = new Set(files.map(({ path }) => path));
  const used = new Set();
  for (const { path, text } of files) {
    for (const [, names, specifier] of text.matchAll(IMPORT_LIST)) {
      const target = resolved(path, specifier, paths);
      for (const name of namesOf(names)) used.add(`${target} ${name}`);
    }
    for (const [, specifier] of text.matchAll(WHOLE)) {
      const target = resolved(path, specifier, paths);
      if (target !== undefined) for (const [word] of text.matchAll(/\w+/g)) used.add(`${target} ${word}`);
    }
  }
  return files
    .filter(({ path }) => path.startsWith("src/") && !path.endsWith(".d.ts"))
    .flatMap(({ path, text }) => exportsOf(text).map((name) => `${path} ${name}`))
    .filter((each) => !used.has(each) && !(/ run(?:Process)?$/.test(each) && entries.has(each.split(" ")[0])));
}

function exportsOf(text) {
  const listed = [...text.matchAll(EXPORT_LIST)].flatMap(([, names]) => namesOf(names, "exported"));
  return [...new Set([...[...text.matchAll(EXPORT)].map(([, name]) => name), ...listed])];
}

/** The names in a braced list: as the other file names them, or (for an export) as they are named outside. */
function namesOf(list, side) {
  return list
    .replaceAll(/\/\/.*$/gm, "")
    .split(",")
    .map((item) => item.trim().replace(/^type /, ""))
    .filter(Boolean)
    .map((item) => item.split(/\s+as\s+/).at(side === "exported" ? -1 : 0));
}

function resolved(from, specifier, paths) {
  const target = specifier.startsWith("#")
    ? `src/${specifier.slice(1)}`
    : specifier.startsWith(".")
      ? join(dirname(from), specifier)
      : undefined;
  return target !== undefined && paths.has(target) ? target : undefined;
}
