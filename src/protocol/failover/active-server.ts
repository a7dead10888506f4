// How a command finds the active one of two servers. The standby listens on no port, so it refuses at once; a host that is gone or a process that was stopped does
// not answer at all. Therefore the second server is tried while the first one has not answered yet, and the command goes to the server that accepts it first.
//
// A1. A command waits for a take-over for a limited time. Meanwhile nobody answers, and nothing of the command has been sent.
// A2. A refusal that another attempt cannot change (a certificate that is not accepted, for example) ends the search.

import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "#support/caught.ts";
import type { ServerAt } from "#support/conf.ts";

/** Time after which the next server is tried, if the one before has not answered by then. */
const NEXT_MS = 300;
/** Pause before a server is tried again. */
const ROUND_MS = 400;
/** How long a command searches (A1), unless pbs.conf or the environment sets PARTITA_FAILOVER_WAIT (seconds). */
const WAIT_S_DEFAULT = 20;

export const failoverWait = (text: string | undefined): number => (/^\d{1,5}$/.test(text ?? "") ? Number(text) : WAIT_S_DEFAULT) * 1000;

/** Connects to one server. ended: aborted when the connection is no longer wanted. */
export type ConnectTo = (at: ServerAt, ended: AbortSignal) => Promise<Socket>;

/** Errors that mean that nobody has answered, so that another attempt may succeed (A2). */
const NO_ANSWER: ReadonlySet<string> = new Set(["ECONNREFUSED", "ECONNRESET", "EHOSTUNREACH", "ENETUNREACH", "ETIME", "ETIMEDOUT"]);

/** Whether nobody has answered. The code is in the error or in one of its causes. */
export function isNoAnswer(error: unknown): boolean {
  for (let each = error, depth = 0; each instanceof Error && depth < CAUSES_MAX; each = each.cause, depth++)
    if (NO_ANSWER.has(codeOf(each) ?? "")) return true;
  return false;
}
const CAUSES_MAX = 5;

/** Connects to the active server. wait_ms: see A1. Rejects with a lasting refusal (A2), or with the error of the first server. */
export async function connectActive(servers: readonly ServerAt[], wait_ms: number, connect: ConnectTo): Promise<Socket> {
  const ended = new AbortController();
  const until_ms = performance.now() + wait_ms;
  const search = async (at: ServerAt, index: number): Promise<Socket> => {
    for (let pause_ms = index * NEXT_MS; ; pause_ms = ROUND_MS) {
      await sleep(pause_ms, undefined, { signal: ended.signal });
      try {
        const socket = await connect(at, ended.signal);
        if (!ended.signal.aborted) return socket;
        socket.destroy();
        throw new Error("another server was found");
      } catch (error) {
        if (!isNoAnswer(error)) throw new Lasting(error);
        if (performance.now() + ROUND_MS > until_ms) throw error;
      }
    }
  };
  const searches = servers.map(search);
  try {
    return await firstOf(searches);
  } finally {
    ended.abort();
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
function firstOf(searches: readonly Promise<Socket>[]): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const errors: unknown[] = [];
    let left = searches.length;
    for (const [index, each] of searches.entries())
      each.then(resolve, (error: unknown) => {
        if (error instanceof Lasting) return reject(error.error);
        errors[index] = error;
        if (--left === 0) reject(errors[0]);
      });
  });
}
