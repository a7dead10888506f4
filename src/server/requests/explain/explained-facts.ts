// Facts that the server adds to a scheduler's explanation. First: the usual duration of the jobs that the explanation names.
// A scheduler computes with walltimes, because it must keep its promises, but most jobs end earlier. Second: the reasons why
// a job is not offered to its scheduler, such as holds, a start time or other jobs.

import { countLeft, isAfter, jobOfEntry } from "#model/depend.ts";
import { arrayIdOf } from "#model/job-id.ts";
import type { Explanation, Kept, Obstacle } from "#protocol/explanation.ts";
import { dependenciesOf } from "../../jobs/dependencies.ts";
import { learnedTime } from "../../jobs/learning.ts";
import type { Job, ServerState } from "../../state/state.ts";

/** Whether the explanation stays the same without a further cycle, because the job runs or is held. */
export const isTerminal = (verdict: Explanation["verdict"]): boolean => verdict === "runs" || verdict === "held";

/** Adds the server's facts to a scheduler's answer. An answer that is no explanation is returned unchanged. */
export function withServerFacts(state: ServerState, answer: unknown, now_s: number): unknown {
  if (!isExplanation(answer)) return answer;
  /** the job with that id; for a waiting subjob its array, which has the same state */
  const jobOf = (id: string): Job | undefined => state.jobs.get(id) ?? state.jobs.get(arrayIdOf(id) ?? "");
  const timesOf = (id: string | null): { readonly learned_s?: number } => {
    const job = id === null ? undefined : jobOf(id);
    const learned_s = job === undefined ? undefined : learnedTime(state, job);
    return learned_s === undefined ? {} : { learned_s };
  };
  const withTimes = (obstacles: readonly Obstacle[]): Obstacle[] =>
    obstacles.map((obstacle) => (obstacle.kind === "reservation" ? obstacle : { ...obstacle, ...timesOf(obstacle.id) }));
  const { earliest } = answer;
  return {
    ...answer,
    ...timesOf(answer.job),
    ...(answer.verdict === "held" ? keptFacts(state, jobOf(answer.job), now_s) : {}),
    obstacles: withTimes(answer.obstacles),
    earliest: earliest === null ? null : { ...earliest, after: withTimes(earliest.after) },
  } satisfies Explanation;
}

function keptFacts(state: ServerState, job: Job | undefined, now_s: number): { readonly kept?: Kept } {
  if (job === undefined) return {};
  const { Hold_Types, Execution_Time, euser } = job.attrs;
  const dependencies = dependenciesOf(state, job.attrs);
  // Whoever may see this job is told which jobs it waits for, but not the states of those jobs, which may belong to other users.
  const after = dependencies.flatMap((item) =>
    item.type === "on" || !isAfter(item.type) ? [] : item.ids.map((entry) => ({ type: item.type, id: jobOfEntry(entry) })),
  );
  const stateOf = (id: string): { readonly state?: string } => {
    const other = state.jobs.get(id);
    return other?.attrs.euser === euser && other !== undefined ? { state: other.attrs.job_state } : {};
  };
  return {
    kept: {
      holds: Hold_Types.replaceAll("n", ""),
      until_s: Execution_Time !== undefined && Execution_Time > now_s ? Execution_Time : null,
      after: after.map(({ type, id }) => ({ type, id, ...stateOf(id) })),
      on: countLeft(dependencies),
    },
  };
}

/** Whether an answer has the form of an explanation. A scheduler of another release may answer in another form. */
export function isExplanation(answer: unknown): answer is Explanation {
  if (typeof answer !== "object" || answer === null) return false;
  const { job, obstacles, earliest } = answer as Partial<Record<keyof Explanation, unknown>>;
  return (
    typeof job === "string" &&
    areObstacles(obstacles) &&
    (earliest === null || areObstacles((earliest as { after?: unknown } | undefined)?.after))
  );
}

function areObstacles(list: unknown): list is readonly Obstacle[] {
  return (
    Array.isArray(list) &&
    list.every((one: Partial<Obstacle> | null) => typeof one?.kind === "string" && (one.id === null || typeof one.id === "string"))
  );
}
