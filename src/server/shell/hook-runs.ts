// Hooks that the core asks for: run by the hosts of src/hooks, answered to the core that asked.

import type { HookRun } from "#hooks/hook-input.ts";
import { type HookRunner, hookRunner } from "#hooks/hook-runner.ts";
import type { Conf } from "#support/conf.ts";
import type { UserDatabase } from "#support/passwd.ts";
import type { Core } from "../core/core.ts";
import { nobody } from "./unprivileged.ts";

export type HookRunsOptions = {
  readonly conf: Conf;
  readonly system: boolean;
  readonly users: UserDatabase;
  /** the present core: it is replaced when state is loaded again, and then hears nothing of what the old one asked */
  core(): Core;
  /** runs something of the core */
  guarded(work: () => void): void;
  complain(text: string): void;
};

export type HookRuns = {
  run(number: number, hook: HookRun): void;
  close(): void;
};

export function hookRuns({ conf, system, users, core, guarded, complain }: HookRunsOptions): HookRuns {
  let runner: HookRunner | null = null;
  const start = (): HookRunner => {
    return hookRunner({
      directory: `${conf.home}/server_priv/hooks`,
      conf: conf.values,
      nobody: system ? nobody(users) : null,
      answer: (query) => core().hookQuery(query),
      complain,
    });
  };
  return {
    run(number, hook) {
      runner ??= start();
      const asked = core();
      void runner.run(hook, null).then((outcome) =>
        guarded(() => {
          if (core() === asked) asked.hookEnded(number, outcome, Date.now());
        }),
      );
    },
    close: () => runner?.close(),
  };
}
