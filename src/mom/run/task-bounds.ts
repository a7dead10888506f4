// Bounds on the text (arguments and environment) of tasks that were requested and have not been reported as started. Until then the mom holds the text, for its
// starter or for the mom of another host. Without bounds, the owner of a job could make a mom that runs as root hold any amount of memory while a starter or
// another mom is slow. Pure.
//
// B1. Each task, each job and each user has a bound. $task_text_max sets the bound of a task, and the other two follow from it.

import type { TaskWanted } from "./task-question.ts";

/** The bounds of a job and of a user, as multiples of the bound of a task. */
const JOB_TASKS = 16;
const USER_TASKS = 32;

/** Length of the arguments and the environment of a task; each ends with one more character, as in the kernel. */
export const taskChars = ({ argv, env }: TaskWanted & { readonly kind: "spawn" }): number =>
  [...argv, ...env].reduce((sum, text) => sum + text.length + 1, 0);

/** Text that waits, without the text of the task in question. */
export type Waiting = { readonly job_chars: number; readonly user_chars: number };

/** Returns why a task may not be requested now; null: it may be. most: $task_text_max. */
export function textFault(job: string, chars: number, { job_chars, user_chars }: Waiting, most: number): string | null {
  if (chars > most) return `arguments and environment of a task of job ${job} are longer than ${most} characters ($task_text_max)`;
  const [whose, bound] =
    job_chars + chars > JOB_TASKS * most
      ? [`job ${job}`, JOB_TASKS * most]
      : user_chars + chars > USER_TASKS * most
        ? [`the owner of job ${job}`, USER_TASKS * most]
        : ["", 0];
  return bound === 0 ? null : `tasks of ${whose} that are not started yet have ${bound} characters of arguments and environment already`;
}
