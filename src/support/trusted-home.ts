// The files that a daemon of root trusts at its start in system mode: pbs.conf, PBS_HOME and pbs_environment. Each of them, and
// every directory above it, must belong to root and must not be writable by others. Otherwise another user could control what
// root's daemons start and write.

import { codeOf, messageOf } from "./caught.ts";
import type { Conf } from "./conf.ts";
import { trustedDirectory, trustedFile } from "./trusted-file.ts";

/**
 * The fault as a text for the user who starts the daemon. Returns null if there is none, or if the complex is in user mode.
 * home: used instead of that of conf (option -d).
 */
export function homeFault(conf: Conf, home = conf.home): string | null {
  if (conf.mode !== "system" || process.geteuid?.() !== 0) return null;
  return (
    fault(() => trustedFile(conf.file, [0]), "pbs.conf") ??
    fault(() => trustedDirectory(home, [0]), "PBS_HOME") ??
    fault(() => trustedFile(conf.environment_file, [0]), "PBS_ENVIRONMENT")
  );
}

/** A missing file cannot be misused. */
function fault(check: () => void, what: string): string | null {
  try {
    check();
    return null;
  } catch (error) {
    return codeOf(error) === "ENOENT" ? null : `${what} is not safe: ${messageOf(error)}`;
  }
}
