// The built-in modules, and the chain that `modules:` of sched_config makes of them. A new module needs a row in BUILT_IN and a name in MODULES_DEFAULT.

import type { MirrorOptions } from "../mirror/mirror.ts";
import type { PolicyModule } from "../shapes/module.ts";
import type { Policy } from "../shapes/policy.ts";
import type { PolicyBook } from "../shapes/policy-book.ts";
import { backfill } from "./backfill.ts";
import { fairshare } from "./fairshare.ts";
import { limits } from "./limits.ts";
import { preemption } from "./preemption.ts";
import { prioritizer } from "./prioritizer.ts";
import { reservations } from "./reservations.ts";
import { resources } from "./resources.ts";
import { time } from "./time.ts";

/** Names of the service modules. They are in ../shell/services, because they use files, clocks and the network. */
export const SERVICES: readonly string[] = ["logger", "job_checker", "profiler"];

/** The chain if sched_config has no `modules:` line. */
// biome-ignore format: one module a line
export const MODULES_DEFAULT: readonly string[] = [
  "prioritizer",
  "fairshare",
  "reservations",
  "limits",
  "time",
  "resources",
  "preemption",
  "backfill",
  ...SERVICES,
];

// biome-ignore format: one module a line
const BUILT_IN: ReadonlyMap<string, PolicyModule> = new Map([
  prioritizer,
  fairshare,
  reservations,
  limits,
  time,
  resources,
  preemption,
  backfill,
].map((module) => [module.name, module]));

/** Names of modules that do not exist yet. If sched_config names one, that module is left out, with a message. */
export const MODULES_LATER: readonly string[] = [];

export function moduleNamed(name: string): PolicyModule | undefined {
  return BUILT_IN.get(name);
}

/** Returns the policy modules of a chain, in its order. A site's module replaces a built-in one of the same name. Names of service modules are skipped. */
export function chainOf({ modules, site_modules }: Pick<PolicyBook, "modules" | "site_modules">): PolicyModule[] {
  return modules.flatMap((name) => site_modules?.get(name) ?? BUILT_IN.get(name) ?? []);
}

/**
 * For each book the modules with a classKey. The array is stored, because the universe indexes its jobs again whenever it
 * gets another array object. A book never changes.
 */
const DISTINGUISHING = new WeakMap<PolicyBook, readonly PolicyModule[]>();
const NONE: readonly PolicyModule[] = [];

/** Returns how the universe must be indexed under a policy of this book. */
export function mirrorOptions(book: PolicyBook, policy: Policy = book.prime): MirrorOptions {
  let distinguishing = DISTINGUISHING.get(book);
  if (distinguishing === undefined) {
    const found = chainOf(book).filter(({ classKey }) => classKey !== undefined);
    DISTINGUISHING.set(book, (distinguishing = found.length === 0 ? NONE : found));
  }
  return {
    policy,
    times_matter: book.dedicated.length > 0 || policy.backfill_prime || (policy.strict_ordering && policy.backfill),
    distinguishing,
    modules: book.modules,
    shares: book.fairshare,
  };
}
