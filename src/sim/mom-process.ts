// A mom that can be started, stopped and killed. Its core and its driver (src/mom/driver) are the real ones. Their ports (mom-ports.ts), the starter and the
// file agents are simulated. The disk stays when the mom ends. A mom can be killed at any event, and before any of its effects.

import { readRecords } from "#mom/driver/record-log.ts";
import type { MomState } from "#mom/run/state.ts";
import type { MomJob, MomPatience } from "#protocol/mom-link.ts";
import type { Prng } from "#support/prng.ts";
import { MomDisk, MomLife, type MomOptions } from "./mom-ports.ts";
import type { World } from "./world.ts";

/** Largest number of effects of a mom between the fault "kill-mom-in-event" and the kill. */
const LAST_EFFECTS_MAX = 5;

export class MomProcess {
  readonly #world: World;
  readonly #options: MomOptions;
  readonly #random: Prng;
  readonly #who: string;
  readonly #patience: MomPatience;
  readonly #disk = new MomDisk();
  #life: MomLife | null = null;
  #lives = 0;
  #boot = 1;
  /** how long the mom stays dead after the kill that killInEvent() has requested, in ms; null: no kill is requested */
  #doomed_ms: number | null = null;

  constructor(world: World, options: MomOptions) {
    this.#world = world;
    this.#options = options;
    this.#who = `mom:${options.host}`;
    this.#random = world.random.split(`mom/${options.host}`);
    this.#patience = patienceOf(this.#random.split("patience"));
    this.start = this.start.bind(this);
  }

  get host(): string {
    return this.#options.host;
  }

  /** The state of the mom; null: the mom does not run. */
  get state(): MomState | null {
    return this.#life?.driver?.state ?? null;
  }

  /**
   * Returns the attributes of a job as this mom received them. If the mom was killed, they come from its record, because its
   * starter may still start the job.
   */
  attrsOf(job: string): MomJob["attrs"] | undefined {
    const run = this.state === null ? readRecords(this.#disk.records).get(job) : this.state.runs.get(job);
    return run?.job.attrs;
  }

  start(): void {
    if (this.#life !== null) return;
    const mine = ++this.#lives;
    this.#doomed_ms = null;
    this.#world.trace.add(this.#who, "started");
    const life = new MomLife({
      ...this.#options,
      world: this.#world,
      random: this.#random,
      disk: this.#disk,
      pid: 5000 + mine,
      boot: this.#boot,
      patience: this.#patience,
      who: this.#who,
      over: (why) => this.#over(why),
    });
    this.#life = life;
    life.start();
  }

  kill(): void {
    this.#stop("killed");
  }

  /** Lets the mom be killed before one of its next effects. It is started again after away_ms. */
  killInEvent(away_ms: number): void {
    if (this.#life === null) return;
    this.#doomed_ms = away_ms;
    this.#life.doom(this.#random.int(0, LAST_EFFECTS_MAX));
  }

  /** Stops the mom (SIGSTOP) for that time; its starter and its file agents continue. */
  pause(for_ms: number): void {
    const life = this.#life;
    if (life === null || life.pulse.isStopped) return;
    this.#world.trace.add(this.#who, "stopped", `for ${for_ms} ms`);
    life.pulse.stop();
    this.#world.after(for_ms, () => this.#goOn(life));
  }

  /** Cancels killInEvent(), and continues the mom if it is stopped. */
  async behave(): Promise<void> {
    this.#doomed_ms = null;
    this.#life?.doom(null);
    if (this.#life !== null) await this.#goOn(this.#life);
  }

  killAgent(): void {
    if (this.#life === null) return;
    this.#world.trace.add(this.#who, "agent-killed");
    this.#life.killAgents();
  }

  /** Kills the mom, its starter and all other processes of the host. */
  reboot(): void {
    this.#stop("reboot");
    this.#boot++;
    this.#options.starter.reboot();
  }

  async #goOn({ pulse }: MomLife): Promise<void> {
    if (!pulse.isAlive || !pulse.isStopped) return;
    this.#world.trace.add(this.#who, "goes-on");
    await pulse.goOn();
  }

  #over(why: string): void {
    const away_ms = this.#doomed_ms;
    this.#stop(why);
    if (away_ms !== null) this.#world.after(away_ms, this.start);
  }

  #stop(why: string): void {
    if (this.#life === null) return;
    this.#world.trace.add(this.#who, "ended", why);
    this.#doomed_ms = null;
    this.#life.end();
    this.#life = null;
  }
}

/** Draws $sister_join_job_alarm, $job_launch_delay and $max_poll_downtime. Some values are so short that these times run out during a simulation. */
function patienceOf(random: Prng): MomPatience {
  const some = (values: readonly number[]): number | null => (random.chance(0.5) ? random.pick(values) : null);
  const [join_s, launch_s, downtime_s] = [some([1, 10]), some([1, 10]), some([1, 20, 60])];
  return {
    ...(join_s === null ? {} : { join_s }),
    ...(launch_s === null ? {} : { launch_s }),
    ...(downtime_s === null ? {} : { downtime_s }),
  };
}
