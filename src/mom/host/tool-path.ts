// Where the system's own programs are that put on a job what it runs with.

import { existsSync } from "node:fs";

const TOOL_DIRECTORIES = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
const tools = new Map<string, string>();

/** Where setpriv, prlimit and the like are, whatever PATH says. Throws when the system lacks one. */
export function toolPath(name: string): string {
  let path = tools.get(name);
  if (path === undefined) {
    path = TOOL_DIRECTORIES.map((directory) => `${directory}/${name}`).find((candidate) => existsSync(candidate));
    if (path === undefined) throw new Error(`${name} is not installed`);
    tools.set(name, path);
  }
  return path;
}
