// Whether the backends of this complex can be used. Backends and a standby server do not go together yet: after a take-over, runners on the host of the former server could
// not connect to the new one, and their jobs could run twice (docs/runners.md). Pure.

import type { ServerConfig } from "../engine/transaction.ts";
import type { Backend } from "../state/state.ts";

/** Returns why no backend of this complex can be used; null: they can be used. */
export const whyUnusable = ({ pair }: ServerConfig): string | null =>
  pair === undefined
    ? null
    : "runners cannot be used in a complex with two servers yet: take PBS_PRIMARY and PBS_SECONDARY out of pbs.conf first, or use no backends";

/** Whether runners may be started by a backend. */
export const startsRunners = (config: ServerConfig, backend: Backend | undefined): boolean =>
  backend?.attrs["enabled"] === true && whyUnusable(config) === null;
