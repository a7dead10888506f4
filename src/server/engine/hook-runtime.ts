// What the server knows about hooks beside its stored state: which hooks run, and which vnode states they have seen. It is
// lost when the server ends.

import type { HookChanges, HookInput } from "#hooks/run/hook-input.ts";
import type { Hook, HookEvent } from "#model/tables/hook.ts";
import type { HookVerdict } from "./transaction.ts";

/** Hooks of an event that run one after another (hooks/chain.ts). */
export type Chain = {
  readonly event: HookEvent;
  readonly hooks: readonly Hook[];
  at: number;
  input: HookInput;
  changes: HookChanges;
  by: string;
  readonly then: (verdict: HookVerdict) => void;
};

export type HookRuntime = {
  /** hooks that run, by number */
  readonly runs: Map<number, Chain>;
  next_run: number;
  /** jobs whose postqueuejob hooks run: the number of chains, and the work that waits for their end */
  readonly posting: Map<string, { chains: number; readonly waiting: (() => void)[] }>;
  /** states of vnodes that modifyvnode hooks have seen; empty while there are no such hooks */
  readonly vnode_states: Map<string, { readonly state: string; readonly since: string }>;
};

export const noHooks = (): HookRuntime => ({ runs: new Map(), next_run: 1, posting: new Map(), vnode_states: new Map() });
