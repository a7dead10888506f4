// Ports of the driver with which everything succeeds at once and nothing is stored. What-if and tests replace the ports that
// they need to observe.

import { NO_REQUESTS } from "#hooks/run/hook-input.ts";
import type { ClockPort, IdentityPort, ProcessesPort, ServerPorts } from "./ports.ts";

/** The ports that the caller must provide: the destinations of frames and answers. It may replace the others. */
export type OwnPorts = Pick<ServerPorts, "links" | "clients"> &
  Partial<Omit<ServerPorts, "processes">> & { readonly processes?: Partial<ProcessesPort> };

/** Makes the ports. An error inside the core is thrown to the caller. */
export function immediatePorts(clock: ClockPort, own: OwnPorts): ServerPorts {
  return {
    clock,
    store: EMPTY_STORE,
    hooks: { run: (_hook, done) => done({ kind: "accept", changes: {}, requests: NO_REQUESTS, logs: [] }), close: () => undefined },
    files: { hook: () => undefined, resources: () => undefined, formula: () => undefined },
    log: { note: () => undefined, records: () => undefined, setMask: () => undefined },
    accounting: { record: () => undefined, flush: () => undefined, lost: 0, line: () => "", tail: () => [] },
    mail: { send: () => undefined },
    identity: NO_AUTHORITY,
    resolve: (host, done) => done(host),
    onBug(error) {
      throw error;
    },
    ended: () => undefined,
    ...own,
    processes: { ...NO_PROCESSES, ...own.processes },
  };
}

/** The port of scheduler processes: there are none. */
const NO_PROCESSES: ProcessesPort = {
  start: () => undefined,
  prepare: () => undefined,
  say: () => undefined,
  stop: () => undefined,
  look: (_sched, pid, done) => done({ pid, process: "runs" }),
  kill: () => undefined,
  stopAll: (_scheds, done) => done(),
  isChild: () => true,
  isAlive: () => true,
};

/** The authority of a complex on one host: there is none. */
export const NO_AUTHORITY: IdentityPort = {
  ask: (_ask, done) => done({ ok: false, error: new Error("there is no certificate authority in this world") }),
};

/** A store in which each commit succeeds and the history is empty. */
const EMPTY_STORE: ServerPorts["store"] = {
  commit: (_rows, done) => done(null),
  load() {
    throw new Error("nothing is kept in this world");
  },
  history: {
    read: (ids, _page_rows, done) => done({ ok: true, value: new Map(ids.map((id) => [id, null])) }),
    pages: () => ({ next: (done) => done({ ok: true, value: null }) }),
    purge: (_before_s, done) => done({ ok: true, value: 0 }),
    count: (done) => done({ ok: true, value: 0 }),
  },
  backup: (_file, done) => done({ ok: true, value: undefined }),
  close: (done) => done(),
};
