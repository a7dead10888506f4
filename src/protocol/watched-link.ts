// A watched connection of a command. It distinguishes a slow server from a server that does not answer, for example a stopped
// process or a hanging disk. In both cases the server has accepted the connection and sends nothing, so the watch sends it a
// simple request (a probe) on a second connection.
//
// P1. A server that sends anything, on either connection, counts as answering.
// P2. A request that only reads is given up after a time without an answer. If a request changes something, the client
//     continues to wait: the server will carry the request out when it continues, and the user must learn the result.
// P3. There is at most one second connection, and it stays open until the probe is answered: a stopped server accepts only a
//     few connections.
// P4. In a complex with two servers, the second connection goes to the server that leads. If that is another one than the server of the command's own connection, this
//     connection ends: the server that was replaced will never answer.

import { connectPlace, connectServer, type Flow, hostOf, type RequestOptions, type ServerConnection } from "./client.ts";
import type { Request } from "./messages.ts";
import { type PlaceConf, type ServerPlace, serverPlace } from "./server-place.ts";
import type { Reply } from "./wire/reply.ts";

export type Patience = {
  /** time without an answer after which the caller is notified; 0: never */
  readonly notice_s: number;
  /** time without an answer after which requests that only read are given up; 0: never */
  readonly limit_s: number;
};

/** Defaults if neither pbs.conf nor the environment sets PARTITA_SERVER_NOTICE and PARTITA_SERVER_TIMEOUT. */
const PATIENCE: Patience = { notice_s: 10, limit_s: 300 };

export type LinkWatch = {
  readonly patience: Patience;
  /**
   * Sends the server a simple request. Resolves when the server has sent anything, or can never do so. The signal ends the attempt. The value: the host of the
   * server, in a complex with two servers
   */
  probe(ended: AbortSignal): Promise<string | undefined>;
  /** called once, when the server does not answer and the client continues to wait */
  silent(): void;
};

/** Longest interval between probes. It is reached while a command waits long, for example for a job's end. */
const CALM_S_MAX = 300;

/** The requests that only read (P2). */
const QUESTIONS: ReadonlySet<Request["kind"]> = new Set([
  "status",
  "select-jobs",
  "locate-job",
  "explain-job",
  "view-sched",
  "view-unserved",
  "view-hosts",
  "export-hook",
]);

/** Reads the two times in seconds from pbs.conf or the environment. A value that is not a number counts as unset. */
export function patienceOf(value: (key: string) => string | undefined): Patience {
  const seconds = (key: string, otherwise: number): number => {
    const text = value(key) ?? "";
    return /^\d+$/.test(text) ? Number(text) : otherwise;
  };
  return { notice_s: seconds("PARTITA_SERVER_NOTICE", PATIENCE.notice_s), limit_s: seconds("PARTITA_SERVER_TIMEOUT", PATIENCE.limit_s) };
}

/** Connects to the server of a complex and watches the connection. silent: see LinkWatch. Rejects with ServerUnreachable. */
export async function connectWatched(
  conf: PlaceConf,
  watch: Pick<LinkWatch, "patience" | "silent">,
  flow?: Flow,
): Promise<ServerConnection> {
  const place = serverPlace(conf);
  return watchedLink(await connectServer(conf, { flow }), { ...watch, probe: (ended) => probePlace(place, ended) });
}

/** Returns the message of a command whose server does not answer. */
export const silentServer = (command: string, server: string): string => `${command}: server ${server} does not answer, still waiting\n`;

/** Returns the connection with the watch around it, or the connection itself if both times are 0. */
export function watchedLink(connection: ServerConnection, watch: LinkWatch): ServerConnection {
  const { notice_s, limit_s } = watch.patience;
  return notice_s === 0 && limit_s === 0 ? connection : new WatchedConnection(connection, watch);
}

class WatchedConnection implements ServerConnection {
  readonly #connection: ServerConnection;
  readonly #watch: LinkWatch;
  readonly #first_s: number;
  readonly #open = new Set<{ readonly kind: Request["kind"] }>();
  #timer: NodeJS.Timeout | undefined;
  /** aborts the probe and ends the second connection; null: no probe is under way */
  #probing: AbortController | null = null;
  #calm_s: number;
  /** value of performance.now() when the server last sent something, or when the first request after that was sent */
  #heard_ms = 0;
  #told = false;

  constructor(connection: ServerConnection, watch: LinkWatch) {
    const { notice_s, limit_s } = watch.patience;
    this.#connection = connection;
    this.#watch = watch;
    this.#first_s = (notice_s === 0 ? limit_s : notice_s) / 2;
    this.#calm_s = this.#first_s;
  }

  get open_requests(): number {
    return this.#connection.open_requests;
  }

  async request(request: Request, options: RequestOptions = {}): Promise<Reply> {
    const entry = { kind: request.kind };
    this.#open.add(entry);
    if (this.#open.size === 1) this.#heard(this.#first_s);
    const { onPart } = options;
    try {
      return await this.#connection.request(request, {
        onPart: (items) => {
          this.#heard(this.#first_s);
          onPart?.(items);
        },
      });
    } finally {
      this.#open.delete(entry);
      if (this.#open.size === 0) this.#stop();
      else this.#heard(this.#first_s);
    }
  }

  close(): void {
    this.#stop();
    this.#connection.close();
  }

  #after(seconds: number, act: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(act, Math.max(0, seconds * 1000));
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#probing?.abort();
    this.#probing = null;
  }

  /** Called when the server has sent something (P1). */
  #heard(next_s: number): void {
    this.#stop();
    this.#heard_ms = performance.now();
    this.#calm_s = next_s;
    if (this.#open.size > 0) this.#after(next_s, () => this.#ask());
  }

  #ask(): void {
    const asked = new AbortController();
    this.#probing = asked;
    const answered = (): void => {
      if (this.#probing === asked) this.#heard(Math.min(2 * this.#calm_s, CALM_S_MAX));
    };
    this.#watch.probe(asked.signal).then((host) => {
      const own = this.#connection.server;
      if (host !== undefined && own !== undefined && host !== own && this.#probing === asked) this.#connection.close();
      answered();
    }, answered);
    // Nothing is known about the time since the last probe, so the silence counts from the beginning of this probe.
    this.#heard_ms = Math.max(this.#heard_ms, performance.now() - this.#first_s * 1000);
    this.#after(this.#first_s, () => this.#wait());
  }

  #wait(): void {
    const { notice_s, limit_s } = this.#watch.patience;
    const silent_s = (performance.now() - this.#heard_ms) / 1000;
    if (!this.#told && notice_s > 0) {
      this.#told = true;
      this.#watch.silent();
    }
    const isGivenUp = limit_s > 0 && [...this.#open].every(({ kind }) => QUESTIONS.has(kind));
    if (!isGivenUp) return this.#after(this.#first_s, () => this.#wait());
    if (silent_s < limit_s) return this.#after(Math.min(this.#first_s, limit_s - silent_s), () => this.#wait());
    this.#connection.close();
  }
}

/**
 * Probes a server. A refused or ended connection does not count as silence: the command's own connection shows the
 * reason.
 */
async function probePlace(place: ServerPlace, ended: AbortSignal): Promise<string | undefined> {
  const options = { busy_ms_max: Number.POSITIVE_INFINITY, flow: { ended, room: () => null } };
  const connection = await connectPlace(place, options);
  try {
    const host = await hostOf(connection);
    return "connect" in place ? undefined : host;
  } finally {
    connection.close();
  }
}
