// The directory of control groups that belongs to this mom. The path of the directory proves nothing: moms in containers, each with its own mounts, may have
// equal paths and share the kernel's groups. So the name of the directory is random and kept in mom_priv. It is used again only if there is a proof that this
// mom made the directory.
//
// N1. The proof consists of the boot, the mom_priv (device and inode, because a copy belongs to another mom) and the inode of each directory, which the kernel
//     does not reuse while it runs. Without the proof the mom takes a new name and leaves the old directories alone.

import { randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { writeWholeFile } from "#support/whole-file.ts";

/** The name of the directory, with the proof (N1). made: inode of each directory, by its path. */
export type GroupIdentity = {
  readonly name: string;
  readonly boot: string;
  readonly mom_priv: string;
  readonly made: { readonly [directory: string]: string };
};

const FILE = "cgroups";
const NAME = /^partita\.[0-9a-f]{12}$/;

/**
 * Returns the identity kept in mom_priv if its proof holds, otherwise a new one. boot: id of the present boot. named: returns the paths that a directory with
 * this name has in the hierarchies.
 */
export function groupIdentity(mom_priv: string, boot: string, named: (name: string) => readonly string[]): GroupIdentity {
  const own = { boot, mom_priv: placeOf(mom_priv) };
  const saved = readIdentity(join(mom_priv, FILE));
  if (saved !== null && saved.boot === own.boot && saved.mom_priv === own.mom_priv && isOurs(saved, named(saved.name))) return saved;
  return { ...own, name: `partita.${randomBytes(6).toString("hex")}`, made: {} };
}

/** Keeps the identity in mom_priv. Must be called after the directories have been made. Throws the file system's error. */
export function saveIdentity(mom_priv: string, identity: GroupIdentity, directories: readonly string[]): void {
  const made = Object.fromEntries(directories.map((directory) => [directory, inodeOf(directory) ?? ""]));
  writeWholeFile(join(mom_priv, FILE), `${JSON.stringify({ ...identity, made })}\n`, 0o600);
}

/** Whether each of the directories either does not exist or was made by us. */
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

/** Returns the inode of a directory, or null if the directory does not exist. */
const inodeOf = (path: string): string | null => statSync(path, { bigint: true, throwIfNoEntry: false })?.ino.toString() ?? null;

function placeOf(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? "" : `${stat.dev}:${stat.ino}`;
}
