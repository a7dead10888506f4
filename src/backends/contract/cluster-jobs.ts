// Functions for jobs of campaigns that the adapters of all clusters need. Pure.

import type { Owner } from "./backend.ts";
import type { ClusterSettings, JobBatch, JobRef, JobSighting } from "./cluster.ts";
import { BackendError } from "./fault.ts";

const TIMEOUT_S = { assumed: 30, max: 600 } as const;

/** Returns the options of a cluster by their names, and its time limit for programs. Throws if the cluster has an option that its type does not know. */
export function chosenOptions<Name extends string>(
  { type, options }: ClusterSettings,
  known: readonly Name[],
): { readonly [N in Name]?: string | undefined } & { readonly timeout_ms: number } {
  const names: ReadonlySet<string> = new Set([...known, "timeout"]);
  for (const name of Object.keys(options))
    if (!names.has(name))
      throw new BackendError({
        kind: "configuration",
        text: `a cluster of type ${type} has no option ${name}; it has ${[...names].join(", ")}`,
      });
  const timeout_s = Number(options["timeout"] ?? TIMEOUT_S.assumed);
  if (!(timeout_s >= 1 && timeout_s <= TIMEOUT_S.max))
    throw new BackendError({ kind: "configuration", text: `option timeout: seconds from 1 to ${TIMEOUT_S.max}` });
  const chosen: { [N in Name]?: string } = {};
  for (const name of known) if (options[name] !== undefined) chosen[name] = options[name];
  return { ...chosen, timeout_ms: timeout_s * 1000 };
}

/** Returns the jobs of a batch that was just submitted. user: the user of the grid (user mode); null: system mode. */
export function submittedJobs(batch: JobBatch, user: string | null, idOf: (index: number) => string): readonly JobSighting[] {
  return batch.jobs.map((_, index) => ({
    tag: batch.tag,
    index,
    id: idOf(index),
    user: batch.owner?.name ?? user,
    state: "queued",
    reason: "submitted",
    host: null,
    exit_code: null,
    ending: null,
    run_s: null,
    mem_kb: null,
    fault: null,
  }));
}

/**
 * Divides the jobs with the tag of a batch by submission. The first submission is kept. If the cluster accepted a submission so late that the grid had sent it again,
 * there is a second one, which was never released. A job of another user does not belong to the batch, even if its name is the tag.
 */
export function secondSubmissions(
  { tag, owner }: JobBatch,
  all: readonly JobSighting[],
): { readonly kept: readonly JobSighting[]; readonly surplus: readonly JobSighting[] } {
  const own = all.filter((each) => each.tag === tag && (owner === null || each.user === owner.name));
  const numberOf = ({ id }: JobSighting): number => Number.parseInt(id, 10);
  const first = Math.min(...own.map(numberOf));
  return {
    kept: own.filter((each) => numberOf(each) === first),
    surplus: own.filter((each) => numberOf(each) !== first && each.state !== "ended"),
  };
}

/** Returns the identity under which programs act on the jobs of a user; null: the identity of this process (user mode). Throws if this machine does not know the user. */
export function actingFor(user: string | null, grid_user: string | null, ownerOf: (name: string) => Owner | null): Owner | null {
  if (grid_user !== null) return null;
  const owner = user === null ? null : ownerOf(user);
  if (owner === null) throw new BackendError({ kind: "configuration", text: `this machine has no user ${user ?? ""}` });
  return owner;
}

/** Returns the sighting of a job that the cluster does not know any more. */
export const lostJob = (ref: JobRef): JobSighting => ({
  ...ref,
  state: "ended",
  reason: "the cluster does not know the job any more",
  host: null,
  exit_code: null,
  ending: "lost",
  run_s: null,
  mem_kb: null,
  fault: null,
});
