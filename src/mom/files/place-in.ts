// A place for a file is the path of a directory or of the file itself: finds the path of the file.

import { statSync } from "node:fs";

/** Returns the path of a file `name` in the directory `path`. If `path` is not a directory and does not end in /, it is itself the file's path. */
export function placeIn(path: string, name: string): string {
  if (path.endsWith("/")) return path + name;
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? `${path}/${name}` : path;
}
