// The controller: takes the server's picture, plans, and lets each backend's loop carry out its part (src/protocol/runner-link.ts).

import type { RunnersToServer, ServerToRunners } from "#protocol/runner-link.ts";
import type { FrameOf } from "#protocol/schema-link.ts";
import { BackendLoop, type LoopTools } from "./backend-loop.ts";
import { planOf } from "./plan.ts";

type Picture = ServerToRunners["runners-work"];

export type ControllerOptions = Pick<
  LoopTools,
  "complex" | "user" | "directory" | "argv" | "env" | "ownerOf" | "open" | "note" | "send"
> & {
  /** called when the server does not need this process any more, and the backends have no runner left: the process must end */
  finished(): void;
  /** the longest time that this process waits, after the server has told it to end, for backends that fail or still show runners */
  readonly leave_ms_max?: number;
};

/** ControllerOptions.leave_ms_max. What is left then is found and cancelled by the next controller. */
const LEAVE_MS_MAX = 120_000;
/** How long the server may take to record runners. */
const RECORD_MS_MAX = 60_000;

export class Controller {
  readonly #options: ControllerOptions;
  readonly #loops = new Map<string, BackendLoop>();
  readonly #records = new Map<number, (serial: number | null) => void>();
  #next_token = 1;
  #picture: Picture | null = null;
  #is_due = false;
  /** set while the server has told this process to end: ends the wait for backends */
  #leaving: NodeJS.Timeout | null = null;

  constructor(options: ControllerOptions) {
    this.#options = options;
  }

  /** Called when the link to the server is open. */
  connected(): void {
    for (const loop of this.#loops.values()) loop.tellAgain();
    this.#options.send("runners-hello", { pid: process.pid, pongs: true });
  }

  /** Called when the link is lost: nothing is asked for until the next picture. */
  disconnected(): void {
    this.#picture = null;
    this.#stay();
    for (const [token, done] of [...this.#records]) {
      this.#records.delete(token);
      done(null);
    }
  }

  /** Handles a frame of the server. Returns false if the process must end. */
  hear(frame: FrameOf<"server-to-runners">): boolean {
    switch (frame.type) {
      case "runners-refused":
        this.#options.note(`the server refuses this process: ${frame.data.text}`);
        return false;
      case "runners-quit":
        this.#leaving ??= setTimeout(() => this.#options.finished(), this.#options.leave_ms_max ?? LEAVE_MS_MAX);
        this.#soon();
        return true;
      case "runners-ping":
        this.#options.send("runners-pong", frame.data);
        return true;
      case "runners-asked": {
        const { token, serial } = frame.data;
        this.#records.get(token)?.(serial);
        this.#records.delete(token);
        return true;
      }
      case "runners-work":
        this.#picture = frame.data;
        if (frame.data.runners.length > 0 || frame.data.backends.some(({ attrs }) => attrs["enabled"] === true)) this.#stay();
        this.#soon();
        return true;
      default: {
        const unreachable: never = frame;
        return unreachable;
      }
    }
  }

  /** The server needs this process again, or is away. */
  #stay(): void {
    if (this.#leaving !== null) clearTimeout(this.#leaving);
    this.#leaving = null;
  }

  /** Ends this process if it was told to end, and no backend has a runner. */
  async #leaveIfEmpty(): Promise<void> {
    const loops = [...this.#loops.values()];
    await Promise.all(loops.map((loop) => loop.idle()));
    if (this.#leaving !== null && loops.every((loop) => loop.isEmpty)) this.#options.finished();
  }

  async close(): Promise<void> {
    this.#stay();
    await Promise.all([...this.#loops.values()].map((loop) => loop.close()));
  }

  #soon(): void {
    if (this.#is_due) return;
    this.#is_due = true;
    setImmediate(() => {
      this.#is_due = false;
      this.#look();
    });
  }

  #look(): void {
    const picture = this.#picture;
    if (picture === null) return;
    const wanted = new Set(picture.backends.map(({ name }) => name));
    for (const [name, loop] of this.#loops) {
      if (wanted.has(name)) continue;
      this.#loops.delete(name);
      void loop.close();
    }
    for (const work of picture.backends) {
      const runners = picture.runners.filter(({ backend }) => backend === work.name);
      let loop = this.#loops.get(work.name);
      if (loop === undefined) {
        if (work.attrs["enabled"] !== true && runners.length === 0) continue;
        this.#loops.set(work.name, (loop = new BackendLoop(work, this.#toolsOf())));
      }
      loop.update(work, runners, () => this.#plan());
    }
    if (this.#leaving !== null) void this.#leaveIfEmpty();
  }

  /** Makes the plan from the newest picture. */
  #plan(): ReturnType<typeof planOf> {
    const picture = this.#picture;
    if (picture === null) return { asks: [], cancels: [], drains: [] };
    const now_ms = Date.now();
    const backends = picture.backends.flatMap(({ name }) => this.#loops.get(name)?.planned(now_ms) ?? []);
    return planOf({ backends, demands: picture.demands, runners: picture.runners });
  }

  #toolsOf(): LoopTools {
    return {
      ...this.#options,
      record: (ask) => this.#record(ask),
      changed: () => this.#soon(),
      refused: (partition, bucket, why) => this.#refused(partition, bucket, why),
    };
  }

  #record(ask: Omit<RunnersToServer["runners-ask"], "token">): Promise<number | null> {
    if (this.#picture === null) return Promise.resolve(null);
    const token = this.#next_token++;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#records.delete(token);
        resolve(null);
      }, RECORD_MS_MAX);
      this.#records.set(token, (serial) => {
        clearTimeout(timer);
        resolve(serial);
      });
      this.#options.send("runners-ask", { token, ...ask });
    });
  }

  /** Tells the server that a bucket is impossible, if no other backend of the partition may still take it. */
  #refused(partition: string, bucket: string, why: string): void {
    const now_ms = Date.now();
    const backends = [...this.#loops.values()]
      .map((loop) => loop.planned(now_ms))
      .filter((each) => each.enabled && each.partition === partition);
    if (backends.every(({ refused }) => refused.has(bucket))) this.#options.send("runners-impossible", { bucket, why });
  }
}
