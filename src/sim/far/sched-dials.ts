// The server's attempts to reach schedulers on other hosts, as src/server/shell/remote-scheds.ts makes them: one after
// another until the scheduler has said hello or is no longer wanted.

/** A connection to a scheduler. introduced: the scheduler has said hello. */
export type FarLink = { readonly introduced: boolean; destroy(): void };

export type SchedDialsOptions = {
  /** Returns whether no connection with the host can be made now. */
  isCutOff(host: string): boolean;
  /** Does work after a delay, in the server's process. */
  after(delay_ms: number, work: () => void): void;
  /** Returns the host of a scheduler; null: it is the server's host, or there is no such scheduler. */
  hostOf(sched: string): string | null;
  /** Returns whether the scheduler has no connection, as far as the server knows. */
  isDown(sched: string): boolean;
  /** Makes a connection; null: nobody listens. gone: called when it has ended */
  connect(sched: string, host: string, gone: () => void): FarLink | null;
  unreached(sched: string, why: string): void;
};

const RETRY_MS = 1000;
/** Time within which a scheduler must say hello, and within which a host must answer. */
const DIAL_MS = 10_000;
/** Time for the last cycle of a scheduler that was told to end. */
const LEAVE_MS = 10_000;
const LOOK_MS = 5000;

export class SchedDials {
  readonly #options: SchedDialsOptions;
  readonly #dials = new Map<string, Dial>();

  constructor(options: SchedDialsOptions) {
    this.#options = options;
  }

  /** Dials a scheduler, unless it is already being dialled or is connected. Returns false if it is not on another host. */
  start(sched: string): boolean {
    const host = this.#options.hostOf(sched);
    if (host === null) return false;
    const present = this.#dials.get(sched);
    if (present?.host === host && (present.link === null || !this.#options.isDown(sched))) return true;
    present?.end(0);
    const dial = new Dial(sched, host, this.#options);
    this.#dials.set(sched, dial);
    dial.attempt();
    return true;
  }

  stop(sched: string): void {
    this.#dials.get(sched)?.end(LEAVE_MS);
    this.#dials.delete(sched);
  }

  /** Finds out whether the host of a scheduler answers. Returns false if it is not on another host. */
  look(sched: string, done: (answers: boolean) => void): boolean {
    const { isCutOff, after, hostOf } = this.#options;
    const host = hostOf(sched);
    if (host === null) return false;
    const answers = !isCutOff(host);
    after(answers ? 0 : LOOK_MS, () => done(answers));
    return true;
  }
}

class Dial {
  readonly host: string;
  readonly #sched: string;
  readonly #options: SchedDialsOptions;
  #ended = false;
  link: FarLink | null = null;

  constructor(sched: string, host: string, options: SchedDialsOptions) {
    this.#sched = sched;
    this.host = host;
    this.#options = options;
  }

  attempt(): void {
    const { isCutOff, after, connect } = this.#options;
    if (this.#ended) return;
    if (isCutOff(this.host)) return after(DIAL_MS, () => this.#inVain(`${this.host}: it does not answer`));
    const link = connect(this.#sched, this.host, () => this.#gone(link));
    if (link === null) return this.#inVain(`no scheduler ${this.#sched} listens on ${this.host}`);
    this.link = link;
    after(DIAL_MS, () => {
      if (link === this.link && !link.introduced) link.destroy();
    });
  }

  end(after_ms: number): void {
    this.#ended = true;
    const { link } = this;
    if (link !== null) this.#options.after(after_ms, () => link.destroy());
  }

  #gone(link: FarLink | null): void {
    if (link !== this.link || link === null) return;
    this.link = null;
    if (link.introduced) this.#again();
    else this.#inVain(`${this.host}: it does not prove itself in time`);
  }

  #inVain(why: string): void {
    if (this.#ended) return;
    this.#options.unreached(this.#sched, why);
    this.#again();
  }

  #again(): void {
    this.#options.after(RETRY_MS, () => this.attempt());
  }
}
