// Puts the commands of PBS into the PATH of a job's login shell. Login files (/etc/profile of Debian) set PATH anew, so the PATH of pbs_environment is lost. An
// installation for the whole machine has a file in /etc/profile.d; without it, the shell gets the directory of the commands after its login files. Pure.

import type { Attrs } from "./attrs.ts";
import { isInteractive } from "./attrs.ts";

const SH_FAMILY: ReadonlySet<string> = new Set(["sh", "bash", "dash", "ash", "busybox", "zsh", "ksh", "ksh93", "mksh"]);
const CSH_FAMILY: ReadonlySet<string> = new Set(["csh", "tcsh"]);

const nameOf = (shell: string): string => shell.slice(shell.lastIndexOf("/") + 1);

/** Quotes a path so that every shell reads it back unchanged. Returns null if that is not possible. */
const quoted = (path: string): string | null => (/['!\n\\]/.test(path) ? null : `'${path}'`);

/**
 * Returns a line for the shell's stdin that puts a directory first in PATH unless PATH already contains it. Returns "" if the shell is unknown or the path
 * cannot be quoted.
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

/**
 * Returns an environment entry whose command bash runs on a terminal before its first prompt. Other shells have no such
 * entry that survives their login files.
 */
export function promptEntry(attrs: Attrs, shell: string, directory: string): readonly string[] {
  if (!isInteractive(attrs) || nameOf(shell) !== "bash") return [];
  const line = pathLine(shell, directory).trimEnd();
  return line === "" ? [] : [`PROMPT_COMMAND=${line}; unset PROMPT_COMMAND`];
}
