// Requests about the tasks of a job, who makes them, and the answers (tasks.ts).

import type { HostIdentity } from "#identity/peer.ts";
import type { MomToTask, TaskRun } from "#protocol/task-link.ts";

/**
 * Who makes a request. daemon: it is root, or the user that runs the daemons of the complex. host: set if it is the mom of
 * another host; uid and daemon then have no meaning.
 */
export type TaskAsker = { readonly uid: number; readonly daemon: boolean; readonly host?: HostIdentity };

export type TaskWanted = TaskRun &
  (
    | { readonly kind: "nodes" }
    | {
        readonly kind: "spawn";
        readonly host: string;
        readonly argv: readonly string[];
        readonly env: readonly string[];
        /** argv is a single text that the owner's shell interprets */
        readonly shell: boolean;
        /** the name of the request (task-link.ts K4) */
        readonly name?: string;
        readonly again?: true;
      }
    /** owner_uid: the owner of the process; null: the process does not exist */
    | { readonly kind: "attach"; readonly pid: number; readonly owner_uid: number | null }
    | {
        readonly kind: "output";
        readonly letter: "o" | "e";
        readonly from: string;
        readonly offset: number;
        readonly content: string;
      }
  );

export type TaskAnswer =
  | ({ readonly type: "task-hosts" } & MomToTask["task-hosts"])
  | { readonly type: "task-started"; readonly task: number }
  | { readonly type: "task-exited"; readonly status: number }
  | { readonly type: "task-done" }
  | { readonly type: "task-refused"; readonly text: string };
