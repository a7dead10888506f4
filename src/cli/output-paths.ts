// Completes the paths of -o and -e, for the files of a job's output, to host:/absolute/path (docs/reference/files.md 5).

import { statSync } from "node:fs";
import type { CommandIo } from "./command.ts";
import type { Complex } from "./complex.ts";

/**
 * Returns the working directory as the user knows it: PWD if it names the working directory, because PWD keeps the symbolic links in the path; otherwise the
 * real path.
 */
export function workingDirectory(io: Pick<CommandIo, "cwd" | "env">): string {
  const known = io.env["PWD"];
  if (known === undefined || known === io.cwd || !known.startsWith("/")) return io.cwd;
  try {
    const [a, b] = [statSync(known), statSync(io.cwd)];
    return a.ino === b.ino && a.dev === b.dev ? known : io.cwd;
  } catch {
    return io.cwd;
  }
}

export type PathWorld = {
  /** the host to put before the colon if the user gives no host; null: no host is put there, and the server adds the submit host */
  readonly output_host: string | null;
  readonly directory: string;
  readonly isDirectory: (path: string) => boolean;
};

/**
 * Completes `[host:]path`: a relative path begins in the working directory, and an existing directory gets a slash at its end. Returns null if the text is not
 * a path.
 */
export function outputPath(text: string, world: PathWorld): string | null {
  const match = /^(?:([^/:]+):)?(.+)$/s.exec(text);
  if (match === null) return null;
  const [, host, given = ""] = match;
  const path = given.startsWith("/") ? given : `${world.directory === "/" ? "" : world.directory}/${given.replace(/^(?:\.\/+)+/, "")}`;
  const slash = host === undefined && !path.endsWith("/") && world.isDirectory(path) ? "/" : "";
  const named = host ?? world.output_host;
  return `${named === null ? "" : `${named}:`}${path}${slash}`;
}

/** Returns a function that completes a path as outputPath does, with the working directory and the configuration of this command. */
export function outputPathOf(io: Pick<CommandIo, "cwd" | "env">, complex: Complex): (text: string) => string | null {
  const directory = workingDirectory(io);
  return (text) => outputPath(text, { output_host: complex.conf().values["PBS_OUTPUT_HOST_NAME"] ?? null, directory, isDirectory });
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
