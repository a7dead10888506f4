// Makes an installation complete: packages as locked, the pinned runtime, sqlite3's addon. Does nothing, in a millisecond or two, when it is.
//
// I1. No package's own install script runs (.npmrc says ignore-scripts): what has to be done is done here, from files that the lock file pins.
// I2. An installation that was interrupted is not complete: the stamp is written last.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { ensureAddon, mustBeAbleToCompile } from "./addon.mjs";
import { withLock } from "./lock.mjs";
import { installPackages } from "./packages.mjs";
import { MODULES, ROOT, RUNTIME, RUNTIME_PACKAGE } from "./paths.mjs";
import { Problem, tail } from "./run.mjs";

const LOCK_FILE = join(ROOT, "package-lock.json");
const STAMP = join(MODULES, ".partita.json");

/** Installs what is missing; returns at once when nothing is. Throws a Problem that says what to do. */
export async function ensureInstalled() {
  const wanted = stampText();
  if (isStamped(wanted)) return;
  mustBeWritable();
  await withLock(join(ROOT, ".install.lock"), "installing", async () => {
    if (isStamped(wanted)) return;
    const lockFile = JSON.parse(readFileSync(LOCK_FILE, "utf8"));
    // Faults that would end the installation after the packages are reported before them.
    mustBeAbleToCompile(lockFile);
    if (!packagesMatch(lockFile)) await installPackages(Object.keys(lockFile.packages).length);
    linkRuntime();
    await ensureAddon(lockFile);
    writeFileSync(STAMP, wanted);
  });
}

/** The text that identifies a complete installation of this checkout on this machine. */
function stampText() {
  const lock = createHash("sha256").update(readFileSync(LOCK_FILE)).digest("hex");
  return `${JSON.stringify({ lock, platform: process.platform, arch: process.arch })}\n`;
}

function isStamped(wanted) {
  try {
    return readFileSync(STAMP, "utf8") === wanted && existsSync(RUNTIME);
  } catch {
    return false;
  }
}

function mustBeWritable() {
  try {
    accessSync(ROOT, constants.W_OK);
  } catch {
    throw new Problem(
      `this checkout is not completely installed, and you may not write to ${ROOT}: its owner has to run \`npm run build\` there once`,
    );
  }
}

/** Whether npm has already installed just what the lock file says (npm keeps its own record of what it installed). */
function packagesMatch(lockFile) {
  let installed;
  try {
    installed = JSON.parse(readFileSync(join(MODULES, ".package-lock.json"), "utf8")).packages;
  } catch {
    return false;
  }
  return Object.entries(lockFile.packages).every(([path, entry]) => {
    if (path === "" || entry.peer) return true;
    const found = installed[path];
    if (found === undefined) return entry.optional === true && !isForThisMachine(entry);
    return found.version === entry.version && found.integrity === entry.integrity && existsSync(join(ROOT, path, "package.json"));
  });
}

/** An optional package that carries a binary for this platform is not optional to us. */
function isForThisMachine(entry) {
  const allows = (list, value) => list === undefined || [list].flat().includes(value);
  return allows(entry.os, process.platform) && allows(entry.cpu, process.arch) && allows(entry.libc, "glibc");
}

/** node_modules/node/bin/node becomes the binary of the platform's package, which the lock file pins (the package `node` would fetch it unpinned). */
function linkRuntime() {
  const binary = join(MODULES, RUNTIME_PACKAGE, "bin", "node");
  if (!existsSync(binary))
    throw new Problem(`there is no pinned Node for ${process.platform} ${process.arch} (package ${RUNTIME_PACKAGE})`);
  chmodSync(binary, 0o755);
  mkdirSync(dirname(RUNTIME), { recursive: true });
  replace(RUNTIME, (half) => {
    try {
      linkSync(binary, half);
    } catch {
      copyFileSync(binary, half);
    }
  });
  mkdirSync(join(MODULES, ".bin"), { recursive: true });
  replace(join(MODULES, ".bin", "node"), (half) => symlinkSync("../node/bin/node", half));
  const ran = spawnSync(RUNTIME, ["--version"], { encoding: "utf8" });
  if (ran.status !== 0) throw new Problem(`the pinned Node does not run here: ${ran.error?.message ?? tail(ran.stderr)}`);
}

function replace(path, make) {
  const half = `${path}.${process.pid}`;
  rmSync(half, { force: true });
  make(half);
  renameSync(half, path);
}
