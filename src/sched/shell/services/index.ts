// Creates the built-in service modules by name (SERVICES of ../../modules/index.ts).

import { assert } from "#support/assert.ts";
import type { ModuleWorld, ServiceModule } from "../../shapes/module.ts";
import { jobChecker } from "./job-checker.ts";
import { logger } from "./logger.ts";
import { profiler } from "./profiler.ts";

const MAKERS: { readonly [name: string]: (world: ModuleWorld) => ServiceModule } = { logger, job_checker: jobChecker, profiler };

/** Creates the built-in service module with the name in `world`. */
export function builtInService(world: ModuleWorld): ServiceModule {
  const make = Object.hasOwn(MAKERS, world.name) ? MAKERS[world.name] : undefined;
  assert(make !== undefined, `no service module ${world.name}`);
  return make(world);
}
