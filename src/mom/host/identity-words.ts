// The words in front of a command line that make its program run as a job's owner: they call a program of the system, which takes on the identity and then
// executes the given program.

import { spawnSync } from "node:child_process";
import { nth } from "#support/assert.ts";
import type { FileIdentity } from "../job/process.ts";
import { toolPath } from "./tool-path.ts";

export type IdentityTool = "chroot" | "setpriv";

/**
 * Returns the words that make a program run under the identity. find: returns the path of a system program. tool: the
 * program that takes on the identity; default: the better of the programs that work on this host.
 */
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

/** Returns the program that takes on identities on this host. The first call tests whether chroot is usable. */
export function identityTool(): IdentityTool {
  known ??= chrootWorks() ? "chroot" : "setpriv";
  return known;
}

const SOMEBODY: FileIdentity = { uid: 65_534, gid: 65_533, groups: [65_531, 65_532] };
const TRY_MS_MAX = 10_000;

/**
 * Whether chroot gives a process the whole identity and changes nothing else. It checks all four numbers of user and group, the groups, the directory, and that no
 * capability is left.
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
