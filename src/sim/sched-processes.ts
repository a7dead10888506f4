// The processes of schedulers, by name: at most one of a name lives, as the lock of its directory has it.

import type { SchedSight } from "#server/scheds/heartbeat.ts";
import type { SchedProcess } from "./sched-process.ts";
import type { World } from "./world.ts";

/** How often a server looks whether a scheduler's lock is free. */
const LOCK_POLL_MS = 500;

/** parent: the life of the server (ServerProcess.life) that wants or started a process. */
export class SchedProcesses {
  readonly byName = new Map<string, SchedProcess>();
  readonly #world: World;
  readonly #make: (name: string) => SchedProcess;
  readonly #whenAwake: (act: () => void) => void;
  /** starts that wait for a lock */
  readonly #awaited = new Set<string>();

  /** make: a process of the name, not started. whenAwake: does it now, or when the server that looks for locks goes on. */
  constructor(world: World, make: (name: string) => SchedProcess, whenAwake: (act: () => void) => void) {
    this.#world = world;
    this.#make = make;
    this.#whenAwake = whenAwake;
  }

  /** No second process of a name: one that is there says hello by itself, or goes and makes room. isWanted: still, when there is room. */
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

  /** pid 0: whichever there is. The pid of the answer: of the process that is there, else the one that was asked for. */
  look(name: string, pid: number): SchedSight {
    const sched = this.#alive(name);
    if (sched === null || (pid > 0 && sched.pid !== pid)) return { pid, process: "none" };
    return { pid: sched.pid, process: sched.paused ? "stopped" : "runs" };
  }

  /** Whether another life of the server had started it, which is not told of its end. */
  kill(name: string, pid: number, parent: number): boolean {
    const sched = this.#alive(name);
    if (sched?.pid !== pid) return false;
    sched.kill();
    return sched.parent !== parent;
  }

  /** SIGTERM at once: it may come before the word to quit that went over the link. */
  stop(name: string, parent: number, pid: number): void {
    const sched = this.#alive(name);
    if (sched === null || (sched.parent !== parent && sched.pid !== pid)) return;
    const target = sched.pid;
    this.#world.after(this.#world.random.int(0, 5), () => {
      if (sched.pid === target) sched.stop();
    });
  }
}
