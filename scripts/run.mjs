// The entry of every npm script: completes the installation, refreshes the bundles where they are used, and runs the work in the pinned Node.
// `node scripts/run.mjs NAME [ARGUMENT...]`; package.json lists the names.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildAll, mustHaveBuilt, refreshBundles } from "./lib/bundle.mjs";
import { ensureInstalled } from "./lib/install.mjs";
import { ROOT, RUNTIME } from "./lib/paths.mjs";
import { Problem, runInOurPlace, say } from "./lib/run.mjs";

const SCRIPTS = {
  /** Installation and fresh bundles, nothing else. */
  build: async () => mustHaveBuilt(await buildAll()),
  /** Types, lint, format and pure tests: before every commit. */
  check: (args) => runTests("check", args),
  test: (args) => runTests("test", args),
  "test:all": (args) => runTests("all", args),
  bench: (args) => runSource("bench/main.ts", args, { withBundles: true }),
  sim: (args) => runSource("src/sim/main.ts", args, { withBundles: false }),
  demo: async (args) => {
    mustHaveBuilt(await refreshBundles(), "partita");
    return runInOurPlace(join(ROOT, "bin", "partita"), ["demo", ...args]);
  },
  /** Figures about the structure of the sources. */
  house: (args) => runNode([join(ROOT, "scripts", "house", "main.mjs"), ...args]),
  /** Brings the tables in docs/reference up to date. */
  reference: () => runNode([join(ROOT, "scripts", "reference", "main.mjs")]),
  /** Recreates package-lock.json after a change of package.json. */
  lock: () => runInOurPlace(process.execPath, [join(ROOT, "scripts", "lock-file.mjs")]),
  /** The Debian package of this checkout: npm run deb [-- DIRECTORY [VERSION]]. */
  deb: (args) => runNode([join(ROOT, "scripts", "deb", "main.mjs"), ...args]),
  /** Formats and sorts imports in place. */
  format: (args) => runNode([join(ROOT, "node_modules", "@biomejs", "biome", "bin", "biome"), "check", "--write", ...args]),
};

async function runTests(what, args) {
  return runNode([join(ROOT, "scripts", "test.mjs"), what, ...args]);
}

async function runSource(source, args, { withBundles }) {
  if (!existsSync(join(ROOT, source))) throw new Problem(`${source} is not there yet`);
  if (withBundles) mustHaveBuilt(await refreshBundles());
  return runNode([join(ROOT, source), ...args]);
}

function runNode(args) {
  return runInOurPlace(RUNTIME, args);
}

try {
  const [name, ...args] = process.argv.slice(2);
  const script = SCRIPTS[name];
  if (script === undefined) throw new Problem(`no script ${name}; there are: ${Object.keys(SCRIPTS).join(" ")}`);
  if (name !== "lock") await ensureInstalled();
  process.exitCode = (await script(args)) ?? 0;
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  say(error.message);
  process.exitCode = 1;
}
