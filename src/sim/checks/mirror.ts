// Checks K7: compares what an idle scheduler knows with the server's state, and data kept up to date by deltas with data
// from a snapshot of the same state.

import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { NO_MEMORY } from "#sched/cycle/result.ts";
import { createUniverse } from "#sched/mirror/mirror.ts";
import { mirrorOptions } from "#sched/modules/index.ts";
import { eligibleAt } from "#sched/order/eligible-time.ts";
import { groupResources } from "#sched/order/group-resources.ts";
import { jobsOf } from "#sched/order/strands.ts";
import { setsInOrder } from "#sched/place/placement-sets.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import type { NodeSet } from "#sched/shapes/vnode.ts";
import type { SchedRuntime } from "#server/engine/sched-runtime.ts";
import { type MirrorSource, snapshot } from "#server/scheds/mirror.ts";
import type { Sched } from "#server/state/state.ts";

/** Returns the universe of a scheduler that would connect now. */
export function freshUniverse(server: MirrorSource, sched: Sched, book: PolicyBook): Universe {
  const runtime = {
    name: sched.name,
    revision: 0,
    known: { queues: new Set(), nodes: new Set(), jobs: new Set() },
  } as unknown as SchedRuntime;
  const whole = JSON.parse(JSON.stringify(snapshot(server, sched, runtime))) as ReturnType<typeof snapshot>;
  return createUniverse(whole, mirrorOptions(book));
}

/** Returns the first difference between a scheduler's universe and the right one; null: there is none. */
export function mirrorFault(universe: Universe, server: MirrorSource, sched: Sched, book: PolicyBook): string | null {
  const told = describe(universe);
  const right = describe(freshUniverse(server, sched, book));
  for (const [part, text] of right) if (told.get(part) !== text) return `${part}: the mirror has ${told.get(part)}, right is ${text}`;
  for (const [part, text] of told) if (!right.has(part)) return `${part}: the mirror has ${text}, right is nothing`;
  return null;
}

/** Returns the jobs that a cycle would start now. When a complex is at rest there are none. */
export function startable(server: MirrorSource, sched: Sched, book: PolicyBook, now_s: number): string[] {
  const { decisions } = cycle(freshUniverse(server, sched, book), book, { now_s, command: SCHED_COMMAND.TIME, memory: NO_MEMORY });
  return decisions.flatMap((decision) => (decision.kind === "run" ? [decision.job] : []));
}

/** Returns the contents of a universe as texts by name, so that universes can be compared. */
function describe(universe: Universe): Map<string, string> {
  const parts = new Map<string, string>();
  const put = (name: string, value: unknown): void => void parts.set(name, sorted(value));
  put("server", without(universe.server, "server_state"));
  put("sched", without(universe.sched, "state"));
  for (const [name, def] of universe.resources) put(`resource ${name}`, def);
  for (const [name, node] of universe.nodes) put(`node ${name}`, node);
  const queues = [...universe.queues.values()].sort((a, b) => a.order - b.order);
  put(
    "queues in order",
    queues.map((queue) => queue.name),
  );
  for (const { name, priority, started, execution, partition, limits, available } of queues) {
    const run = [...limits.resources].map(([resource, table]) => [resource, [...table].sort()]);
    put(`queue ${name}`, {
      priority,
      started,
      execution,
      partition,
      run: [...limits.run].sort(),
      run_res: run,
      available: [...available].map(String).sort(),
    });
  }
  // A scheduler keeps the placement sets that any job has ever asked for, so only those that are wanted now are compared.
  const wanted = new Set(queues.map((queue) => groupResources(universe, queue).join()));
  for (const { line, request } of universe.entries.values()) if (line !== null) wanted.add(request.place.group ?? "");
  // Comments are not compared, because the server does not send a scheduler the comments that the scheduler set.
  for (const [id, { comment: _, ...job }] of universe.jobs) put(`job ${id}`, job);
  for (const [id, resv] of universe.resvs) put(`resv ${id}`, resv.source);
  for (const set of universe.sets.values()) {
    put(`node set ${set.key}`, {
      total: numbers(set.total),
      free: numbers(set.free),
      free_count: set.free_count,
      vnodes: [...set.vnodes.keys()].sort(),
      hosts: [...set.hosts.keys()].sort(),
      multi: set.multi_vnode_hosts,
    });
    describeBuckets(set, put);
    for (const grouping of set.groupings.values()) {
      if (!wanted.has(grouping.key)) continue;
      put(
        `placement sets ${set.key} ${grouping.key}`,
        setsInOrder(universe, grouping).map((one) => [
          one.group?.name,
          numbers(one.total),
          numbers(one.free),
          [...one.vnodes.keys()].sort(),
        ]),
      );
      for (const one of grouping.sets.values()) describeBuckets(one, put);
    }
  }
  for (const [scope, table] of universe.usage) {
    for (const [entity, use] of table)
      if (use.jobs !== 0 || use.amounts.some((amount) => amount !== 0)) put(`usage ${scope} ${entity}`, [use.jobs, use.amounts]);
  }
  for (const [queue, lines] of universe.lines) {
    for (const line of lines) {
      // Eligible times are compared at a late moment, so that clocks that go differ from clocks that stand still.
      const members = [...jobsOf(line)].map(({ job }) => `${job.id} ${eligibleAt(universe.clocks, job, LATER_S).eligible_s}`);
      if (members.length > 0) put(`line ${queue} of ${members[0]}`, members);
    }
  }
  return parts;
}

function describeBuckets(set: NodeSet, put: (name: string, value: unknown) => void): void {
  for (const { count, states, members } of set.buckets.values())
    if (count > 0)
      put(
        `bucket ${set.key} ${members} ${states.map(({ spec, used, closed, jobs }) => [spec.avail.map(String), [...spec.matches].sort(), used, closed, jobs, spec.sharing])}`,
        count,
      );
}

const LATER_S = 2_000_000_000;
const numbers = (values: readonly number[]): string[] => values.map(String);

function without(object: { readonly attrs: { readonly [name: string]: unknown } }, name: string): unknown {
  const { [name]: _, ...attrs } = object.attrs;
  return { ...object, attrs };
}

/** Converts a value to JSON, with the names in objects sorted. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_key, item) =>
    typeof item === "object" && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}
