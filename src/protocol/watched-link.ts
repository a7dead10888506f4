// A command's connection that tells a server which takes its time from one that does not answer: a process that was stopped, a disk that hangs. The server has
// accepted the connection and says nothing in both cases, so it is asked something simple on a second connection.
//
// P1. A server that says anything at all, on either connection, answers.
// P2. A question is given up after a time without an answer. A request that changes something is waited for: the server will carry it out when it goes on, and
//     whoever asked must hear of it.
// P3. There is one second connection at a time, and it is kept until it is answered: a server that is stopped takes only so many connections.

import { connectServer, connectSocket, type Flow, type RequestOptions, type ServerConnection } from "./client.ts";
import type { Request } from "./messages.ts";
import type { Reply } from "./wire/reply.ts";
import { serverSocketPath } from "./wire/socket-path.ts";

export type Patience = {
  /** after so long without an answer the caller is told; 0: never */
  readonly notice_s: number;
  /** after so long without an answer questions are given up; 0: never */
  readonly limit_s: number;
};

/** Where neither pbs.conf nor the environment has PARTITA_SERVER_NOTICE and PARTITA_SERVER_TIMEOUT. */
const PATIENCE: Patience = { notice_s: 10, limit_s: 300 };

export type LinkWatch = {
  readonly patience: Patience;
  /** asks the server something simple; resolves when it has said anything, or will never; ends with the signal */
  probe(ended: AbortSignal): Promise<void>;
  /** called once: the server does not answer, and is waited for */
  silent(): void;
};

/** A long wait for a job's end is not asked about more often than this. */
const CALM_S_MAX = 300;

/** P2 */
const QUESTIONS: ReadonlySet<Request["kind"]> = new Set([
  "status",
  "select-jobs",
  "locate-job",
  "explain-job",
  "view-sched",
  "view-unserved",
  "export-hook",
]);

/** Seconds as pbs.conf or the environment has them; what is no number counts as not set. */
export function patienceOf(value: (key: string) => string | undefined): Patience {
  const seconds = (key: string, otherwise: number): number => {
    const text = value(key) ?? "";
    return /^\d+$/.test(text) ? Number(text) : otherwise;
  };
  return { notice_s: seconds("PARTITA_SERVER_NOTICE", PATIENCE.notice_s), limit_s: seconds("PARTITA_SERVER_TIMEOUT", PATIENCE.limit_s) };
}

/** Connects to the server of a complex, and watches. silent: as of LinkWatch. Rejects with ServerUnreachable. */
export async function connectWatched(
  conf: { readonly home: string },
  watch: Pick<LinkWatch, "patience" | "silent">,
  flow?: Flow,
): Promise<ServerConnection> {
  const path = serverSocketPath(conf.home);
  return watchedLink(await connectServer(conf, { flow }), { ...watch, probe: (ended) => probeSocket(path, ended) });
}

/** What a command says of a server that does not answer. */
export const silentServer = (command: string, server: string): string => `${command}: server ${server} does not answer, still waiting\n`;

/** The same connection, watched. */
export function watchedLink(connection: ServerConnection, watch: LinkWatch): ServerConnection {
  const { notice_s, limit_s } = watch.patience;
  if (notice_s === 0 && limit_s === 0) return connection;
  const first_s = (notice_s === 0 ? limit_s : notice_s) / 2;
  const open = new Set<{ readonly kind: Request["kind"] }>();
  let timer: NodeJS.Timeout | undefined;
  /** ends the second connection */
  let probing: AbortController | null = null;
  let calm_s = first_s;
  /** performance.now() of the last word of the server, or of the first request since then */
  let heard_ms = 0;
  let told = false;

  const after = (seconds: number, act: () => void): void => {
    clearTimeout(timer);
    timer = setTimeout(act, Math.max(0, seconds * 1000));
  };
  const stop = (): void => {
    clearTimeout(timer);
    probing?.abort();
    probing = null;
  };
  /** P1 */
  const heard = (next_s: number): void => {
    stop();
    heard_ms = performance.now();
    calm_s = next_s;
    if (open.size > 0) after(calm_s, ask);
  };
  const ask = (): void => {
    const asked = new AbortController();
    probing = asked;
    const answered = (): void => {
      if (probing === asked) heard(Math.min(2 * calm_s, CALM_S_MAX));
    };
    watch.probe(asked.signal).then(answered, answered);
    // Of a long calm nothing is known: the silence begins with the question.
    heard_ms = Math.max(heard_ms, performance.now() - first_s * 1000);
    after(first_s, wait);
  };
  const wait = (): void => {
    const silent_s = (performance.now() - heard_ms) / 1000;
    if (!told && notice_s > 0) {
      told = true;
      watch.silent();
    }
    const isGivenUp = limit_s > 0 && [...open].every(({ kind }) => QUESTIONS.has(kind));
    if (!isGivenUp) return after(first_s, wait);
    if (silent_s < limit_s) return after(Math.min(first_s, limit_s - silent_s), wait);
    connection.close();
  };

  return {
    async request(request: Request, options: RequestOptions = {}): Promise<Reply> {
      const entry = { kind: request.kind };
      open.add(entry);
      if (open.size === 1) heard(first_s);
      const { onPart } = options;
      try {
        return await connection.request(request, {
          onPart(items) {
            heard(first_s);
            onPart?.(items);
          },
        });
      } finally {
        open.delete(entry);
        if (open.size === 0) stop();
        else heard(first_s);
      }
    },
    get open_requests() {
      return connection.open_requests;
    },
    close() {
      stop();
      connection.close();
    },
  };
}

/** The probe of a server's socket. A connection that is refused or ends is no silence: the command's own one tells the rest. */
async function probeSocket(path: string, ended: AbortSignal): Promise<void> {
  const options = { busy_ms_max: Number.POSITIVE_INFINITY, flow: { ended, room: () => null } };
  const connection = await connectSocket(path, options);
  try {
    await connection.request({ kind: "status", object: "server", ids: [], attrs: ["server_state"] });
  } finally {
    connection.close();
  }
}
