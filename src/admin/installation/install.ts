// `partita init --system`: installs PBS_EXEC, owned by root and readable by all, so that no checkout is needed afterwards.
//   PBS_EXEC/lib/partita  dist, etc, the packages with native code, and the version of Node.js that belongs to the release
//   PBS_EXEC/lib/python   modules pbs and pbs_ifl
//   PBS_EXEC/bin, sbin    launchers
//   PBS_EXEC/libexec      pbs_init.d, pbs_habitat
//   PBS_EXEC/etc          configuration files with the defaults
//   PBS_EXEC/share        manual pages (man), completion of command lines (completion)
//
// I1. lib/partita is replaced as a whole, by rename, so that running programs keep their files.
// I2. The installation contains no link to the source, so that no file of a user can change it.

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
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { AdminError, programTree } from "../complex/complex-home.ts";

/** The contents of an installation. The list was written beside the bundles when they were built (scripts/lib/programs.mjs). */
type Installation = {
  readonly files: readonly string[];
  readonly bin: readonly string[];
  readonly sbin: readonly string[];
  /** those programs in bin that pbs_launcher starts */
  readonly commands: readonly string[];
};

/** Installs the programs into PBS_EXEC, or updates them there. conf: path of the pbs.conf that they use if PBS_CONF_FILE is not set. */
export function install(exec: string, conf: string): void {
  const tree = programTree();
  const what = recorded(tree);
  for (const folder of FOLDERS) mkdirSync(join(exec, folder), { recursive: true, mode: 0o755 });
  const library = join(exec, "lib", "partita");
  if (library !== tree) copyLibrary(tree, library, [...what.files, "etc"]);
  // If the native launcher was built, each command is a link to it, so that no shell has to start.
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
  for (const name of defaults(etc)) replaceFile(join(exec, "etc", name), readFileSync(join(etc, name)), 0o644);
  for (const [path, template] of TEMPLATES) replaceFile(join(exec, path), fromTemplate(template, exec, conf), 0o755);
  replaceFile(join(exec, "bin/pbs_sleep"), sleepProgram(), 0o755);
  copyPython(library, join(exec, "lib/python"));
  copyManual(join(library, "dist/man"), join(exec, "share/man"));
  for (const name of namesIn(join(library, COMPLETION)))
    replaceFile(join(exec, "share/completion", name), readFileSync(join(library, COMPLETION, name)), 0o644);
  for (const folder of FOLDERS) {
    lchownSync(join(exec, folder), 0, 0);
    chmodSync(join(exec, folder), 0o755);
  }
}

const COMPLETION = "dist/completion";
/** Sections of the manual: commands, formats of files, attributes, programs for administrators. */
const MANUAL = ["man1", "man5", "man7", "man8"] as const;
const FOLDERS = [
  "",
  "bin",
  "sbin",
  "lib",
  "lib/python",
  "lib/python/pbs",
  "libexec",
  "etc",
  "share",
  "share/completion",
  "share/man",
  ...MANUAL.map((section) => `share/man/${section}`),
];
const TEMPLATES = [
  ["libexec/pbs_init.d", "pbs_init.d.in"],
  ["libexec/pbs_habitat", "pbs_habitat.in"],
  ["sbin/pbs_probe", "pbs_probe.in"],
] as const;

const defaults = (etc: string): readonly string[] => namesIn(etc).filter((name) => !name.endsWith(".in"));
/** Returns the names of the files in a directory, without subdirectories. If the directory does not exist, there are none. */
const namesIn = (folder: string): readonly string[] =>
  existsSync(folder)
    ? readdirSync(folder, { withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => name)
    : [];

/**
 * Returns the paths below PBS_EXEC that the installation has made; files come before their directories. They are taken from
 * the programs in PBS_EXEC, so files of other origin are not among them.
 */
export function installed(exec: string): readonly string[] {
  const library = join(exec, "lib/partita");
  const what = recorded(library);
  const manual = MANUAL.flatMap((section) => namesIn(join(library, "dist/man", section)).map((name) => `share/man/${section}/${name}`));
  return [
    ...what.bin.map((name) => `bin/${name}`),
    ...what.sbin.map((name) => `sbin/${name}`),
    ...defaults(join(library, "etc")).map((name) => `etc/${name}`),
    ...TEMPLATES.map(([path]) => path),
    "bin/pbs_sleep",
    ...PYTHON.flatMap(([folder, to]) => namesIn(join(library, folder)).map((name) => join("lib/python", to, name))),
    ...manual,
    ...namesIn(join(library, COMPLETION)).map((name) => `share/completion/${name}`),
    "lib/partita",
    ...FOLDERS.toReversed(),
  ];
}

/**
 * Returns a sleep program, which is installed under a name that tools search for among the processes. If the system's sleep
 * is only one name of a program with many names, returns a script instead.
 */
function sleepProgram(): Buffer {
  const sleep = realpathSync("/bin/sleep");
  return basename(sleep) === "sleep" ? readFileSync(sleep) : Buffer.from('#!/bin/sh\nexec sleep "$@"\n');
}

/** Python modules that programs of sites import. */
const PYTHON = [
  ["etc/python", ""],
  ["src/hooks/python/pbs", "pbs"],
] as const;

function copyPython(library: string, to: string): void {
  for (const [folder, below] of PYTHON)
    for (const name of namesIn(join(library, folder))) replaceFile(join(to, below, name), readFileSync(join(library, folder, name)), 0o644);
}

function copyManual(from: string, to: string): void {
  for (const section of MANUAL)
    for (const name of namesIn(join(from, section))) replaceFile(join(to, section, name), readFileSync(join(from, section, name)), 0o644);
}

/** Reads a template and replaces @EXEC@ and @CONF@ in it. */
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

/** Returns the path of a launcher. A checkout has all launchers in bin; an installation has them in several directories. */
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

/** Gives a file to root: everybody may read it, and nobody else may write. A file that is executable stays executable. */
function own(path: string): void {
  const { mode } = lstatSync(path);
  lchownSync(path, 0, 0);
  const isDirectory = (mode & constants.S_IFMT) === constants.S_IFDIR;
  chmodSync(path, isDirectory || (mode & 0o100) !== 0 ? 0o755 : 0o644);
  if (isDirectory) for (const name of readdirSync(path)) own(join(path, name));
}

/** Makes a hard link to an installed file, or a copy if the file system has no hard links. */
function linkFile(from: string, to: string): void {
  const half = `${to}.new-${process.pid}`;
  rmSync(half, { force: true });
  try {
    linkSync(from, half);
  } catch {
    return replaceFile(to, readFileSync(from), 0o755);
  }
  renameSync(half, to);
  // If both names are links to the same file already, rename has done nothing, and the temporary name remains.
  rmSync(half, { force: true });
}

/** Replaces a file by a rename, so that a shell that runs the old script can still read it to its end. */
export function replaceFile(path: string, content: Buffer, mode: number): void {
  const half = `${path}.new-${process.pid}`;
  writeFileSync(half, content, { mode });
  chmodSync(half, mode);
  renameSync(half, path);
}
