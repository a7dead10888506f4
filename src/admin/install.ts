// `partita init --system`: PBS_EXEC, root-owned and readable by all, so that nothing of a checkout is needed afterwards.
//   PBS_EXEC/lib/partita  dist, etc, the packages with native code and the pinned Node     PBS_EXEC/bin, sbin  launchers
//   PBS_EXEC/etc          pristine defaults                                                PBS_EXEC/libexec    pbs_init.d, pbs_habitat
//
// I1. lib/partita is replaced whole, by rename: programs that run keep their files.
// I2. No link is made into the source: what is installed cannot be changed through a file that a user owns.

import {
  chmodSync,
  constants,
  cpSync,
  existsSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { AdminError, programTree } from "./complex-home.ts";

/** What an installed copy consists of: recorded beside the bundles when they were made (scripts/lib/programs.mjs). */
type Installation = {
  readonly files: readonly string[];
  readonly bin: readonly string[];
  readonly sbin: readonly string[];
  /** those of bin that pbs_launcher starts */
  readonly commands: readonly string[];
};

/** Installs into PBS_EXEC, or updates what is there. conf: the pbs.conf read when PBS_CONF_FILE is not set. */
export function install(exec: string, conf: string): void {
  const tree = programTree();
  const what = recorded(tree);
  for (const folder of ["", "bin", "sbin", "lib", "libexec", "etc"]) mkdirSync(join(exec, folder), { recursive: true, mode: 0o755 });
  const library = join(exec, "lib", "partita");
  if (library !== tree) copyLibrary(tree, library, [...what.files, "etc"]);
  // Where it was built, the program itself stands under the name of each command, which saves the start of a shell.
  const program = join(library, "dist", "pbs_launcher");
  const direct = new Set(existsSync(program) ? what.commands : []);
  for (const [folder, names] of [
    ["bin", what.bin],
    ["sbin", what.sbin],
  ] as const) {
    for (const name of names) {
      if (direct.has(name)) linkFile(program, join(exec, folder, name));
      else replaceFile(join(exec, folder, name), readFileSync(launcher(tree, folder, name)), 0o755);
    }
  }
  const etc = join(library, "etc");
  for (const name of readdirSync(etc).filter((file) => !file.endsWith(".in")))
    replaceFile(join(exec, "etc", name), readFileSync(join(etc, name)), 0o644);
  for (const name of ["pbs_init.d", "pbs_habitat"]) replaceFile(join(exec, "libexec", name), fromTemplate(`${name}.in`, exec, conf), 0o755);
  for (const folder of ["", "bin", "sbin", "lib", "libexec", "etc"]) {
    lchownSync(join(exec, folder), 0, 0);
    chmodSync(join(exec, folder), 0o755);
  }
}

/** A shipped template with @EXEC@ and @CONF@ filled in. */
export function fromTemplate(name: string, exec: string, conf: string): Buffer {
  const text = readFileSync(join(programTree(), "etc", name), "utf8");
  return Buffer.from(text.replaceAll("@EXEC@", exec).replaceAll("@CONF@", conf));
}

function recorded(tree: string): Installation {
  const record = join(tree, "dist", "bundles.json");
  if (!existsSync(record)) throw new AdminError(`${record} is missing: run npm run build in ${tree}`);
  const { install: what, failed = [] } = JSON.parse(readFileSync(record, "utf8")) as {
    readonly install?: Installation;
    readonly failed?: readonly string[];
  };
  if (failed.length > 0) throw new AdminError(`not built: ${failed.join(", ")}: run npm run build in ${tree}`);
  if (what === undefined) throw new AdminError(`${record} is too old: run npm run build in ${tree}`);
  return what;
}

/** In a checkout all launchers are in bin; an installation has them where they go. */
function launcher(tree: string, folder: string, name: string): string {
  const candidates = [join(tree, "bin", name), resolve(tree, "../..", folder, name)];
  const found = candidates.find((path) => existsSync(path));
  if (found === undefined) throw new AdminError(`the launcher of ${name} is missing in ${tree}`);
  return found;
}

function copyLibrary(tree: string, to: string, paths: readonly string[]): void {
  const fresh = `${to}.new-${process.pid}`;
  const old = `${to}.old-${process.pid}`;
  rmSync(fresh, { recursive: true, force: true });
  try {
    for (const path of paths) {
      const source = join(tree, path);
      if (!existsSync(source)) throw new AdminError(`${source} is missing: run npm run build in ${tree}`);
      mkdirSync(dirname(join(fresh, path)), { recursive: true, mode: 0o755 });
      cpSync(source, join(fresh, path), { recursive: true, dereference: true, mode: constants.COPYFILE_FICLONE });
    }
    own(fresh);
    if (existsSync(to)) renameSync(to, old);
    renameSync(fresh, to);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
    rmSync(old, { recursive: true, force: true });
  }
}

/** Everything belongs to root, everybody may read, nobody else may write; executables stay executable. */
function own(path: string): void {
  const { mode } = lstatSync(path);
  lchownSync(path, 0, 0);
  const isDirectory = (mode & constants.S_IFMT) === constants.S_IFDIR;
  chmodSync(path, isDirectory || (mode & 0o100) !== 0 ? 0o755 : 0o644);
  if (isDirectory) for (const name of readdirSync(path)) own(join(path, name));
}

/** A second name of an installed file, or a copy where the file system has no second names. */
function linkFile(from: string, to: string): void {
  const half = `${to}.new-${process.pid}`;
  rmSync(half, { force: true });
  try {
    linkSync(from, half);
  } catch {
    return replaceFile(to, readFileSync(from), 0o755);
  }
  renameSync(half, to);
  // Of two names of one file rename leaves both.
  rmSync(half, { force: true });
}

/** By rename: a shell that reads the old script goes on reading it. */
export function replaceFile(path: string, content: Buffer, mode: number): void {
  const half = `${path}.new-${process.pid}`;
  writeFileSync(half, content, { mode });
  chmodSync(half, mode);
  renameSync(half, path);
}
