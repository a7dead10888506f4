// Started by the launcher of a daemon in a checkout: makes the bundles fresh when a source is newer. `refresh.mjs NAME` fails when NAME's bundle
// does not build. Without the right to write here, what there is gets started, and said to be old.

import { accessSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { isStale, mustHaveBuilt, refreshBundles } from "./lib/bundle.mjs";
import { ensureInstalled } from "./lib/install.mjs";
import { DIST, ROOT } from "./lib/paths.mjs";
import { Problem, say } from "./lib/run.mjs";

try {
  const name = process.argv[2];
  if (existsSync(DIST) && !isWritable()) {
    if (isStale()) say(`sources in ${ROOT} are newer than the bundles, which you may not write: starting the older ones`);
  } else {
    await ensureInstalled();
    mustHaveBuilt(await refreshBundles({ silent: true }), name);
  }
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  say(error.message);
  process.exitCode = 1;
}

function isWritable() {
  try {
    for (const dir of [ROOT, join(DIST)]) accessSync(dir, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
