// A scheduler's view of itself (partita top): its reservations with their states, and the comments of arrays that have begun.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createFairshare } from "#model/fairshare.ts";
import { RESV_STATE } from "#model/resv-state.ts";
import { SCHED_COMMAND } from "#protocol/sched-link.ts";
import type { SchedView } from "#protocol/sched-view.ts";
import { cycle } from "#sched/cycle/cycle.ts";
import { createActivity, noteCycle } from "#sched/explain/activity.ts";
import { schedView } from "#sched/explain/view.ts";
import { createUniverse } from "#sched/mirror/mirror.ts";
import { UTC } from "#sched/shapes/local-time.ts";
import { book, snapshotOf, universeOf, type World } from "../world.ts";

const NOW_S = 1_000_000;
const ACTIVITY = { cycles_done: 0, jobs_started: 0, cycles: [], events: [] };

/** states: reserve_state and reserve_substate of reservations, in order. */
function viewOf(world: World, states: readonly (readonly [state: number, substate: number])[] = []): SchedView {
  const policies = book();
  const snapshot = snapshotOf(world);
  const resvs = snapshot.resvs.map((resv, at) => {
    const [reserve_state, reserve_substate] = states[at] ?? [RESV_STATE.CONFIRMED, RESV_STATE.CONFIRMED];
    const times = { reserve_start: NOW_S + 500, reserve_end: NOW_S + 900 };
    return { ...resv, attrs: { ...resv.attrs, ...times, reserve_state, reserve_substate } };
  });
  const universe = createUniverse({ ...snapshot, resvs }, { policy: policies.prime, times_matter: false });
  const fairshare = createFairshare(policies.fairshare, null, NOW_S);
  return schedView(universe, policies, {
    now_s: NOW_S,
    pid: 1,
    since_s: 0,
    problem: null,
    activity: ACTIVITY,
    fairshare,
    sees_others: true,
  });
}

test("reservations of a scheduler's partitions and those of none yet, with their states", () => {
  const resvs = `R1 RN ${NOW_S - 10}-${NOW_S + 90}=(a:ncpus=1) part=p1; R2 ${NOW_S + 50}-${NOW_S + 60}=(a:ncpus=1) part=p1;
    R3 ${NOW_S + 50}-${NOW_S + 60}=(x:ncpus=1) part=p2; R4 ?${NOW_S + 500}-${NOW_S + 900}; R5 ?${NOW_S + 500}-${NOW_S + 900} part=p2`;
  const { RUNNING, DEGRADED, UNCONFIRMED, CONFIRMED } = RESV_STATE;
  const states = [
    [RUNNING, DEGRADED],
    [DEGRADED, DEGRADED],
    [CONFIRMED, CONFIRMED],
    [UNCONFIRMED, UNCONFIRMED],
    [UNCONFIRMED, UNCONFIRMED],
  ] as const;
  const view = viewOf({ nodes: "a ncpus=4 :partition=p1", jobs: "", name: "s1", sched: { partition: ["p1"] }, resvs }, states);
  assert.deepEqual(
    view.resvs.map(({ id, state, running, vnodes, end_s }) => [id, state, running, vnodes, end_s - NOW_S]),
    [
      ["R1", DEGRADED, true, 1, 90],
      ["R2", DEGRADED, false, 1, 60],
      ["R4", UNCONFIRMED, false, 0, 900],
    ],
  );
});

test("a denied reservation is gone at once: what it lacked is among the events", () => {
  const activity = createActivity();
  const policies = book();
  const universe = universeOf({ nodes: "a ncpus=4", jobs: "", resvs: `R1 2:ncpus=3 ?${NOW_S + 50}-${NOW_S + 90}` }, policies);
  const { decisions, stats } = cycle(universe, policies, { now_s: NOW_S, command: SCHED_COMMAND.TIME });
  const verdicts = decisions.map(() => ({ ok: true }) as const);
  noteCycle(activity, { now_s: NOW_S, command: SCHED_COMMAND.TIME, cycle_ms: 1, decisions, verdicts, universe, ...stats }, UTC);
  assert.deepEqual(
    activity.events.map(({ text }) => text),
    ["reservation R1 denied: Insufficient amount of resource: ncpus"],
  );
});

test("an array that has begun shows how its subjobs stand, not the comment of its begin", () => {
  const view = viewOf({ nodes: "a ncpus=1", jobs: "1[] B sub=3-9:2,12/2; 2[] B sub=7/1; 3 ncpus=2" });
  assert.deepEqual(
    view.waiting.map(({ id, comment }) => [id, comment]),
    [
      ["1[]", "5 of its subjobs wait, 2 run"],
      ["2[]", "1 of its subjobs waits, 1 runs"],
      ["3", null],
    ],
  );
});
