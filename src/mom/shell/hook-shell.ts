// The processes that run the mom's hooks, and the copy of the hooks on the disk, which a mom uses until its server has sent them.

import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { type HookRunner, hookRunner } from "#hooks/hook-runner.ts";
import type { HookOutcome, HookRun } from "#hooks/run/hook-input.ts";
import { runSequence } from "#hooks/run/hook-sequence.ts";
import type { MomHooks } from "#protocol/mom-link.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import type { Conf } from "#support/conf.ts";
import { systemUsers } from "#support/passwd.ts";
import type { HooksPort } from "../driver/ports.ts";

const NOBODY = { uid: 65534, gid: 65534 };

/** Makes the port for hooks. directory: mom_priv/hooks. */
export function momHookShell(directory: string, conf: Conf, complain: (text: string) => void): HooksPort {
  const system = conf.mode === "system";
  const file = `${directory}/hooks.json`;
  let runner: HookRunner | null = null;

  const start = (): HookRunner => {
    const nobody = systemUsers().userByName("nobody") ?? NOBODY;
    return hookRunner({
      directory,
      conf: conf.values,
      nobody: system ? { uid: nobody.uid, gid: nobody.gid } : null,
      answer: ({ what, name }) => ({ error: `${what} ${name} cannot be asked for on an execution host` }),
      complain,
    });
  };

  return {
    kept() {
      try {
        return JSON.parse(readFileSync(file, "utf8")) as MomHooks;
      } catch (error) {
        if (codeOf(error) !== "ENOENT") complain(`${file}: ${messageOf(error)}`);
        return null;
      }
    },
    keep(hooks) {
      try {
        if (hooks.hooks.length === 0) rmSync(file, { force: true });
        else {
          mkdirSync(directory, { recursive: true, mode: 0o750 });
          writeFileSync(`${file}.new`, JSON.stringify(hooks), { mode: 0o600 });
          renameSync(`${file}.new`, file);
        }
      } catch (error) {
        complain(`${file}: ${messageOf(error)}`);
      }
    },
    run({ hooks, input, resources, owner }, done) {
      runner ??= start();
      const present = runner;
      const users = new Set(hooks.filter(({ user }) => user === "pbsuser").map(({ name }) => name));
      const runOne = (hook: HookRun): Promise<HookOutcome> => present.run(hook, system && users.has(hook.name) ? owner : null);
      void runSequence(hooks, input, resources, runOne).then(done);
    },
    reboot(hook, command) {
      if (!system) return complain(`hook ${hook} wants a reboot: not ours to do`);
      complain(`hook ${hook} reboots this host`);
      const [program, ...args] = command === "" ? ["/sbin/shutdown", "-r", "now"] : ["/bin/sh", "-c", command];
      spawn(program as string, args, { detached: true, stdio: "ignore", cwd: "/" })
        .on("error", (error) => complain(`reboot: ${error.message}`))
        .unref();
    },
    close: () => runner?.close(),
  };
}
