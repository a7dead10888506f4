// Every event that can change the server's state. apply.ts carries events out, keeps the derived values right and notes the rows to write and the news for
// schedulers. The functions that emit an event decide its meaning for PBS (holds, obits, reruns, their log and accounting records).

import type { ResourceDef } from "#model/resource-table.ts";
import type { HookAttrs, HookConfig, HookScript } from "#model/tables/hook.ts";
import type { Clock } from "./entity-sums.ts";
import type { JobOwn, OwnChange } from "./job-own.ts";
import type { Attrs, JobAttrs } from "./state.ts";

/** The part of an event that changes attributes. */
export type AttrChange = { readonly set: Attrs; readonly unset: readonly string[] };

/** Whether a change sets or unsets one of these attributes. */
export const changes = ({ set, unset }: AttrChange, ...names: readonly string[]): boolean =>
  names.some((name) => set[name] !== undefined || unset.includes(name));

export type NamedObject = "queue" | "node" | "sched" | "resv";

export type Event =
  | { readonly kind: "server-changed"; readonly set: Attrs; readonly unset: readonly string[] }
  /** set_by_admin: true for a vnode that an administrator made, see vnode-admin-set */
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
  /** the names that an administrator has set (or unset) on a vnode, so that reported values do not overwrite them: `comment`, `resources_available.mem` */
  | { readonly kind: "vnode-admin-set"; readonly name: string; readonly add: readonly string[]; readonly remove: readonly string[] }
  /** a clock of eligible time starts, stops, goes on, or is no longer needed */
  | { readonly kind: "clock-put"; readonly clock: Clock }
  | { readonly kind: "clock-deleted"; readonly id: string }
  /** values that are not stored because a restart finds them out again: state of a scheduler, server_state */
  | { readonly kind: "runtime"; readonly object: "server" | "sched"; readonly name: string; readonly set: Attrs }
  | { readonly kind: "resource-put"; readonly resource: ResourceDef }
  | { readonly kind: "resource-deleted"; readonly name: string }
  /** the object was created, or changed to this */
  | {
      readonly kind: "hook-put";
      readonly name: string;
      readonly attrs: HookAttrs;
      readonly script: HookScript | null;
      readonly config: HookConfig | null;
    }
  | { readonly kind: "hook-deleted"; readonly name: string }
  /** a new job, or a subjob that starts (array_id names its array) */
  | {
      readonly kind: "job-created";
      readonly id: string;
      readonly seq: number;
      readonly attrs: JobAttrs;
      readonly own: JobOwn;
      readonly script: string | null;
    }
  /** waiting subjobs of an array that were deleted and will never run */
  | { readonly kind: "subjobs-deleted"; readonly id: string; readonly indices: readonly number[] }
  /** indexes, counts and assigned resources are computed from the attributes before and after */
  | { readonly kind: "job-changed"; readonly id: string; readonly set: Attrs; readonly unset: readonly string[]; readonly own?: OwnChange }
  /** moves a live job into the history (job_history_enable) or removes it */
  | { readonly kind: "job-ended"; readonly id: string; readonly history: boolean }
  /** learned run time of jobs of that user, project and name (jobs/pressure.ts) */
  | { readonly kind: "run-time-learned"; readonly key: string; readonly seconds: number }
  /** arrays: numbers of arrays whose subjobs' records are removed */
  | { readonly kind: "history-purged"; readonly ids: readonly string[]; readonly arrays?: readonly number[] };
