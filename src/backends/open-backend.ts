// Opens the backend of a backend object. The controller (src/runner) calls it once for each object and again when attributes have changed.

import { join } from "node:path";
import type { Backend, BackendType } from "./contract/backend.ts";
import { type BackendSettings, textSetting } from "./contract/settings.ts";
import { openGridEngine } from "./gridengine/backend.ts";
import { openLocal } from "./local/backend.ts";
import { openLsf } from "./lsf/backend.ts";
import { openOpenStack } from "./openstack/backend.ts";
import { openPbs } from "./pbs/backend.ts";
import { type TokenFiles, tokenFiles } from "./shell/token-files.ts";
import { openSlurm } from "./slurm/backend.ts";

const OPEN: Readonly<Record<BackendType, (settings: BackendSettings, tokens: TokenFiles) => Backend>> = {
  local: openLocal,
  gridengine: openGridEngine,
  lsf: openLsf,
  openstack: openOpenStack,
  pbs: openPbs,
  slurm: openSlurm,
};

/** Throws a BackendError of the kind `configuration` if the attributes cannot be right. Does not ask the backend itself: probe() tells whether it answers. */
export function openBackend(settings: BackendSettings): Backend {
  const tokens = tokenFiles(textSetting(settings.attributes, "token_dir") ?? join(settings.state_dir, "tokens"));
  return OPEN[settings.type](settings, tokens);
}
