// `npm run lock`: makes package-lock.json from package.json so that `npm ci` accepts it everywhere. Done away from node_modules, because npm
// otherwise leaves out the packages of other platforms; without addresses; and without optional packages that the registry does not have.

import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./lib/paths.mjs";
import { say } from "./lib/run.mjs";

const dir = mkdtempSync(join(tmpdir(), "partita-lock-"));
try {
  for (const name of ["package.json", "package-lock.json", ".npmrc"])
    if (existsSync(join(ROOT, name))) copyFileSync(join(ROOT, name), join(dir, name));
  const npm = spawnSync("npm", ["install", "--package-lock-only", "--ignore-scripts", "--loglevel=error"], { cwd: dir, stdio: "inherit" });
  if (npm.status !== 0) process.exit(1);
  const lock = JSON.parse(readFileSync(join(dir, "package-lock.json"), "utf8"));
  for (const [path, entry] of Object.entries(lock.packages)) tidy(lock.packages, path, entry);
  writeFileSync(join(ROOT, "package-lock.json"), `${JSON.stringify(lock, null, 2)}\n`);
  say(`package-lock.json: ${Object.keys(lock.packages).length} entries`);
} finally {
  rmSync(dir, { recursive: true, force: true });
}

function tidy(packages, path, entry) {
  delete entry.resolved;
  for (const name of Object.keys(entry.optionalDependencies ?? {})) {
    if (isListed(packages, path, name)) continue;
    say(`left out: ${name}, optional for ${path}, is not in the registry`);
    delete entry.optionalDependencies[name];
  }
}

/** Node looks for a package beside the file that imports it, and then in the directories above. */
function isListed(packages, from, name) {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf("node_modules/") - 1))) {
    if (packages[`${base === "" ? "" : `${base}/`}node_modules/${name}`] !== undefined) return true;
    if (base === "") return false;
  }
}
