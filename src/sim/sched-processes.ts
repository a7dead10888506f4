// The processes of schedulers by name. At most one process of a name lives, as the lock of its directory ensures.

import type { SchedSight } from "#server/scheds/heartbeat.ts";
import type { SchedProcess } from "./sched-process.ts";
import type { World } from "./world.ts";

/** Interval at which a server checks whether a scheduler's lock is free. */
const LOCK_POLL_MS = 500;

/** parent: the life of the server (ServerProcess.life) that wants or started a process. */
export class SchedProcesses {
  readonly byName = new Map<string, SchedProcess>();
  readonly #world: World;
  readonly #make: (name: string) => SchedProcess;
  readonly #whenAwake: (act: () => void) => void;
  /** starts that wait for a lock */
  readonly #awaited = new Set<string>();

  /**
   * make: creates a process of the name without starting it. whenAwake: does work now, or when the server that checks locks continues.
   */
  constructor(world: World, make: (name: string) => SchedProcess, whenAwake: (act: () => void) => void) {
    this.#world = world;
    this.#make = make;
    this.#whenAwake = whenAwake;
  }

  /**
   * No second process of a name starts. An existing process either sends its hello or ends and makes room. isWanted: whether
   * the start is still wanted when there is room.
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

  /** pid 0: any process of the name. The pid in the answer is that of the existing process, otherwise the requested one. */
  look(name: string, pid: number): SchedSight {
    const sched = this.#alive(name);
    if (sched === null || (pid > 0 && sched.pid !== pid)) return { pid, process: "none" };
    return { pid: sched.pid, process: sched.paused ? "stopped" : "runs" };
  }

  /** Returns whether another life of the server started the process, which does not learn of its end. */
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
