// The words before a program that make it run as a job's owner: a program of the system takes on the identity and executes the given one.
//
// W1. No name service is asked, because the numbers are known. setpriv first treats a number as a name, which costs a
//     lookup in passwd and group (or a directory server) for each job, and means another user if a user is called `1001`.
//     GNU's chroot accepts `+1001` as a number and, with / as the new root, changes nothing else; it is used where a test
//     has shown this.

import { spawnSync } from "node:child_process";
import { nth } from "#support/assert.ts";
import type { FileIdentity } from "../job/process.ts";
import { toolPath } from "./tool-path.ts";

export type IdentityTool = "chroot" | "setpriv";

/** find: returns the place of a program. tool: default the best that works here. */
export function identityWords(
  { uid, gid, groups }: FileIdentity,
  find: (name: string) => string = toolPath,
  tool: IdentityTool = identityTool(),
): string[] {
  if (tool === "chroot")
    return [find("chroot"), `--userspec=+${uid}:+${gid}`, `--groups=${groups.map((group) => `+${group}`).join(",")}`, "--skip-chdir", "/"];
  return [find("setpriv"), `--reuid=${uid}`, `--regid=${gid}`, groups.length > 0 ? `--groups=${groups.join(",")}` : "--clear-groups", "--"];
}

let known: IdentityTool | null = null;

/** The program that takes on identities here. Found once, by a test. */
export function identityTool(): IdentityTool {
  known ??= chrootWorks() ? "chroot" : "setpriv";
  return known;
}

const SOMEBODY: FileIdentity = { uid: 65_534, gid: 65_533, groups: [65_531, 65_532] };
const TRY_MS_MAX = 10_000;

/**
 * Whether the program takes on all parts of an identity and changes nothing else: all four numbers of user and group,
 * the groups, no capability, the same directory.
 */
function chrootWorks(): boolean {
  if (process.geteuid?.() !== 0) return false;
  let words: string[];
  try {
    words = [...identityWords(SOMEBODY, toolPath, "chroot"), toolPath("cat"), "self/status"];
  } catch {
    return false;
  }
  const { status, stdout } = spawnSync(nth(words, 0), words.slice(1), {
    cwd: "/proc",
    env: {},
    stdio: ["ignore", "pipe", "ignore"],
    encoding: "utf8",
    timeout: TRY_MS_MAX,
  });
  const line = (name: string): string => new RegExp(`^${name}:\\s*(.*?)\\s*$`, "m").exec(stdout)?.[1]?.replaceAll("\t", " ") ?? "";
  const same = (id: number): string => [id, id, id, id].join(" ");
  return (
    status === 0 &&
    line("Uid") === same(SOMEBODY.uid) &&
    line("Gid") === same(SOMEBODY.gid) &&
    line("Groups") === SOMEBODY.groups.join(" ") &&
    [line("CapPrm"), line("CapEff")].every((mask) => /^0+$/.test(mask))
  );
}
