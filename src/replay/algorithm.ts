// The names of the algorithms that a replay can use: fcfs, easy, sjbf, depthN, depthinf, cons (docs/sim.md explains them).

export type Algorithm =
  | { readonly kind: "fcfs" }
  /** up to `depth` blocked jobs get a plan. shortest: after the first blocked job, the other jobs are tried in the order of their estimates */
  | { readonly kind: "depth"; readonly depth: number; readonly shortest: boolean }
  | { readonly kind: "cons" };

/** Returns the algorithm of that name, or null for an unknown name. easy is depth1. */
export function algorithmNamed(name: string): Algorithm | null {
  if (name === "fcfs" || name === "cons") return { kind: name };
  if (name === "easy" || name === "sjbf") return { kind: "depth", depth: 1, shortest: name === "sjbf" };
  const depth = /^depth([1-9][0-9]{0,8}|inf)$/.exec(name)?.[1];
  return depth === undefined ? null : { kind: "depth", depth: depth === "inf" ? Number.POSITIVE_INFINITY : Number(depth), shortest: false };
}
