// Finds the system's programs that give a job its identity and limits.

import { existsSync } from "node:fs";

const TOOL_DIRECTORIES = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
const tools = new Map<string, string>();

/** Returns the path of setpriv, prlimit or the like. PATH is not used. Throws if the system does not have the program. */
export function toolPath(name: string): string {
  let path = tools.get(name);
  if (path === undefined) {
    path = TOOL_DIRECTORIES.map((directory) => `${directory}/${name}`).find((candidate) => existsSync(candidate));
    if (path === undefined) throw new Error(`${name} is not installed`);
    tools.set(name, path);
  }
  return path;
}
