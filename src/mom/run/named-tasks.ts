// Tasks that moms of other hosts have requested. A request has a name, so that a mom that lost its connection can repeat it: it gets the answers about the same
// task, and no second task is started (task-link.ts K4). Pure.
//
// N1. A name belongs to the host that asked: no host can get the answers to requests of another host.
// N2. Names are not kept over a restart of the mom, and only the last ones are kept. Once a name of a run may have been
//     forgotten, a repeated request with an unknown name is refused, because its task may exist. Until then, a request with
//     an unknown name has not arrived before, so its task is started.

import type { NamedTask, Run, Task } from "./state.ts";
import type { TaskAnswer, TaskAsker } from "./task-question.ts";

/** Returns the key of a request with that name; null: the caller is no mom, or has given no name. */
export function nameFor(by: TaskAsker, name: string | undefined): string | null {
  if (name === undefined || !(by.daemon || by.host !== undefined)) return null;
  return `${by.host?.role ?? ""} ${by.host?.host ?? ""} ${name}`;
}

export const namedBefore = (run: Run, key: string | null): NamedTask | null => (key === null ? null : (run.named_tasks.get(key) ?? null));

/** Notes the task of a request. most: number of ended tasks whose end is remembered. */
export function nameTask(run: Run, key: string, task: number, most: number): void {
  const { named_tasks } = run;
  named_tasks.set(key, { task, end: null });
  if (named_tasks.size <= 2 * most) return;
  for (const [old, { end }] of named_tasks) {
    if (named_tasks.size <= most) return;
    if (end === null) continue;
    named_tasks.delete(old);
    run.names_lost = true;
  }
}

/** Notes how a task ended, if it was requested with a name. */
export function endNamed({ named_tasks }: Run, { name }: Task, end: TaskAnswer): void {
  const named = name === undefined ? undefined : named_tasks.get(name);
  if (named !== undefined) named.end = end;
}
