// How a command finds the active one of two servers. The standby listens on no port, so it refuses at once; a host that is gone does not answer at all; and the kernel
// accepts connections for a process that was stopped, or that cannot reach its database. Therefore the command asks a question over each connection, and goes to the server
// that answers it first: only the server that leads answers questions.
//
// A1. A command waits for a take-over for a limited time. Meanwhile nobody answers, and nothing of the command has been sent.
// A2. A refusal that another attempt cannot change (a certificate that is not accepted, for example) ends the search.
// A3. A server on the same host is asked first. The others are tried when it refuses, or has not answered for a time. It may only be busy, so its answer still counts.
// A4. If the time is over and no server has answered, the command goes to one that has accepted its connection: that server may be busy, and answer later.

import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "#support/caught.ts";

/** Time after which the next server is tried, if the one before has not answered by then. */
const NEXT_MS = 300;
/** Pause before a server is tried again. */
const ROUND_MS = 400;
/** How long a command searches (A1), unless pbs.conf or the environment sets PARTITA_FAILOVER_WAIT (seconds). */
const WAIT_S_DEFAULT = 20;
/** How long a server on the same host may take for its answer (A3), unless PARTITA_FAILOVER_ANSWER is set (seconds). */
const ANSWER_S_DEFAULT = 2;

const secondsIn = (text: string | undefined, otherwise: number): number => (/^\d{1,5}$/.test(text ?? "") ? Number(text) : otherwise);
export const failoverWait = (text: string | undefined): number => secondsIn(text, WAIT_S_DEFAULT) * 1000;
export const failoverAnswer = (text: string | undefined): number => secondsIn(text, ANSWER_S_DEFAULT) * 1000;

/** A connection to one server. answered: resolves when the server has answered a question over it; rejects if it will not, with an error as that of an attempt to connect */
export type Opened<T> = { readonly connection: T; readonly answered: Promise<unknown>; close(): void };

/** Connects to one server, and asks it. ended: aborted when the connection is no longer wanted. */
export type OpenTo<T> = (ended: AbortSignal) => Promise<Opened<T>>;

/** near: the server on the same host; null: none. wait_ms, answer_ms: see A1 and A3 */
export type Search<T> = {
  readonly near: OpenTo<T> | null;
  readonly servers: readonly OpenTo<T>[];
  readonly wait_ms: number;
  readonly answer_ms: number;
};

/** Errors that mean that nobody has answered, so that another attempt may succeed (A2). */
const NO_ANSWER: ReadonlySet<string> = new Set(["ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETUNREACH", "ETIME", "ETIMEDOUT"]);

/** Whether nobody has answered. The code is in the error or in one of its causes. */
function isNoAnswer(error: unknown): boolean {
  for (let each = error, depth = 0; each instanceof Error && depth < CAUSES_MAX; each = each.cause, depth++)
    if (NO_ANSWER.has(codeOf(each) ?? "")) return true;
  return false;
}
const CAUSES_MAX = 5;

/** Connects to the active server. Rejects with a lasting refusal (A2), or with the error of the first server. */
export async function connectActive<T>({ near, servers, wait_ms, answer_ms }: Search<T>): Promise<T> {
  const ended = new AbortController();
  const until_ms = performance.now() + wait_ms;
  /** connections over which the question has no answer yet */
  const silent = new Set<Opened<T>>();
  let nearRefuses = (): void => undefined;
  const near_refused = new Promise<void>((resolve) => {
    nearRefuses = resolve;
  });

  const search = async (open: OpenTo<T>, begin: Promise<unknown>, refused: () => void): Promise<T> => {
    await begin;
    for (;;) {
      let opened: Opened<T> | null = null;
      try {
        opened = await open(ended.signal);
        if (ended.signal.aborted) throw new Error("another server was found");
        silent.add(opened);
        await opened.answered;
        silent.delete(opened);
        return opened.connection;
      } catch (error) {
        if (opened !== null) silent.delete(opened);
        opened?.close();
        refused();
        if (!isNoAnswer(error)) throw new Lasting(error);
        if (performance.now() + ROUND_MS > until_ms) throw error;
      }
      await sleep(ROUND_MS, undefined, { signal: ended.signal });
    }
  };
  const pause = (ms: number): Promise<unknown> => sleep(ms, undefined, { signal: ended.signal });
  const others = near === null ? Promise.resolve() : Promise.race([near_refused, pause(answer_ms)]);
  const searches = [
    ...(near === null ? [] : [search(near, Promise.resolve(), nearRefuses)]),
    ...servers.map((open, at) =>
      search(
        open,
        others.then(() => pause(at * NEXT_MS)),
        () => undefined,
      ),
    ),
  ];
  // If the time is over, any connection is better than none (A4).
  const last = pause(wait_ms).then(async () => {
    const [first] = silent;
    if (first === undefined) return await new Promise<never>(() => undefined);
    silent.delete(first);
    return first.connection;
  });
  try {
    return await firstOf(searches, last);
  } finally {
    ended.abort();
    for (const opened of silent) opened.close();
  }
}

/** A refusal that ends the search (A2). */
class Lasting {
  readonly error: unknown;
  constructor(error: unknown) {
    this.error = error;
  }
}

/** Resolves with the first connection that is made. Rejects at the first lasting refusal, or when all searches have failed. */
function firstOf<T>(searches: readonly Promise<T>[], last: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const errors: unknown[] = [];
    let left = searches.length;
    last.then(resolve, () => undefined);
    for (const [index, each] of searches.entries())
      each.then(resolve, (error: unknown) => {
        if (error instanceof Lasting) return reject(error.error);
        errors[index] = error;
        if (--left === 0) reject(errors[0]);
      });
  });
}
