// Where things are in a checkout. Everything in scripts/ runs on any Node from 20 on, before anything is installed, and has no dependencies.

import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** The checkout. */
export const ROOT = resolve(fileURLToPath(new URL("../..", import.meta.url)));
export const MODULES = join(ROOT, "node_modules");
export const DIST = join(ROOT, "dist");

/** The pinned Node 24 that runs everything but scripts/: a link to the binary of the platform's package (see install.mjs). */
export const RUNTIME = join(MODULES, "node", "bin", "node");

/** The package that carries the pinned runtime, with its headers, for this machine. */
export const RUNTIME_PACKAGE = `node-${process.platform}-${process.arch}`;

/** A path as people want to read it: relative to the checkout where it is inside. */
export function shown(path) {
  return path.startsWith(`${ROOT}/`) ? path.slice(ROOT.length + 1) : path;
}
