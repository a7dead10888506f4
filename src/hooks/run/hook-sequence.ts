// Runs the hooks of one event on an execution host, one after the other. The first hook that rejects or fails ends the
// sequence. (The server does not use this file. Its core starts one hook at a time and keeps the request waiting
// until that hook has answered: src/server/hooks/chain.ts.)

import type { HookChanges, HookInput, HookOutcome, HookRequests, HookRun } from "./hook-input.ts";
import { NO_REQUESTS } from "./hook-input.ts";
import { withChanges } from "./merge.ts";

export type SequenceLog = { readonly hook: string; readonly level: number; readonly job: string | null; readonly text: string };

/**
 * The result of a sequence. hook: the hook that rejected or failed, or else the last one that changed something. failed: the hook raised an exception or gave
 * no answer. alarm: the time limit of the hook was over.
 */
export type SequenceEnd = {
  readonly kind: "accept" | "reject" | "failed" | "alarm";
  readonly hook: string;
  readonly message: string | null;
  readonly changes: HookChanges;
  readonly requests: HookRequests;
  /** fail_action of the hook that failed */
  readonly fail_action: readonly string[];
  /** names of hooks that accepted */
  readonly accepted: readonly string[];
  readonly logs: readonly SequenceLog[];
};

type Hook = Omit<HookRun, "input" | "resources">;
const ERROR = 0x0001;
const DEBUG3 = 0x0400;

/** Runs the hooks in order. run: runs one hook and returns its outcome. */
export async function runSequence(
  hooks: readonly Hook[],
  input: HookInput,
  resources: HookRun["resources"],
  run: (hook: HookRun) => Promise<HookOutcome>,
): Promise<SequenceEnd> {
  let present = input;
  let changes: HookChanges = {};
  let requests: HookRequests = NO_REQUESTS;
  let by = "";
  const accepted: string[] = [];
  const logs: SequenceLog[] = [];
  const end = (kind: SequenceEnd["kind"], hook: string, message: string | null, fail_action: readonly string[] = []): SequenceEnd => ({
    kind,
    hook,
    message,
    changes,
    requests,
    fail_action,
    accepted,
    logs,
  });
  for (const hook of hooks) {
    logs.push({ hook: hook.name, level: DEBUG3, job: null, text: "started" });
    const outcome = await run({ ...hook, input: present, resources });
    logs.push(...outcome.logs.map((entry) => ({ hook: hook.name, ...entry })), {
      hook: hook.name,
      level: DEBUG3,
      job: null,
      text: "finished",
    });
    if (outcome.kind === "alarm") return end("alarm", hook.name, null, hook.fail_action);
    if (outcome.kind === "error") {
      for (const text of outcome.text.split("\n").filter((line) => line.trim() !== ""))
        logs.push({ hook: hook.name, level: ERROR, job: null, text });
      return end("failed", hook.name, null, hook.fail_action);
    }
    requests = together(requests, outcome.requests);
    if (outcome.kind === "reject") return end("reject", hook.name, outcome.message);
    if (Object.keys(outcome.changes).length > 0) {
      ({ input: present, changes } = withChanges(present, changes, outcome.changes));
      by = hook.name;
    }
    accepted.push(hook.name);
  }
  return end("accept", by, null);
}

const together = (a: HookRequests, b: HookRequests): HookRequests => ({
  jobs: { ...a.jobs, ...b.jobs },
  restart_cycle: a.restart_cycle || b.restart_cycle,
  reboot: b.reboot ?? a.reboot,
});
