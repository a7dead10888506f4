// Simulated hooks: gives random answers to an event, without running a hook. Every answer that a real hook can give occurs,
// also requests for changes that are not possible.

import type { HookChanges, HookOutcome, HookRun } from "#hooks/run/hook-input.ts";
import { NO_REQUESTS } from "#hooks/run/hook-input.ts";
import { PELOG, PELOG_TEXTS, type ScriptEnd } from "#mom/job/pelog.ts";
import type { Prng } from "#support/prng.ts";

export function playHook(random: Prng, hook: HookRun): { readonly outcome: HookOutcome; readonly delay_ms: number } {
  const delay_ms = random.chance(0.05) ? random.int(0, hook.alarm * 1000) : random.int(0, 20);
  const logs = random.chance(0.2) ? [{ level: 4, job: null, text: "a hook speaks" }] : [];
  const requests = { ...NO_REQUESTS, restart_cycle: random.chance(0.1), jobs: jobsOf(random, hook) };
  if (random.chance(0.05)) return { outcome: { kind: "alarm", logs }, delay_ms: hook.alarm * 1000 };
  if (random.chance(0.1)) return { outcome: { kind: "error", text: "NameError", logs }, delay_ms };
  const changes = random.chance(0.4) ? changesTo(random, hook) : {};
  if (random.chance(0.2))
    return { outcome: { kind: "reject", message: random.chance(0.5) ? "no" : null, changes, requests, logs }, delay_ms };
  return { outcome: { kind: "accept", changes, requests, logs }, delay_ms };
}

/** Returns the actions on jobs that a hook on an execution host requests. */
function jobsOf(random: Prng, { input }: HookRun): HookOutcomeJobs {
  const job = input.job?.id ?? random.pick([...(input.job_list ?? []), { id: null }]).id;
  return job === null || !input.event.startsWith("exec") || !random.chance(0.1) ? {} : { [job]: random.pick(["rerun", "delete"] as const) };
}
type HookOutcomeJobs = (typeof NO_REQUESTS)["jobs"];

/** Returns how a prologue or epilogue ends. Usually there is none. */
export function playScript(random: Prng, alarm_s: number): { readonly end: ScriptEnd; readonly delay_ms: number } {
  if (random.chance(0.8)) return { end: { kind: "none" }, delay_ms: 0 };
  if (random.chance(0.05)) return { end: { kind: "ended", code: PELOG.WAIT_FAILED, text: PELOG_TEXTS.wait }, delay_ms: alarm_s * 1000 };
  const code = random.chance(0.8) ? 0 : random.int(1, 3);
  return { end: { kind: "ended", code, text: code === 0 ? "" : PELOG_TEXTS.nonzero }, delay_ms: random.int(0, 500) };
}

/** Returns how a script of `$action` on a simulated host ends. Most scripts succeed. */
export function playAction(random: Prng, alarm_s: number): { readonly end: ScriptEnd; readonly delay_ms: number } {
  const end = (code: number, text: string): ScriptEnd => ({ kind: "ended", code, text });
  if (random.chance(0.05)) return { end: end(PELOG.WAIT_FAILED, PELOG_TEXTS.wait), delay_ms: alarm_s * 1000 };
  return { end: random.chance(0.8) ? end(0, "") : end(1, PELOG_TEXTS.nonzero), delay_ms: random.int(0, 5000) };
}

function changesTo(random: Prng, { input }: HookRun): HookChanges {
  const job = random.pick([
    { Priority: String(random.int(-2000, 2000)) },
    { Resource_List: { walltime: "00:01:00" } },
    { Resource_List: { ncpus: random.pick(["2", "many", null]) } },
    { Hold_Types: random.pick(["u", "s", "n", "x"]) },
    { Account_Name: "hook", Job_Name: null },
    { queue: random.pick(["workq", "nowhere"]) },
    { Execution_Time: "0" },
    { nonsense: "1" },
  ] as const);
  const [vnode] = input.vnode_list ?? [];
  return {
    ...(input.job === undefined ? {} : { job }),
    ...(vnode?.id === undefined || vnode.id === null
      ? {}
      : {
          vnode_list: { [vnode.id]: random.pick([{ state: "offline" }, { state: "free" }, { comment: "by hook" }, { state: "job-busy" }]) },
        }),
  };
}
