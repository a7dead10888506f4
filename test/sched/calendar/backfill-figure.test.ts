// The backfilling example of Maui's documents (seeds/003, systems.md 7) and its variants, as a table: four nodes of four slots,
// three running jobs, three queued in the order of priority. Times are seconds; intervals are half-open.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SchedJob, Snapshot } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import { book, snapshotOf } from "../world.ts";
import { VARIANTS, type Variant } from "./backfill-variants.ts";

const NODES = "n0 ncpus=4; n1 ncpus=4; n2 ncpus=4; n3 ncpus=4";
const MANY = 100;

function worldOf({ depth = MANY, j2 = 22, q1 = 8, q2 = 5, jobs, published = {} }: Variant): Snapshot {
  const running =
    jobs ??
    `j0 R (n0:ncpus=4) walltime=18; j1 R (n3:ncpus=1) walltime=7; j2 R (n2:ncpus=4)+(n3:ncpus=2) walltime=${j2}; q2 ncpus=4 walltime=${q2}`;
  const queued = `q0 2:ncpus=4 scatter walltime=6 rank=1; q1 2:ncpus=2 scatter walltime=${q1} rank=2`;
  const snapshot = snapshotOf({
    nodes: NODES,
    jobs: `${running}; ${queued}`,
    server: { backfill_depth: depth },
    sched: { opt_backfill_fuzzy: "off" },
  });
  const withPublished = (job: SchedJob): SchedJob => ({
    ...job,
    stime_s: 0,
    ...(published[job.id] === undefined ? {} : { estimated: published[job.id] as object, topjob: true }),
  });
  return { ...snapshot, jobs: snapshot.jobs.map(withPublished) };
}

/** The queue after the cycle: `q0 [18,24) n0*4 n1*4; q2 now n1*4`. A published start that still holds is not decided again. */
function planned(variant: Variant): string {
  const policies = book({ strict_ordering: true, max_job_check: variant.looked_at ?? null });
  const snapshot = worldOf(variant);
  const universe = createUniverse(snapshot, mirrorOptions(policies));
  const { decisions } = cycle(universe, policies, { now_s: variant.now ?? 0, command: SCHED_COMMAND.TIME });
  const where = (exec_vnode: string): string => exec_vnode.replaceAll(/[()]/g, "").replaceAll(":ncpus=", "*").replaceAll("+", " ");
  const lines = snapshot.jobs.flatMap((job): string[] => {
    if (job.state !== "Q") return [];
    const own = decisions.filter((decision) => "job" in decision && decision.job === job.id && decision.kind !== "comment");
    assert.ok(own.length <= 1, `${own.length} decisions about ${job.id}`);
    const [decision] = own;
    if (decision?.kind === "run") return [`${job.id} now ${where(decision.exec_vnode)}`];
    const estimate =
      decision?.kind === "estimate" ? { start_time: decision.start_s, exec_vnode: decision.exec_vnode } : (job.estimated ?? null);
    if (estimate === null || typeof estimate.start_time !== "number") return [];
    return [
      `${job.id} [${estimate.start_time},${estimate.start_time + Number(job.resources["walltime"])}) ${where(estimate.exec_vnode ?? "")}`,
    ];
  });
  return lines.sort().join("; ");
}

for (const variant of VARIANTS) test(`the backfill figure: ${variant.name}`, () => assert.equal(planned(variant), variant.expected));
