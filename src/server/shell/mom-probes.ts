// Which hosts of moms this server reaches, in a complex with two servers (src/store/postgres/reach.ts). It makes a connection to the port of each mom and closes it at
// once: that a connection is accepted shows that the network carries data both ways. Nothing is said over the connection.
//
// B1. Rounds follow one another at the interval of beats. A host that does not accept in time is missed in this round.
// B2. Without a server that waits nobody compares anything, and no host is tried.

import { connect, type Socket } from "node:net";
import { type MomPlace, nextPlaces, type Round } from "#store/postgres/reach.ts";
import type { ReachPort } from "#store/postgres/servers.ts";
import type { DatabaseSettings } from "#store/postgres/settings.ts";

/** A packet that was lost is sent again after a second, so that one lost packet does not make a host missed. */
const PROBE_MS_MAX = 1500;

/** What the server knows about its moms. */
export type KnownMoms = { readonly connected: readonly MomPlace[]; isKnown(host: string): boolean };

export class MomProbes implements ReachPort {
  readonly #beat_ms: number;
  readonly #most: number;
  #asked: readonly MomPlace[] = [];
  #round: Round | null = null;
  #timer: NodeJS.Timeout | null = null;
  readonly #sockets = new Set<Socket>();
  #moms: (() => KnownMoms) | null = null;
  /** hosts that neither server has reached for a long time */
  lost: ReadonlySet<string> = new Set();

  constructor({ beat_s, mom_probes }: Pick<DatabaseSettings, "beat_s" | "mom_probes">) {
    this.#beat_ms = beat_s * 1000;
    this.#most = mom_probes;
  }

  /** moms: asked while this server leads */
  serve(moms: () => KnownMoms): void {
    this.#moms = moms;
  }

  places(before: readonly MomPlace[]): readonly MomPlace[] {
    if (this.#moms === null) return before;
    const { connected, isKnown } = this.#moms();
    return nextPlaces(before, connected, { isKnown, lost: this.lost, most: this.#most });
  }

  ask(places: readonly MomPlace[]): void {
    this.#asked = places.slice(0, this.#most);
    if (this.#asked.length === 0) {
      this.#round = null;
      this.#stop();
    } else this.#timer ??= this.#after(0);
  }

  latest(): Round | null {
    return this.#round;
  }

  /** whether this server tries to reach any hosts */
  get isTrying(): boolean {
    return this.#asked.length > 0;
  }

  close(): void {
    this.ask([]);
  }

  #stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    for (const socket of this.#sockets) socket.destroy();
  }

  #after(delay_ms: number): NodeJS.Timeout {
    const timer: NodeJS.Timeout = setTimeout(() => {
      const begun_ms = performance.now();
      void this.#go().then(() => {
        if (this.#timer === timer) this.#timer = this.#after(Math.max(0, this.#beat_ms - (performance.now() - begun_ms)));
      });
    }, delay_ms).unref();
    return timer;
  }

  async #go(): Promise<void> {
    const places = this.#asked;
    const begun_ms = performance.now();
    const is_reached = await Promise.all(places.map((place) => this.#reaches(place)));
    if (!this.isTrying) return;
    const reached = places.filter((_, at) => is_reached[at] === true);
    this.#round = { begun_ms, asked: places.map(({ host }) => host), reached: reached.map(({ host }) => host) };
  }

  #reaches({ address, port }: MomPlace): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect({ host: address, port });
      this.#sockets.add(socket);
      const tell = (is_reached: boolean): void => {
        this.#sockets.delete(socket);
        resolve(is_reached);
        socket.destroy();
      };
      socket.setTimeout(Math.min(PROBE_MS_MAX, 1.5 * this.#beat_ms), () => tell(false));
      socket.once("connect", () => tell(true));
      socket.on("error", () => tell(false));
      socket.once("close", () => tell(false));
    });
  }
}
