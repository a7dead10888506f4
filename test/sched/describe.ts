// A universe as plain data that does not depend on its history: numbers of specs and requests are left out, and groups are
// given by their members.

import { jobsOf } from "#sched/order/strands.ts";
import { setsInOrder } from "#sched/place/placement-sets.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import type { Host, NodeSet } from "#sched/shapes/vnode.ts";

export function describeUniverse(universe: Universe): unknown {
  return {
    sets: sorted(universe.sets.keys()).map((key) => {
      const set = universe.sets.get(key);
      if (set === undefined) return key;
      const groupings = sorted(set.groupings.keys()).map((name) => {
        const grouping = set.groupings.get(name);
        return [name, grouping === undefined ? [] : setsInOrder(universe, grouping).map(describeSet)];
      });
      return { ...describeSet(set), groupings };
    }),
    classes: sorted(
      [...universe.classes.values()].map((one) =>
        sorted(
          [...one.lines.values()].map(
            (line) =>
              `${line.queue}: ${sorted(
                [...line.tracks.values()].flatMap((track) =>
                  [...track.strands.values()].map(
                    ({ key, members }) =>
                      `${track.entity}/${key}: ${members
                        .filter((entry) => !entry.gone)
                        .map((entry) => entry.job.id)
                        .join(" ")}`,
                  ),
                ),
              ).join(" & ")} (${line.size})`,
          ),
        ).join(" | "),
      ),
    ),
    lines: sorted([...universe.lines].map(([queue, lines]) => `${queue} ${lines.size}`)),
    agreed: [...universe.classes.values()].every((one) =>
      [...one.lines.values()].every((line) =>
        [...jobsOf(line)].every(
          (entry) =>
            line.differ.has(entry) === (!entry.under && entry.job.comment !== line.said) &&
            line.differ_under.has(entry) ===
              (entry.under && entry.job.comment !== "Not Running: Job is under job_sort_formula threshold value"),
        ),
      ),
    ),
    entries: sorted(universe.entries.keys()),
    usage: sorted(
      [...universe.usage].flatMap(([scope, table]) =>
        [...table].map(([entity, usage]) => `${scope} ${entity} ${usage.jobs} ${usage.amounts.join()}`),
      ),
    ),
    profile: universe.profile,
  };
}

const sorted = <T>(items: Iterable<T>): T[] => [...items].sort();

function describeSet(set: NodeSet): object {
  const buckets = [...set.buckets.values()].filter((bucket) => bucket.count > 0);
  return {
    key: set.key,
    total: set.total,
    free: set.free,
    free_count: set.free_count,
    multi: set.multi_vnode_hosts,
    vnodes: sorted(set.vnodes.keys()),
    filled: set.filled === buckets.length,
    buckets: sorted(
      buckets.map((bucket) => {
        const hosts = [...set.hosts.values()].filter((host) => host.bucket === bucket);
        const inHeap = hosts.every((host) => bucket.heap.includes(host));
        return `${bucket.count}=${sorted(hosts.map((host) => `${host.name}@${host.order}${outlookText(host)}`)).join()} ${inHeap} ${set.open.has(bucket) === bucket.free_count > 0} ${bucket.walk.join()} ${bucket.rank.join()} ${bucket.states.map(({ spec }) => Number(spec.crowded)).join("")}`;
      }),
    ),
    specs: [...set.specs.values()].reduce((sum, count) => sum + count, 0),
  };
}

/** The bookings of a host, and the remaining use by running jobs when each begins. */
function outlookText({ outlook }: Host): string {
  const texts = outlook?.vnodes.map(({ at, parts, lefts }) => {
    const booked = parts.map(
      ({ times, amounts }) =>
        `${times.map(({ from_s, to_s }) => `${from_s}-${to_s}`).join("&")} ${amounts.map(({ index, amount }) => `${index}=${amount}`).join()}`,
    );
    return `${at} ${sorted(booked).join("; ")} beside ${lefts.map(({ from_s, used, jobs }) => `${from_s}: ${used.join()} ${jobs}`).join("; ")}`;
  });
  return texts === undefined ? "" : ` booked ${texts.join(" | ")}`;
}
