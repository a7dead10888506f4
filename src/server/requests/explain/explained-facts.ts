// Facts that the server adds to a scheduler's explanation. First: the usual duration of the jobs that the explanation
// names. A scheduler computes with walltimes, because its promises must hold, but most jobs end earlier. Second: the
// reasons why a job is not offered to its scheduler, such as holds, a start time or other jobs.

import { countLeft, isAfter, jobOfEntry } from "#model/depend.ts";
import { arrayIdOf } from "#model/job-id.ts";
import type { Explanation, Kept, Obstacle } from "#protocol/explanation.ts";
import { dependenciesOf } from "../../jobs/dependencies.ts";
import { learnedTime } from "../../jobs/pressure.ts";
import type { Job, ServerState } from "../../state/state.ts";

/** Whether the answer would be the same after the next cycle. */
export const isTerminal = (verdict: Explanation["verdict"]): boolean => verdict === "runs" || verdict === "held";

/** An answer with the server's additions. An answer that is no explanation is passed on unchanged. */
export function withServerFacts(state: ServerState, answer: unknown, now_s: number): unknown {
  if (!isExplanation(answer)) return answer;
  /** a waiting subjob is in the state of its array */
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
  // A user who may see this job sees which jobs it waits for, but not the states of another user's jobs.
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

/** The answer of a scheduler of another release may have another form. */
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
