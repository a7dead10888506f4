// Everything that can happen to the server's state. apply.ts carries events out, keeps the derived values right and notes which rows are dirty and which
// schedulers must hear of it. What an event means for PBS (holds, obits, reruns, their log and accounting records) is decided by the functions that emit it.

import type { HookAttrs, HookConfig, HookScript } from "#model/hook.ts";
import type { ResourceDef } from "#model/resource-table.ts";
import type { Clock } from "./clocks.ts";
import type { Attrs, JobAttrs } from "./state.ts";

export type NamedObject = "queue" | "node" | "sched" | "resv";

export type Event =
  | { readonly kind: "server-changed"; readonly set: Attrs; readonly unset: readonly string[] }
  /** set_by_admin: of a vnode an administrator made, see vnode-admin-set */
  | {
      readonly kind: "created";
      readonly object: NamedObject;
      readonly name: string;
      readonly attrs: Attrs;
      readonly set_by_admin?: readonly string[];
    }
  | {
      readonly kind: "changed";
      readonly object: NamedObject;
      readonly name: string;
      readonly set: Attrs;
      readonly unset: readonly string[];
    }
  | { readonly kind: "deleted"; readonly object: NamedObject; readonly name: string }
  /** what an administrator set (or took back) on a vnode, so that reported values do not overwrite it: `comment`, `resources_available.mem` */
  | { readonly kind: "vnode-admin-set"; readonly name: string; readonly add: readonly string[]; readonly remove: readonly string[] }
  /** of eligible time: a clock begins, stops or goes on; nobody needs it any more */
  | { readonly kind: "clock-put"; readonly clock: Clock }
  | { readonly kind: "clock-deleted"; readonly id: string }
  /** values that are not stored because a restart finds them out anew: state of a scheduler, server_state */
  | { readonly kind: "runtime"; readonly object: "server" | "sched"; readonly name: string; readonly set: Attrs }
  | { readonly kind: "resource-put"; readonly resource: ResourceDef }
  | { readonly kind: "resource-deleted"; readonly name: string }
  /** made, or changed to this */
  | {
      readonly kind: "hook-put";
      readonly name: string;
      readonly attrs: HookAttrs;
      readonly script: HookScript | null;
      readonly config: HookConfig | null;
    }
  | { readonly kind: "hook-deleted"; readonly name: string }
  /** a new job, or a subjob that starts (array_id names its array) */
  | { readonly kind: "job-created"; readonly id: string; readonly seq: number; readonly attrs: JobAttrs; readonly script: string | null }
  /** subjobs of an array that wait and never will run: deleted */
  | { readonly kind: "subjobs-deleted"; readonly id: string; readonly indices: readonly number[] }
  /** indexes, counts and assigned resources follow from the attributes before and after */
  | { readonly kind: "job-changed"; readonly id: string; readonly set: Attrs; readonly unset: readonly string[] }
  /** out of the live jobs into the history (job_history_enable) or away for good */
  | { readonly kind: "job-ended"; readonly id: string; readonly history: boolean }
  /** what jobs of that user, project and name take (jobs/pressure.ts) */
  | { readonly kind: "run-time-learned"; readonly key: string; readonly seconds: number }
  /** arrays: numbers of arrays whose subjobs' records go */
  | { readonly kind: "history-purged"; readonly ids: readonly string[]; readonly arrays?: readonly number[] };
