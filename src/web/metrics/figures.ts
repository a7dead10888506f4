// The figures of /metrics in Prometheus' naming, computed from the server's status. They are totals: no user and no job is named.

import type { StatusItem } from "#protocol/messages.ts";
import type { SchedView } from "#protocol/sched-view.ts";

export type Sample = { readonly labels: { readonly [name: string]: string }; readonly value: number };
export type Figure = {
  readonly name: string;
  readonly help: string;
  readonly type: "gauge" | "counter";
  readonly samples: readonly Sample[];
};

export type Seen = {
  readonly server: readonly StatusItem[];
  readonly queues: readonly StatusItem[];
  readonly nodes: readonly StatusItem[];
  readonly scheds: readonly StatusItem[];
  /** what each scheduler shows; absent: it is down, or has not answered */
  readonly views: ReadonlyMap<string, SchedView>;
};

/** Attributes that the figures need, by object. */
export const SEEN_ATTRS = {
  server: ["state_count"],
  queue: ["state_count", "partition"],
  node: ["state", "partition"],
  sched: ["state"],
} as const;

/** Whether the server answers. It is a figure of its own, because it is there without any status. */
export const upFigure = (up: boolean): Figure =>
  gauge("partita_server_up", "whether the server answers", [{ labels: {}, value: up ? 1 : 0 }]);

/** All figures of a server that answers. */
export function figuresOf({ server, queues, nodes, scheds, views }: Seen): readonly Figure[] {
  const viewed = [...views].map(([scheduler, view]) => ({ labels: { scheduler }, view }));
  const perView = (value: (view: SchedView) => number | undefined): Sample[] =>
    viewed.flatMap(({ labels, view }) => {
      const found = value(view);
      return found === undefined ? [] : [{ labels, value: found }];
    });
  const perQueue = queues.flatMap((item) => {
    const labels = { queue: item.id, partition: textOf(item, "partition") };
    return countsOf(textOf(item, "state_count")).map(([state, value]) => ({ labels: { ...labels, state }, value }));
  });
  return [
    gauge(
      "partita_jobs",
      "jobs of the server by state",
      server.flatMap((item) => countsOf(textOf(item, "state_count")).map(([state, value]) => ({ labels: { state }, value }))),
    ),
    gauge("partita_queue_jobs", "jobs of a queue by state", perQueue),
    gauge("partita_nodes", "vnodes by state and partition", nodeCounts(nodes)),
    gauge(
      "partita_scheduler_up",
      "whether the scheduler is connected",
      scheds.map((item) => ({ labels: { scheduler: item.id }, value: textOf(item, "state") === "down" ? 0 : 1 })),
    ),
    counter(
      "partita_scheduler_cycles_total",
      "cycles since the scheduler started",
      perView(({ cycles_done }) => cycles_done),
    ),
    counter(
      "partita_scheduler_jobs_started_total",
      "jobs that the scheduler has started since it started itself",
      perView(({ jobs_started }) => jobs_started),
    ),
    gauge(
      "partita_scheduler_last_cycle_seconds",
      "duration of the latest cycle",
      perView(({ cycles }) => lastCycle(cycles, ({ cycle_ms }) => cycle_ms / 1000)),
    ),
    gauge(
      "partita_scheduler_last_cycle_jobs_considered",
      "jobs that the latest cycle considered",
      perView(({ cycles }) => lastCycle(cycles, ({ jobs_considered }) => jobs_considered)),
    ),
  ];
}

type Cycle = SchedView["cycles"][number];
function lastCycle(cycles: readonly Cycle[], value: (cycle: Cycle) => number): number | undefined {
  const cycle = cycles.at(-1);
  return cycle === undefined ? undefined : value(cycle);
}

const gauge = (name: string, help: string, samples: readonly Sample[]): Figure => ({ name, help, type: "gauge", samples });
const counter = (name: string, help: string, samples: readonly Sample[]): Figure => ({ name, help, type: "counter", samples });

function textOf(item: StatusItem, name: string): string {
  const value = "attrs" in item ? item.attrs[name] : undefined;
  return typeof value === "string" ? value : "";
}

/** Reads the value of state_count: `Queued:3 Running:1`. */
const countsOf = (text: string): [state: string, count: number][] =>
  [...text.matchAll(/(\w+):(\d+)/g)].map(([, state = "", count]) => [state.toLowerCase(), Number(count)]);

/** A vnode with several states, such as `offline,down`, counts under this whole text. */
function nodeCounts(nodes: readonly StatusItem[]): Sample[] {
  const counts = new Map<string, { labels: Sample["labels"]; value: number }>();
  for (const node of nodes) {
    const labels = { state: textOf(node, "state"), partition: textOf(node, "partition") };
    const key = JSON.stringify(labels);
    counts.set(key, { labels, value: (counts.get(key)?.value ?? 0) + 1 });
  }
  return [...counts.values()];
}
