// dist/pbs_launcher, the launcher of the commands, from native/*.c with the machine's C compiler. Nothing needs it: without a compiler the scripts of bin/ start
// Node for every command, as they do where it is missing.
//
// N1. The file is replaced whole, by rename. A source that does not compile leaves the old one, and is told.
// N2. Where it could not be built, the next attempt comes with a change of the sources (dist/pbs_launcher.none tells why and since when) or `npm run build`.

import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, lchownSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProgram } from "./addon.mjs";
import { DIST, ROOT } from "./paths.mjs";
import { say, tail } from "./run.mjs";

const SOURCES = join(ROOT, "native");
const LAUNCHER = join(DIST, "pbs_launcher");
const NONE = `${LAUNCHER}.none`;
const FLAGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-s"];
/** A static program starts faster, but not every machine can link one. */
const WAYS = [["-static"], []];
const LIMIT_MS = 120_000;

/** Whether the sources are younger than the launcher, or than the attempt that failed. */
export function isLauncherStale() {
  const tried_ms = Math.max(...[LAUNCHER, NONE].map((path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0));
  return readdirSync(SOURCES).some((name) => statSync(join(SOURCES, name)).mtimeMs > tried_ms);
}

/** Whether the last attempt failed. */
export const hasNoLauncher = () => existsSync(NONE);

/** Compiles the launcher into dist/. Returns the reason if there is no launcher afterwards, otherwise undefined. */
export function buildLauncher() {
  const why = compile();
  rmSync(NONE, { force: true });
  if (why === undefined) return undefined;
  writeFileSync(NONE, `${why}\n`);
  say(`no launcher in C, so every command starts a Node of its own: ${why}`);
  return why;
}

function compile() {
  const compiler = findProgram(process.env.CC?.split(" ")[0] || "cc") ?? findProgram("gcc") ?? findProgram("clang");
  if (compiler === undefined) return "there is no C compiler (Debian: gcc, libc6-dev)";
  const sources = readdirSync(SOURCES)
    .filter((name) => name.endsWith(".c"))
    .map((name) => join(SOURCES, name));
  const half = `${LAUNCHER}.${process.pid}`;
  let output = "";
  for (const way of WAYS) {
    const result = spawnSync(compiler, [...FLAGS, ...way, "-o", half, ...sources], { encoding: "utf8", timeout: LIMIT_MS });
    if (result.status === 0 && runs(half)) {
      place(half);
      return undefined;
    }
    output = result.error?.message ?? `${result.stderr}${result.stdout}`;
    rmSync(half, { force: true });
  }
  return `${compiler} does not compile native/:\n${tail(output, 10)}`;
}

/** Whether the compiled program runs on this machine: without arguments it prints its usage. */
function runs(path) {
  const { status, stderr } = spawnSync(path, [], { encoding: "utf8", argv0: "pbs_launcher", timeout: LIMIT_MS });
  return status === 127 && /usage: pbs_launcher/.test(stderr);
}

/** The file belongs to the owner of the checkout, whichever user builds it. */
function place(half) {
  const owner = statSync(ROOT);
  chmodSync(half, 0o755);
  if (process.getuid?.() === 0 && owner.uid !== 0) lchownSync(half, owner.uid, owner.gid);
  renameSync(half, LAUNCHER);
}
