// The process of pbs_runners, the controller of the backends: started as a child that outlives the server. It takes a lock, so that only one runs; one that an earlier server
// has started connects by itself.

import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ANOTHER_RUNS, RUNNERS_LOCK } from "#protocol/runner-link.ts";
import { messageOf } from "#support/caught.ts";
import { isLocked, readPid } from "#support/libc/lock-file.ts";
import type { RunnersPort } from "../driver/ports.ts";

export function runnersProcess(home: string, complain: (text: string) => void): RunnersPort {
  return {
    start(exited) {
      try {
        const directory = join(home, "runner_priv");
        mkdirSync(directory, { recursive: true, mode: 0o711 });
        const out = openSync(join(directory, "runners_out"), "a", 0o600);
        const child = spawn(process.execPath, [runnersProgram()], {
          argv0: "pbs_runners",
          detached: true,
          cwd: "/",
          stdio: ["ignore", out, out],
        });
        closeSync(out);
        child.once("error", (error) => exited(error.message));
        child.once("exit", (code, signal) =>
          exited(code === 0 || code === ANOTHER_RUNS ? null : signal === null ? `exit status ${code}` : `signal ${signal}`),
        );
        child.unref();
      } catch (error) {
        complain(`pbs_runners cannot be started: ${messageOf(error)}`);
        exited(messageOf(error));
      }
    },
    kill(pid) {
      // The pid may be that of another process by now.
      const lock = join(home, "runner_priv", RUNNERS_LOCK);
      if (readPid(lock) !== pid || !isLocked(lock)) return;
      try {
        process.kill(pid, "SIGKILL");
      } catch (error) {
        complain(`pbs_runners, process ${pid}, cannot be killed: ${messageOf(error)}`);
      }
    },
  };
}

/** The path of the program, which is beside this program: the bundle in dist/, or the source file if the server runs from source. */
function runnersProgram(): string {
  const self = fileURLToPath(import.meta.url);
  return basename(dirname(self)) === "shell" ? join(dirname(self), "../../runner/main.ts") : join(dirname(self), "pbs_runners.mjs");
}
