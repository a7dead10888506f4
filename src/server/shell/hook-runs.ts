// Hooks that the core requests; the hosts of src/hooks run them.

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
  /** objects that a running hook asks for, of the present core */
  readonly answer: Core["hookQuery"];
  complain(text: string): void;
};

/** The first hook starts the runner. */
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
