// A program that stands for a runner in tests of adapters.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A runner that writes its user, token and environment into a file of the directory, and then waits for the file `go`. */
export function writer(dir: string): readonly string[] {
  const script =
    'd=$1; f="$d/$PARTITA_RUNNER_TAG.$PARTITA_RUNNER_INDEX"; { id -un; cat "$PARTITA_RUNNER_TOKEN_FILE"; echo; env; } > "$f.tmp"; mv "$f.tmp" "$f"; ' +
    'while [ ! -e "$d/go" ]; do sleep 0.2; done';
  return ["/bin/sh", "-c", script, "runner", dir];
}

/** What a runner of writer() wrote; undefined: nothing yet. */
export function written(dir: string, tag: string, index: number): string | undefined {
  const path = join(dir, `${tag}.${index}`);
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
