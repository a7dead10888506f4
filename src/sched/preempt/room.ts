// Makes room in a cycle's universe: running jobs are taken off their vnodes, a job is placed, and jobs that need not go get
// their vnodes back. Every change can be rolled back to a mark. Changes that are not rolled back are undone at the end of
// the cycle.
//
// W1. While a job is away (taken off its vnodes), it counts for no limit and is not in the calendar.
// W2. A job gets its vnodes back only if it then has exactly what it had before, and if all limits allow this together with
//     the job that was placed.

import { execVnodeText, firstVnode, onlyResources, readExecVnode } from "#model/request/exec-vnode.ts";
import type { SchedJob, Why } from "#protocol/sched-link.ts";
import { takeFromServer } from "../calendar/ahead.ts";
import { putAway } from "../calendar/calendar.ts";
import { resumeRequest } from "../order/job-lines.ts";
import { count } from "../order/run-count.ts";
import { undoMoves } from "../place/node-sets.ts";
import { durationsOf } from "../shapes/durations.ts";
import type { Away, Candidate, Room, Stage } from "../shapes/module.ts";
import type { Placed } from "../shapes/placed.ts";
import { readHolding } from "../shapes/running.ts";
import type { Universe } from "../shapes/universe.ts";
import type { Move } from "../shapes/vnode.ts";
import { vacate } from "./vacancy.ts";

/** The functions of a cycle that this file uses. */
export type RoomHost = {
  readonly universe: Universe;
  readonly server_taken: Map<string, number>;
  startedOn(vnode: string): readonly SchedJob[];
  /** Puts a job on vnodes that are free now or, if it was away, on those it had before. */
  place(candidate: Candidate): Placed | null;
  couldStart(candidate: Candidate): Why | null;
  check(candidate: Candidate, stages: readonly Stage[]): Why | null;
  noteMoved(moves: readonly Move[]): void;
};

const LIMITING: readonly Stage[] = ["limits", "queue-resources", "server-resources"];

export function createRoom(host: RoomHost): Room {
  const { universe, server_taken } = host;
  const away = new Map<string, Away>();
  const intoCalendar = new Map<string, () => void>();
  const undo: (() => void)[] = [];
  let occupied: Placed | null = null;

  const move = (moves: readonly Move[]): void => {
    host.noteMoved(moves);
    undo.push(() => undoMoves(universe, moves));
  };

  /** Counts the job as running (runs true), or no longer as running. */
  const run = ({ job, methods }: Away, runs: boolean): void => {
    count(universe, job, runs ? 1 : -1);
    takeFromServer(universe, server_taken, releasedOf(universe, job, methods), runs ? 1 : -1);
    if (runs) {
      away.delete(job.id);
      intoCalendar.get(job.id)?.();
    } else {
      away.set(job.id, { job, methods });
      intoCalendar.set(job.id, putAway(universe, job.id, readHolding(universe.space, givenUp(universe, job, methods))));
    }
  };
  const change = (who: Away, runs: boolean): void => {
    run(who, runs);
    undo.push(() => run(who, !runs));
  };
  const countIn = ({ entry: { job } }: Candidate, sign: 1 | -1): void => {
    count(universe, job, sign);
    takeFromServer(universe, server_taken, job, sign);
  };

  return {
    away,
    mark: () => undo.length,
    rollBack(mark) {
      while (undo.length > mark) undo.pop()?.();
    },
    vacate(job, methods) {
      const jobs = { isGone: (id: string) => away.has(id), startedOn: host.startedOn };
      move(vacate(universe, job, releasedBy(universe, methods), jobs));
      change({ job, methods }, false);
    },
    couldStart: (candidate) => host.couldStart(candidate),
    occupy(candidate) {
      const placed = host.place(candidate);
      if (placed === null) return null;
      move(placed.moved);
      countIn(candidate, 1);
      occupied = placed;
      undo.push(() => {
        countIn(candidate, -1);
        occupied = null;
      });
      return placed;
    },
    get occupied() {
      return occupied;
    },
    putBack(id) {
      const who = away.get(id);
      if (who === undefined) return true;
      const candidate = asItWas(universe, who);
      if (host.check(candidate, LIMITING) !== null) return false;
      const placed = host.place(candidate);
      if (placed === null) return false;
      move(placed.moved);
      change(who, true);
      return true;
    },
    keep(candidate) {
      undo.length = 0;
      occupied = null;
      countIn(candidate, -1);
    },
    close() {
      for (const who of [...away.values()].reverse()) run(who, true);
      undo.length = 0;
    },
  };
}

/** Returns the resources that a job gives up when it is preempted by the first of these methods; null: all. */
function releasedBy({ preempt }: Universe, methods: string): ReadonlySet<string> | null {
  return methods.startsWith("S") ? preempt.released : null;
}

function releasedOf(universe: Universe, job: SchedJob, methods: string): SchedJob {
  const released = releasedBy(universe, methods);
  if (released === null) return job;
  return { ...job, resources: Object.fromEntries(Object.entries(job.resources).filter(([name]) => released.has(name))) };
}

/** Returns the amounts that a job gives up, by vnode, as an exec_vnode text. */
function givenUp(universe: Universe, { exec_vnode = "" }: SchedJob, methods: string): string {
  const released = releasedBy(universe, methods);
  return released === null ? exec_vnode : onlyThese(exec_vnode, released);
}

/** Returns the job as it would be if it had been suspended, with its request for resuming. */
export function asItWas(universe: Universe, { job, methods }: Away): Candidate {
  const restricted = releasedBy(universe, methods) !== null;
  const suspended: SchedJob = { ...job, state: "S", ...(restricted ? { released: givenUp(universe, job, methods) } : {}) };
  const queue = universe.queues.get(job.queue);
  const entry = {
    job: suspended,
    request: resumeRequest(universe, suspended),
    order: [],
    line: null,
    strand: null,
    under: false,
    gone: false,
  };
  return { entry, queue, set: setOfSuspended(universe, suspended), ...durationsOf(universe, suspended) };
}

/** Returns the set with the vnodes of a suspended job, which may differ from the set that its queue uses now. */
export function setOfSuspended(universe: Universe, { exec_vnode = "" }: SchedJob): Candidate["set"] {
  return universe.vnodes.get(firstVnode(exec_vnode) ?? "")?.set;
}

/** Returns an exec_vnode text reduced to some resources. */
const onlyThese = (exec_vnode: string, names: ReadonlySet<string>): string =>
  execVnodeText(onlyResources(readExecVnode(exec_vnode) ?? [], (name) => names.has(name)));
