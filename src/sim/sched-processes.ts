// The processes of schedulers by name. At most one process of each name lives, as with the lock of a real directory.

import type { SchedSight } from "#server/scheds/heartbeat.ts";
import type { SchedProcess } from "./sched-process.ts";
import type { World } from "./world.ts";

/** Interval in ms at which a server checks whether a scheduler's lock is free. */
const LOCK_POLL_MS = 500;

/** The processes of schedulers. parent: the number of the server's process (ServerProcess.life) that wants or has started a scheduler. */
export class SchedProcesses {
  readonly byName = new Map<string, SchedProcess>();
  readonly #world: World;
  readonly #make: (name: string) => SchedProcess;
  readonly #whenAwake: (act: () => void) => void;
  /** names of the schedulers whose start waits for a lock */
  readonly #awaited = new Set<string>();

  /** make: creates a SchedProcess of the name without starting it. whenAwake: calls `act` now or, if the server is stopped, when it continues. */
  constructor(world: World, make: (name: string) => SchedProcess, whenAwake: (act: () => void) => void) {
    this.#world = world;
    this.#make = make;
    this.#whenAwake = whenAwake;
  }

  /**
   * Starts a process. If a process of the name lives, no second one starts: the first either sends its hello or ends, and a
   * new one can start then. isWanted: whether the start is still wanted when the name is free.
   */
  start(name: string, parent: number, isWanted: () => boolean): void {
    if (!isWanted()) return;
    const sched = this.byName.get(name) ?? this.#make(name);
    this.byName.set(name, sched);
    const turn = `${parent} ${name}`;
    if (!sched.alive) sched.start(parent);
    else if (sched.parent !== parent && !this.#awaited.has(turn)) {
      this.#awaited.add(turn);
      this.#world.after(LOCK_POLL_MS, () => {
        this.#awaited.delete(turn);
        this.#whenAwake(() => this.start(name, parent, isWanted));
      });
    }
  }

  #alive(name: string): SchedProcess | null {
    const sched = this.byName.get(name);
    return sched?.alive === true ? sched : null;
  }

  isAlive(pid: number): boolean {
    return [...this.byName.values()].some((sched) => sched.alive && sched.pid === pid);
  }

  /** Tells whether a process lives. pid 0: any process of the name. The answer has the pid of the process that lives, otherwise the requested one. */
  look(name: string, pid: number): SchedSight {
    const sched = this.#alive(name);
    if (sched === null || (pid > 0 && sched.pid !== pid)) return { pid, process: "none" };
    return { pid: sched.pid, process: sched.paused ? "stopped" : "runs" };
  }

  /**
   * Kills a process. Returns true if it was not started by `parent` but by an earlier process of the server. The operating
   * system then does not tell the present process of the server that the scheduler has ended.
   */
  kill(name: string, pid: number, parent: number): boolean {
    const sched = this.#alive(name);
    if (sched?.pid !== pid) return false;
    sched.kill();
    return sched.parent !== parent;
  }

  /** Sends SIGTERM at once, possibly before the quit message on the link arrives. */
  stop(name: string, parent: number, pid: number): void {
    const sched = this.#alive(name);
    if (sched === null || (sched.parent !== parent && sched.pid !== pid)) return;
    const target = sched.pid;
    this.#world.after(this.#world.random.int(0, 5), () => {
      if (sched.pid === target) sched.stop();
    });
  }
}
