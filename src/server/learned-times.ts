// What is known of how long jobs take, beside what they asked for, in an explanation that passes through: a scheduler reckons with walltimes, since what it
// promises must hold, but jobs mostly end earlier, and who waits likes to know.

import { arrayIdOf } from "#model/job-id.ts";
import type { Explanation, Obstacle } from "#protocol/explanation.ts";
import { learnedTime } from "./pressure.ts";
import type { ServerState } from "./state.ts";

/** An answer with what jobs like those that it names took. One that is no explanation is passed on as it is. */
export function withLearnedTimes(state: ServerState, answer: unknown): unknown {
  if (!isExplanation(answer)) return answer;
  const timesOf = (id: string | null): { readonly learned_s?: number } => {
    const job = id === null ? undefined : (state.jobs.get(id) ?? state.jobs.get(arrayIdOf(id) ?? ""));
    const learned_s = job === undefined ? undefined : learnedTime(state, job);
    return learned_s === undefined ? {} : { learned_s };
  };
  const withTimes = (obstacles: readonly Obstacle[]): Obstacle[] =>
    obstacles.map((obstacle) => (obstacle.kind === "reservation" ? obstacle : { ...obstacle, ...timesOf(obstacle.id) }));
  const { earliest } = answer;
  return {
    ...answer,
    ...timesOf(answer.job),
    obstacles: withTimes(answer.obstacles),
    earliest: earliest === null ? null : { ...earliest, after: withTimes(earliest.after) },
  } satisfies Explanation;
}

/** What a scheduler of another release says may look otherwise. */
function isExplanation(answer: unknown): answer is Explanation {
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
