// sqlite3's addon. No binary is fetched from anywhere outside the lock file: the addon is compiled from the locked source against the
// headers that come with the pinned runtime, once per user and machine, and then taken from the user's cache.

import { spawnSync } from "node:child_process";
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { availableParallelism } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { cacheDir } from "./cache.mjs";
import { MODULES, RUNTIME, RUNTIME_PACKAGE } from "./paths.mjs";
import { Problem, runQuietly, say, tail } from "./run.mjs";

const SQLITE3 = join(MODULES, "sqlite3");
const ADDON = join(SQLITE3, "build", "Release", "node_sqlite3.node");

/** Makes sure that sqlite3 works in the pinned runtime: from the cache or by compiling it. */
export async function ensureAddon(lockFile) {
  const cached = cachePath(lockFile);
  if (!existsSync(ADDON) || !loads()) {
    if (cached !== undefined && existsSync(cached)) place(cached, ADDON);
    else await compile();
    if (!loads() && cached !== undefined && existsSync(cached)) {
      say("the cached addon of sqlite3 does not load here");
      rmSync(cached);
      await compile();
    }
    if (!loads()) throw new Problem(`sqlite3 was compiled but does not load:\n${loadError()}`);
  }
  if (cached !== undefined && !existsSync(cached)) place(ADDON, cached);
}

/** The addon speaks N-API, so it depends on the source, the machine's architecture and its C library, not on the version of Node. */
function cachePath(lockFile) {
  const dir = cacheDir("addons");
  const napi = JSON.parse(readFileSync(join(SQLITE3, "package.json"), "utf8")).binary.napi_versions.at(-1);
  const [begin, end] = cacheName(lockFile);
  return dir && join(dir, `${begin}${napi}${end}`);
}

/** The name of a compiled addon before and after the version of its interface. */
function cacheName(lockFile) {
  const { version, integrity = "" } = lockFile.packages["node_modules/sqlite3"];
  const source = Buffer.from(integrity.replace(/^sha512-/, ""), "base64")
    .toString("hex")
    .slice(0, 12);
  return [`sqlite3-${version}-${source}-napi`, `-${process.platform}-${process.arch}-${libc()}.node`];
}

/**
 * Checks before the installation that there is a compiled addon, or everything needed to compile one. Throws a Problem that
 * names what is missing.
 */
export function mustBeAbleToCompile(lockFile) {
  const [begin, end] = cacheName(lockFile);
  const dir = cacheDir("addons");
  const cached = dir !== undefined && existsSync(dir) && readdirSync(dir).some((name) => name.startsWith(begin) && name.endsWith(end));
  if (!cached && !existsSync(ADDON)) toolsToCompile();
}

function libc() {
  const report = process.report;
  report.excludeNetwork = true;
  const glibc = report.getReport().header.glibcVersionRuntime;
  return glibc === undefined ? "musl" : `glibc${glibc}`;
}

/** Copies so that the file appears whole or not at all. */
function place(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  const half = `${to}.${process.pid}`;
  copyFileSync(from, half);
  chmodSync(half, 0o755);
  renameSync(half, to);
}

function loads() {
  return tryLoad().status === 0;
}

function loadError() {
  return tail(tryLoad().stderr, 10);
}

/** In a process of its own: an addon that does not fit may take the process down. */
function tryLoad() {
  const script = `const { Database } = require(${JSON.stringify(SQLITE3)});
    new Database(":memory:").get("select 1 as one", (error, row) => process.exit(error === null && row.one === 1 ? 0 : 1));`;
  return spawnSync(RUNTIME, ["-e", script], { encoding: "utf8", timeout: 60_000 });
}

/** The Python for node-gyp. Throws a Problem that names every tool that is missing. */
function toolsToCompile() {
  const python = findPython();
  const missing = [
    ...(python === undefined ? ["python3"] : []),
    ...(findProgram("make") === undefined ? ["make"] : []),
    ...(findProgram(process.env.CXX?.split(" ")[0] || "g++") === undefined ? ["g++"] : []),
  ];
  if (missing.length > 0) {
    throw new Problem(
      `sqlite3 has to be compiled on this machine, and that needs ${missing.join(", ")}.\n` +
        `Debian, Ubuntu: sudo apt-get install -y ${missing.join(" ")}`,
    );
  }
  return python;
}

async function compile() {
  const python = toolsToCompile();
  say("compiling sqlite3 (about a minute, once per user and machine)");
  rmSync(join(SQLITE3, "build"), { recursive: true, force: true });
  const gyp = join(MODULES, "node-gyp", "bin", "node-gyp.js");
  const nodedir = findHeaders();
  const args = [gyp, "rebuild", `--python=${python}`, `--jobs=${availableParallelism()}`, "--build_from_source=true"];
  if (nodedir !== undefined) args.push(`--nodedir=${nodedir}`);
  const result = await runQuietly("compiling sqlite3", RUNTIME, args, { cwd: SQLITE3, env: buildEnvironment() });
  if (result.status !== 0) throw new Problem(`sqlite3 could not be compiled (exit ${result.status}):\n${tail(result.output)}`);
  say(`compiled sqlite3 in ${result.seconds} s`);
  dropObjects();
}

/**
 * The pinned runtime's own headers; otherwise those of the Node that runs this script; otherwise node-gyp searches for them
 * (and may need the network).
 */
function findHeaders() {
  const places = [join(MODULES, RUNTIME_PACKAGE), dirname(dirname(process.execPath)), "/usr"];
  return places.find((place) => existsSync(join(place, "include", "node", "node_api.h")));
}

/** npm's configuration of this user must not change what is built. */
function buildEnvironment() {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^npm_config_(nodedir|python|devdir|target|runtime|arch|sqlite.*)$/i.test(name),
  );
  return { ...Object.fromEntries(entries), PATH: `${dirname(RUNTIME)}${delimiter}${process.env.PATH ?? "/usr/bin:/bin"}` };
}

/** The system's Python first: one from a version manager may be a wrapper that only works for its owner. */
function findPython() {
  return ["/usr/bin/python3", process.env.PYTHON, findProgram("python3")].find((python) => {
    if (!python) return false;
    const check = "import sys; sys.exit(sys.version_info < (3, 8))";
    return spawnSync(python, ["-c", check], { timeout: 30_000 }).status === 0;
  });
}

/** Full path of a program in PATH. */
export function findProgram(name, path = process.env.PATH ?? "") {
  if (name.includes("/")) return isExecutable(name) ? name : undefined;
  const places = path
    .split(delimiter)
    .filter(Boolean)
    .map((dir) => join(dir, name));
  return places.find(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Twenty megabytes of intermediate files that nobody needs again. */
function dropObjects() {
  const build = join(SQLITE3, "build");
  for (const name of readdirSync(build)) if (name !== "Release") rmSync(join(build, name), { recursive: true, force: true });
  for (const name of readdirSync(dirname(ADDON))) {
    if (name !== "node_sqlite3.node") rmSync(join(dirname(ADDON), name), { recursive: true, force: true });
  }
}
