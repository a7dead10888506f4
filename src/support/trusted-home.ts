// What a daemon of root believes at its start in system mode: pbs.conf, PBS_HOME and pbs_environment. Each must be root's, with every directory above it, and
// closed to the writing of others; else another user could tell root's daemons what to start and what to write.

import { codeOf, messageOf } from "./caught.ts";
import type { Conf } from "./conf.ts";
import { trustedDirectory, trustedFile } from "./trusted-file.ts";

/** What is wrong, as a text for whoever starts the daemon; null: nothing, or the complex is in user mode. home: another than that of conf (option -d). */
export function homeFault(conf: Conf, home = conf.home): string | null {
  if (conf.mode !== "system" || process.geteuid?.() !== 0) return null;
  return (
    fault(() => trustedFile(conf.file, [0]), "pbs.conf") ??
    fault(() => trustedDirectory(home, [0]), "PBS_HOME") ??
    fault(() => trustedFile(conf.environment_file, [0]), "PBS_ENVIRONMENT")
  );
}

/** A file that is not there tells nobody anything. */
function fault(check: () => void, what: string): string | null {
  try {
    check();
    return null;
  } catch (error) {
    return codeOf(error) === "ENOENT" ? null : `${what} is not safe: ${messageOf(error)}`;
  }
}
