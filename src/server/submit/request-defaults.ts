// Where the defaults of a job's request come from: its queue, the server, and at last the backends of the queue's partition. Runners live for a limited time in most backends, so a
// backend may say how long jobs without a walltime may run (default_walltime, docs/runners.md).

import type { RequestDefaults } from "#model/request/job-request.ts";
import { backendsFor, partitionOf } from "../state/partitions.ts";
import type { Queue, ServerState } from "../state/state.ts";

/** The defaults for jobs of a queue; undefined: a queue that does not exist any more. */
export function requestDefaults(state: ServerState, queue: Queue | undefined): RequestDefaults {
  const defaults = { queue: queue?.attrs ?? {}, server: state.server };
  if (queue === undefined || state.backends.size === 0) return defaults;
  for (const { attrs } of backendsFor(state, partitionOf(queue))) {
    const walltime = attrs["default_walltime"];
    if (typeof walltime === "number") return { ...defaults, backend: { resources_default: { walltime } } };
  }
  return defaults;
}
