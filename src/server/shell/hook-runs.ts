// Runs the hooks that the core wants to run. The hook hosts of src/hooks execute them.

import { type HookRunner, hookRunner } from "#hooks/hook-runner.ts";
import type { Conf } from "#support/conf.ts";
import type { UserDatabase } from "#support/passwd.ts";
import type { Core } from "../core/core.ts";
import type { HooksPort } from "../driver/ports.ts";
import { nobody } from "./unprivileged.ts";

export type HookRunsOptions = {
  readonly conf: Conf;
  readonly system: boolean;
  readonly users: UserDatabase;
  /** answers a running hook that asks for objects of the server */
  readonly answer: Core["hookQuery"];
  complain(text: string): void;
};

/** The port for hooks. The runner is started when the first hook is run. */
export function hookRuns({ conf, system, users, answer, complain }: HookRunsOptions): HooksPort {
  let runner: HookRunner | null = null;
  const start = (): HookRunner => {
    return hookRunner({
      directory: `${conf.home}/server_priv/hooks`,
      conf: conf.values,
      nobody: system ? nobody(users) : null,
      answer,
      complain,
    });
  };
  return {
    run(hook, done) {
      runner ??= start();
      void runner.run(hook, null).then(done);
    },
    close: () => runner?.close(),
  };
}
