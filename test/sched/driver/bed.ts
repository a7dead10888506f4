// Ports of a scheduler's driver that note what leaves, in its order. Programs answer when the test says so.

import type { DynValues, SchedPorts } from "#sched/driver/ports.ts";
import { SchedDriver } from "#sched/driver/sched-driver.ts";
import type { PolicyBook } from "#sched/shapes/policy-book.ts";
import { HandClock } from "#server/driver/hand-clock.ts";
import { settingsOfBook, virtualModules } from "#sim/sched-process.ts";
import { book, snapshotOf, type World } from "../world.ts";

const WORLD: World = { nodes: "a 4", jobs: "1 Q 1" };
const idle = (): undefined => undefined;

export type Bed = {
  readonly clock: HandClock;
  /** what left, in its order: the type of the message, and its data */
  readonly words: string[];
  readonly log: string[];
  readonly driver: SchedDriver;
  /** the programs that run answer */
  readonly answers: ((values: DynValues) => void)[];
};

/** A scheduler that is connected and has a snapshot. more: of its settings */
export function connected(more: Partial<PolicyBook> = {}): Bed {
  const clock = new HandClock(1_000_000_000);
  const words: string[] = [];
  const log: string[] = [];
  const answers: Bed["answers"] = [];
  const settings = settingsOfBook(book({}, more));
  const ports: SchedPorts = {
    clock,
    link: {
      send: (type, data) => {
        // The problem of modules is sent a while after every snapshot.
        if (type !== "sched-problem") words.push(`${type} ${JSON.stringify(data)}`);
      },
      reconnect: (why) => void words.push(`reconnect ${why}`),
      close: () => void words.push("close"),
    },
    directories: { sched_priv: "sched_priv", follow: () => ({ fault: null, moved: false }), release: idle },
    settings: { read: () => settings, version: () => "" },
    usage: { read: () => null, write: idle, setAside: idle, isTouched: () => false, clearTouch: idle },
    programs: { ask: (_programs, _space, _alarm_s, done) => void answers.push(done), stop: () => void words.push("stop programs") },
    modules: virtualModules((done) => done()),
    log: { record: (_event, _class, _object, text) => void log.push(text), setMask: idle, flush: idle, reopen: idle },
    local: settings.book.local,
    busy: idle,
    quit: idle,
  };
  const driver = new SchedDriver(ports, { name: "default", pid: 1, version: "test" });
  driver.start();
  const bed = { clock, words, log, driver, answers };
  connect(bed);
  words.length = 0;
  return bed;
}

export function connect({ driver }: Bed): void {
  driver.opened();
  driver.frame("sched-snapshot", snapshotOf(WORLD));
}
