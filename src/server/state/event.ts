// All events that can change the server's state. apply.ts applies them to the state. What a change means for PBS (holds,
// obits, reruns, log lines, accounting records) is decided by the functions that emit the events.

import type { ResourceDef } from "#model/resource-table.ts";
import type { HookAttrs, HookConfig, HookScript } from "#model/tables/hook.ts";
import type { Clock } from "./entity-sums.ts";
import type { JobOwn, OwnChange } from "./job-own.ts";
import type { Attrs, JobAttrs, RunTime } from "./state.ts";

/** The fields of an event that change attributes. */
export type AttrChange = { readonly set: Attrs; readonly unset: readonly string[] };

/** Whether a change sets or unsets one of these attributes. */
export const changes = ({ set, unset }: AttrChange, ...names: readonly string[]): boolean =>
  names.some((name) => set[name] !== undefined || unset.includes(name));

export type NamedObject = "queue" | "node" | "sched" | "resv" | "backend" | "runner";

export type Event =
  | { readonly kind: "server-changed"; readonly set: Attrs; readonly unset: readonly string[] }
  /** set_by_admin: for a new vnode, the names that an administrator has set (see vnode-admin-set) */
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
  /** names that an administrator has set or unset on a vnode, for example `resources_available.mem`. Reports of the mom do not overwrite them */
  | { readonly kind: "vnode-admin-set"; readonly name: string; readonly add: readonly string[]; readonly remove: readonly string[] }
  /** a clock of eligible time is created, stops, or goes on (clock-put), or is no longer needed (clock-deleted) */
  | { readonly kind: "clock-put"; readonly clock: Clock }
  | { readonly kind: "clock-deleted"; readonly id: string }
  /** changes values that are not stored because the server finds them out again after a restart: state of a scheduler, server_state */
  | { readonly kind: "runtime"; readonly object: "server" | "sched"; readonly name: string; readonly set: Attrs }
  /** a server that has taken over runs a scheduler of another host on its own host (scheds/remote.ts R3); not stored */
  | { readonly kind: "sched-here"; readonly name: string }
  | { readonly kind: "resource-put"; readonly resource: ResourceDef }
  | { readonly kind: "resource-deleted"; readonly name: string }
  /** a hook was created, or changed to these values */
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
  /** changes attributes of a job. Indexes, counts and assigned resources follow from the attributes before and after */
  | { readonly kind: "job-changed"; readonly id: string; readonly set: Attrs; readonly unset: readonly string[]; readonly own?: OwnChange }
  /** moves a live job into the history (job_history_enable) or removes it */
  | { readonly kind: "job-ended"; readonly id: string; readonly history: boolean }
  /** stores what was learned of jobs with a key (jobs/learning.ts). moved: the amounts that such jobs should ask for have changed */
  | { readonly kind: "run-time-learned"; readonly key: string; readonly value: RunTime; readonly moved?: true }
  /** removes records from the history. arrays: the numbers of arrays for whose subjobs all records are removed */
  | { readonly kind: "history-purged"; readonly ids: readonly string[]; readonly arrays?: readonly number[] };
