// Commands of PBS in the PATH of a job's login shell. Login files (/etc/profile of Debian) set PATH anew, so the PATH of pbs_environment is lost, and only
// an installation for the whole machine has a file in /etc/profile.d. Otherwise the shell gets the directory after its login files. Pure.

import type { Attrs } from "./attrs.ts";
import { isInteractive } from "./attrs.ts";

const SH_FAMILY: ReadonlySet<string> = new Set(["sh", "bash", "dash", "ash", "busybox", "zsh", "ksh", "ksh93", "mksh"]);
const CSH_FAMILY: ReadonlySet<string> = new Set(["csh", "tcsh"]);

const nameOf = (shell: string): string => shell.slice(shell.lastIndexOf("/") + 1);

/** A word in a form that every shell reads back; Returns null if there is no such form. */
const quoted = (path: string): string | null => (/['!\n\\]/.test(path) ? null : `'${path}'`);

/**
 * A line for the shell's stdin that puts a directory first in its PATH unless PATH already contains it. Empty: the
 * shell is unknown, or the path cannot be quoted.
 */
export function pathLine(shell: string, directory: string): string {
  const word = quoted(directory);
  if (word === null || directory.includes(":")) return "";
  const name = nameOf(shell);
  if (SH_FAMILY.has(name)) return `case ":$PATH:" in *:${word}:*) ;; *) PATH=${word}:$PATH; export PATH ;; esac\n`;
  if (CSH_FAMILY.has(name)) return `if (":\${PATH}:" !~ *:${word}:*) setenv PATH ${word}":\${PATH}"\n`;
  if (name === "fish") return `contains -- ${word} $PATH; or set -gx PATH ${word} $PATH\n`;
  return "";
}

/** A command that bash runs on a terminal before its first prompt, as an environment entry. Other shells have nothing similar that login files leave alone. */
export function promptEntry(attrs: Attrs, shell: string, directory: string): readonly string[] {
  if (!isInteractive(attrs) || nameOf(shell) !== "bash") return [];
  const line = pathLine(shell, directory).trimEnd();
  return line === "" ? [] : [`PROMPT_COMMAND=${line}; unset PROMPT_COMMAND`];
}
