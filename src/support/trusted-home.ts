// The files that a daemon of root trusts at its start in system mode: pbs.conf, PBS_HOME and pbs_environment. Each of them,
// and every directory above it, must belong to root and must not be writable by others. Otherwise another user could
// determine what root's daemons start and write.

import { codeOf, messageOf } from "./caught.ts";
import type { Conf } from "./conf.ts";
import { trustedDirectory, trustedFile } from "./trusted-file.ts";

/**
 * Returns the fault as text for the user who starts the daemon, or null if there is none or the complex is in user mode. home: the directory to check in place
 * of PBS_HOME (option -d).
 */
export function homeFault(conf: Conf, home = conf.home): string | null {
  if (conf.mode !== "system" || process.geteuid?.() !== 0) return null;
  return (
    fault(() => trustedFile(conf.file, [0]), "pbs.conf") ??
    fault(() => trustedDirectory(home, [0]), "PBS_HOME") ??
    fault(() => trustedFile(conf.environment_file, [0]), "PBS_ENVIRONMENT")
  );
}

/** Returns the text of the fault, or null. A missing file is no fault, because it cannot be misused. */
function fault(check: () => void, what: string): string | null {
  try {
    check();
    return null;
  } catch (error) {
    return codeOf(error) === "ENOENT" ? null : `${what} is not safe: ${messageOf(error)}`;
  }
}
