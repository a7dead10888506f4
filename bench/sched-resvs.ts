// Calendars of many reservations: the scheduler's cycle and its answers on thousands of vnodes. Not measured: the link and the server.

import { parseResourceGroup } from "#model/resource-group.ts";
import type { Decision, SchedJob, SchedNode, SchedResv, Snapshot } from "#protocol/sched-link.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { applyDelta, createUniverse } from "#sched/mirror/mirror.ts";
import { MODULES_DEFAULT, mirrorOptions } from "#sched/modules/index.ts";
import { ALWAYS_PRIME } from "#sched/shapes/holidays.ts";
import { UTC } from "#sched/shapes/local-time.ts";
import { POLICY_DEFAULT } from "#sched/shapes/policy.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import type { Universe } from "#sched/shapes/universe.ts";
import type { BenchRow } from "./sched-cycle.ts";

const BOOK: PolicyBook = {
  prime: POLICY_DEFAULT,
  non_prime: POLICY_DEFAULT,
  holidays: ALWAYS_PRIME,
  dedicated: [],
  fairshare: parseResourceGroup("", 0).tree,
  modules: MODULES_DEFAULT,
  local: UTC,
};
const [NODES, RESVS, JOBS, SHAPES] = [5000, 300, 10_000, 1000];
const NOW_S = 1_800_000_000;
const DAY_S = 86_400;
const WORLD = `${RESVS} reservations over ${NODES} vnodes`;

/** A busy complex with reservations on most of its vnodes, one in five of them standing; then a year of nights on a thousand vnodes. */
export function rows(): BenchRow[] {
  const universe = createUniverse(snapshot(), mirrorOptions(BOOK));
  const rows: BenchRow[] = [];
  const told = (name: string, value: number): number => rows.push({ name, value, unit: "s", limit: null });
  told(
    `${JOBS} queued jobs of ${SHAPES} shapes, ${NODES} vnodes, no reservation`,
    median(() => go(universe)),
  );
  told(`${WORLD} told one by one`, timed(() => Array.from({ length: RESVS }, (_, at) => put(universe, reservation(at)))).seconds);
  told(
    `${JOBS} queued jobs of ${SHAPES} shapes, ${WORLD}`,
    median(() => go(universe)),
  );
  const year = standing();
  put(universe, year);
  const { seconds, result } = timed(() => go(universe));
  const answer = result.decisions.find(({ kind }) => kind === "confirm-resv") as Extract<Decision, { kind: "confirm-resv" }>;
  if (answer?.occurrences.length !== year.ask?.occurrences.length) throw new Error("the standing reservation is not confirmed");
  told(`standing reservation of 365 nights and 1,000 chunks confirmed beside ${WORLD}`, seconds);
  const { ask: _ask, ...rest } = year;
  told("its places told", timed(() => put(universe, { ...rest, held: answer.occurrences, places: answer.places })).seconds);
  told(
    `${JOBS} queued jobs of ${SHAPES} shapes with it`,
    median(() => go(universe)),
  );
  return rows;
}

const go = (universe: Universe) => cycle(universe, BOOK, { now_s: NOW_S, command: SCHED_COMMAND.TIME });

function put(universe: Universe, value: SchedResv): void {
  applyDelta(universe, { revision: universe.revision + 1, changes: [{ put: "resv", value }] });
}

function reservation(at: number): SchedResv {
  const width = 50 + (at % 100);
  const place = Array.from({ length: width }, (_, k) => `(n${(at * 37 + k) % NODES}:ncpus=2)`).join("+");
  const begin_s = NOW_S + 2 * DAY_S + at * 1000;
  const held = Array.from({ length: at % 5 === 0 ? 50 : 1 }, (_, day) => ({
    start_s: begin_s + day * DAY_S,
    end_s: begin_s + day * DAY_S + 3600,
    place: 0,
  }));
  return { id: `R${at}.svr`, attrs: attrsOf(`R${at}`, `${width}:ncpus=2`), running: false, held, places: [place] };
}

function standing(): SchedResv {
  const begin_s = NOW_S + 3 * DAY_S;
  const occurrences = Array.from({ length: 365 }, (_, day) => ({ start_s: begin_s + day * DAY_S, end_s: begin_s + day * DAY_S + 7200 }));
  const attrs = attrsOf("S9999", "1000:ncpus=4");
  return { id: "S9999.svr", attrs, running: false, held: [], places: [], ask: { kind: "confirm", asked_s: NOW_S, occurrences } };
}

const attrsOf = (queue: string, schedselect: string): SchedResv["attrs"] => ({ queue, schedselect, Resource_List: { place: "scatter" } });

/** Every vnode is half or wholly taken by a job that ends within some hours. */
function snapshot(): Snapshot {
  const nodes: SchedNode[] = [];
  const jobs: SchedJob[] = Array.from({ length: JOBS }, (_, at) =>
    job(`${at}.svr`, at, `${1 + (at % 3)}:ncpus=${1 + ((at % SHAPES) % 31)}`),
  );
  for (let at = 0; at < NODES; at++) {
    const ncpus = at % 2 === 0 ? 16 : 32;
    const one = job(`${JOBS + at}.svr`, JOBS + at, `1:ncpus=${ncpus}`);
    const resources = { walltime: 3600 + (at % 1000) * 60 };
    jobs.push({ ...one, state: "R", exec_vnode: `(n${at}:ncpus=${ncpus})`, stime_s: NOW_S - 60, resources });
    nodes.push({
      name: `n${at}`,
      order: at,
      attrs: {
        resources_available: { ncpus: 32, mem: "128gb", arch: "linux", host: `n${at}`, vnode: `n${at}` },
        state: ncpus === 32 ? ["job-busy"] : [],
        sharing: "default_shared",
      },
      assigned: { ncpus },
      jobs: [one.id],
    });
  }
  const workq = { name: "workq", attrs: { queue_type: "Execution", started: true, enabled: true } };
  return {
    revision: 1,
    server: { name: "svr", attrs: {}, assigned: {} },
    sched: { name: "default", attrs: { log_events: 767 } },
    resources: [],
    queues: [workq],
    nodes,
    jobs,
    resvs: [],
  };
}

function job(id: string, rank: number, schedselect: string): SchedJob {
  const walltime = 600 + (rank % 50) * 3600;
  return {
    id,
    state: "Q",
    substate: 10,
    queue: "workq",
    rank,
    user: "alice",
    group: "users",
    project: "_pbs_project_default",
    name: "bench",
    priority: 0,
    schedselect,
    place: "free",
    resources: { walltime },
    ctime_s: NOW_S,
    qtime_s: NOW_S,
    run_count: 0,
    rerunable: true,
  };
}

function timed<T>(work: () => T): { readonly seconds: number; readonly result: T } {
  const begin = performance.now();
  const result = work();
  return { seconds: (performance.now() - begin) / 1000, result };
}

function median(work: () => unknown): number {
  const times = Array.from({ length: 5 }, () => timed(work).seconds).sort((a, b) => a - b);
  return times[2] as number;
}
