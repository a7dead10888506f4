// Module `resources`: checks total amounts of vnodes, and the resources of queue and server (docs/reference/scheduler.md 5). A resource that is unset at queue
// or server is not limited. A job that asks for more than there is in total can never run.

import type { Why } from "#protocol/sched-link.ts";
import { checkTotals } from "../place/set-totals.ts";
import type { Candidate, Cycle, PolicyModule } from "../shapes/module.ts";
import type { Resource } from "../shapes/resource-space.ts";
import { amountOf, amountText, matchedOf, matchedText } from "../shapes/resource-space.ts";

export const resources: PolicyModule = {
  name: "resources",
  checks: [
    { stage: "totals", check: ({ universe }, { entry, set }) => checkTotals(universe.checks, set, entry.request) },
    { stage: "queue-resources", check: checkQueue },
    { stage: "server-resources", check: checkServer },
  ],
};

function checkQueue(cycle: Cycle, candidate: Candidate): Why | null {
  const { queue } = candidate;
  if (queue === undefined || queue.available.size === 0) return null;
  const { universe } = cycle;
  const amounts = universe.usage.get(queue.name)?.get("o:")?.amounts;
  const taken = (resource: string): number => amounts?.[universe.profile.resources.indexOf(resource)] ?? 0;
  const code = "INSUFFICIENT_QUEUE_RESOURCE";
  return checkScope(cycle, candidate, { counts: () => false, code, available: queue.available, taken, where: queue.name });
}

function checkServer(cycle: Cycle, candidate: Candidate): Why | null {
  const { universe, server_taken } = cycle;
  if (universe.server_available.size === 0) return null;
  const taken = (resource: string): number => (universe.server.assigned[resource] ?? 0) + (server_taken.get(resource) ?? 0);
  return checkScope(cycle, candidate, {
    counts: (resource) => universe.dynamic.has(resource),
    code: "INSUFFICIENT_SERVER_RESOURCE",
    available: universe.server_available,
    taken,
    where: universe.server.name,
  });
}

type Scope = {
  /** returns whether amounts in use count although the resource has no flag q */
  readonly counts: (resource: string) => boolean;
  readonly code: string;
  readonly available: ReadonlyMap<string, number | string | boolean>;
  readonly taken: (resource: string) => number;
  readonly where: string;
};

function checkScope({ universe, policy }: Cycle, { entry }: Candidate, scope: Scope): Why | null {
  let short: Why | null = null;
  for (const [name, value] of Object.entries(entry.job.resources)) {
    const available = scope.available.get(name);
    if (available === undefined || !(policy.resources.has(name) || typeof value === "boolean")) continue;
    const resource = universe.space.all.get(name);
    const why = compare(resource, name, { value, available, scope });
    if (why?.never === true) return why;
    short ??= why;
  }
  return short;
}

type Asked = { readonly value: string | number | boolean; readonly available: number | string | boolean; readonly scope: Scope };

function compare(resource: Resource | undefined, name: string, { value, available, scope }: Asked): Why | null {
  const base = { code: scope.code, module: "resources", resource: name, where: scope.where };
  const want = amountOf(resource, value);
  if (want === null || typeof available !== "number") return compareValue(resource, base, value, available);
  const used = resource?.flags.includes("q") === true || scope.counts(name) ? scope.taken(name) : 0;
  if (used + want <= available) return null;
  const never = want > available;
  return {
    ...base,
    want: amountText(resource, want),
    have: amountText(resource, never ? available : available - used),
    total: amountText(resource, available),
    ...(never ? { never } : {}),
  };
}

function compareValue(
  resource: Resource | undefined,
  base: Why,
  value: string | number | boolean,
  available: number | string | boolean,
): Why | null {
  const want = matchedOf(resource, value);
  const have = matchedOf(resource, available);
  const equal = resource?.type === "string_array" ? String(have).split(",").includes(String(want)) : have === want;
  return equal ? null : { ...base, want: matchedText(want), have: matchedText(have), never: true };
}
