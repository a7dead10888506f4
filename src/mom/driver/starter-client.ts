// The mom's end of the link to its starter: it connects to the starter that is running, or starts one if there is none, and connects again after the link is
// lost.
//
// A1. Messages that are sent while there is no starter are dropped. The starter reports its state at every connect, and
//     the core then repeats its requests.
// A2. Requests leave at the end of the turn in which they are made, and after its records are written (mom-driver.ts D1). Pings leave at once.

import type { Lease, MomToStarter, RunKey, StarterToMom, StartSpec } from "../job/starter-link.ts";
import type { ClockPort, Hearer, Sender, StarterPort } from "./ports.ts";

export type StarterHandlers = { readonly [T in Exclude<keyof StarterToMom, "starter-pong">]: (data: StarterToMom[T]) => void } & {
  /** called when the connection is lost; a new one is being made */
  readonly onLost: () => void;
  readonly complain: (text: string) => void;
};

type Message = { [T in keyof MomToStarter]: { readonly type: T; readonly data: MomToStarter[T] } }[keyof MomToStarter];

const AGAIN_MS = 200;

export class StarterClient {
  readonly #port: StarterPort;
  readonly #clock: ClockPort;
  readonly #handlers: StarterHandlers;
  readonly #heard: Hearer<StarterToMom>;
  #link: Sender<MomToStarter> | null = null;
  #is_closed = false;
  #starts: StartSpec[] = [];
  #signals: (RunKey & { readonly signal: number })[] = [];
  #forgets: RunKey[] = [];
  /** messages that were made from requests of this turn and have not left */
  #messages: Message[] = [];
  #is_scheduled = false;
  /** whether the starter answers pings, and when the unanswered ping was sent */
  #pongs = false;
  /** whether the starter keeps a lease */
  #leases = false;
  #pinged_ms: number | null = null;

  constructor(port: StarterPort, clock: ClockPort, handlers: StarterHandlers) {
    this.#port = port;
    this.#clock = clock;
    this.#handlers = handlers;
    this.#heard = {
      ...handlers,
      "starter-state": (data) => {
        this.#pongs = data.pongs === true;
        this.#leases = data.leases === true;
        handlers["starter-state"](data);
      },
      "starter-pong": () => {
        this.#pinged_ms = null;
      },
    };
  }

  /** Connects, and stays connected until close(). */
  connect(): void {
    if (this.#is_closed) return;
    this.#port.connect({
      heard: this.#heard,
      connected: (link) => {
        this.#link = link;
        link.send("starter-hello", {});
      },
      absent: () => this.#port.launch((fault) => this.#launched(fault)),
      foreign: (text) => {
        this.#handlers.complain(text);
        this.#again();
      },
      lost: () => this.#lost(),
    });
  }

  start(spec: StartSpec): void {
    this.#starts.push(spec);
    this.#schedule();
  }

  signal(run: RunKey, signal: number): void {
    // The starter carries out only one signal to a run for each message. So two signals to one run in one turn (TERM, CONT) become two messages.
    if (this.#signals.some((other) => other.job === run.job)) this.#gather();
    this.#signals.push({ ...run, signal });
    this.#schedule();
  }

  /** Passes the lease on, if the starter keeps one. */
  lease(lease: Lease): void {
    if (!this.#leases) return;
    this.#gather();
    this.#messages.push({ type: "starter-lease", data: lease });
    this.#schedule();
  }

  adopt(run: RunKey, pid: number): void {
    this.#gather();
    this.#messages.push({ type: "starter-adopt", data: { runs: [{ ...run, pid }] } });
    this.#schedule();
  }

  forget(run: RunKey): void {
    this.#forgets.push(run);
    this.#schedule();
  }

  /** Sends a ping if none is unanswered. Returns the time in ms for which the present ping is unanswered. */
  silent_ms(): number {
    if (!this.#pongs || this.#link === null) return 0;
    if (this.#pinged_ms !== null) return this.#clock.steady_ms() - this.#pinged_ms;
    this.#pinged_ms = this.#clock.steady_ms();
    this.#link.send("starter-ping", {});
    return 0;
  }

  /** Tells the starter that it may end if it has no jobs. */
  quit(): void {
    this.#flush();
    this.#link?.send("starter-quit", {});
  }

  close(): void {
    this.#flush();
    this.#is_closed = true;
    this.#link?.close();
  }

  #again(): void {
    if (!this.#is_closed) this.#clock.after(AGAIN_MS, () => this.connect());
  }

  #launched(fault: string | null): void {
    if (fault === null) return this.connect();
    this.#handlers.complain(`starter: ${fault}`);
    this.#again();
  }

  #lost(): void {
    this.#link = null;
    this.#pongs = false;
    this.#leases = false;
    this.#pinged_ms = null;
    if (this.#is_closed) return;
    this.#handlers.onLost();
    this.#again();
  }

  #schedule(): void {
    if (!this.#is_scheduled) this.#clock.atEnd(() => this.#flush());
    this.#is_scheduled = true;
  }

  /** Turns the requests gathered so far into messages. */
  #gather(): void {
    const [starts, signals, forgets] = [this.#starts, this.#signals, this.#forgets];
    this.#starts = [];
    this.#signals = [];
    this.#forgets = [];
    if (starts.length > 0) this.#messages.push({ type: "starter-start", data: { runs: starts } });
    if (signals.length > 0) this.#messages.push({ type: "starter-signal", data: { runs: signals } });
    if (forgets.length > 0) this.#messages.push({ type: "starter-forget", data: { runs: forgets } });
  }

  #flush(): void {
    this.#is_scheduled = false;
    this.#gather();
    for (const { type, data } of this.#messages.splice(0)) this.#link?.send(type, data);
  }
}
