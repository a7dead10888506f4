// The directory of control groups that belongs to this mom. Two moms may have equal paths (in containers, each with its own mounts) and share the kernel's
// groups, so a path proves nothing. The name is random, kept in mom_priv, and accepted only with a proof that this mom made the directory.
//
// N1. The proof: the boot, the mom_priv (device and inode, because a copy belongs to another mom) and the inode of each directory, which the kernel does not reuse
//     while it runs. Without the proof the mom takes a new name and leaves the old directories alone.

import { randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { writeWholeFile } from "#support/whole-file.ts";

/** made: inode of each directory under its path. */
export type GroupIdentity = {
  readonly name: string;
  readonly boot: string;
  readonly mom_priv: string;
  readonly made: { readonly [directory: string]: string };
};

const FILE = "cgroups";
const NAME = /^partita\.[0-9a-f]{12}$/;

/** mom_priv: the directory. boot: id of the present boot. named: the directories that a mom of a name has here. */
export function groupIdentity(mom_priv: string, boot: string, named: (name: string) => readonly string[]): GroupIdentity {
  const own = { boot, mom_priv: placeOf(mom_priv) };
  const saved = readIdentity(join(mom_priv, FILE));
  if (saved !== null && saved.boot === own.boot && saved.mom_priv === own.mom_priv && isOurs(saved, named(saved.name))) return saved;
  return { ...own, name: `partita.${randomBytes(6).toString("hex")}`, made: {} };
}

/** Must be called after the directories have been made. Throws the file system's error. */
export function saveIdentity(mom_priv: string, identity: GroupIdentity, directories: readonly string[]): void {
  const made = Object.fromEntries(directories.map((directory) => [directory, inodeOf(directory) ?? ""]));
  writeWholeFile(join(mom_priv, FILE), `${JSON.stringify({ ...identity, made })}\n`, 0o600);
}

/** Whether every existing directory is one that we made. */
const isOurs = ({ made }: GroupIdentity, directories: readonly string[]): boolean =>
  directories.every((directory) => {
    const inode = inodeOf(directory);
    return inode === null || inode === made[directory];
  });

function readIdentity(path: string): GroupIdentity | null {
  try {
    const { name, boot, mom_priv, made } = JSON.parse(readFileSync(path, "utf8")) as Partial<GroupIdentity>;
    if (typeof name !== "string" || !NAME.test(name) || typeof boot !== "string" || typeof mom_priv !== "string") return null;
    return { name, boot, mom_priv, made: typeof made === "object" && made !== null ? made : {} };
  } catch {
    return null;
  }
}

/** The inode of a directory. Returns null if the directory does not exist. */
const inodeOf = (path: string): string | null => statSync(path, { bigint: true, throwIfNoEntry: false })?.ino.toString() ?? null;

function placeOf(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? "" : `${stat.dev}:${stat.ino}`;
}
