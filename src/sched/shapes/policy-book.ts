// Everything that a cycle needs besides the universe: the policies of prime and non-prime time, with holidays, shares and the chain of
// modules. Made by policy/settings-text.ts; frozen.

import type { FairshareTree } from "#model/resource-group.ts";
import type { DedicatedTime } from "./dedicated-time.ts";
import type { DynProgram } from "./dyn-res.ts";
import type { Holidays } from "./holidays.ts";
import type { LocalTime } from "./local-time.ts";
import type { ModuleOptions, PolicyModule } from "./module.ts";
import type { Policy } from "./policy.ts";

/** Everything that a cycle needs besides the universe. */
export type PolicyBook = {
  readonly prime: Policy;
  readonly non_prime: Policy;
  readonly holidays: Holidays;
  readonly dedicated: readonly DedicatedTime[];
  readonly fairshare: FairshareTree;
  /** programs that report the server's amounts of resources; absent: none */
  readonly dyn_res?: readonly DynProgram[];
  /** names of the modules in the chain, in order */
  readonly modules: readonly string[];
  /** the site's own policy modules, by their names in the chain */
  readonly site_modules?: ReadonlyMap<string, PolicyModule>;
  readonly module_options?: ModuleOptions;
  readonly local: LocalTime;
};
