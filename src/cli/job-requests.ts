// Sends one request for each job of a list of operands, for qdel, qalter, qhold and similar commands. Many requests are sent
// before the first is answered. The results are printed in the order of the operands.

import { ServerUnreachable } from "#protocol/client.ts";
import type { Request } from "#protocol/messages.ts";
import type { ErrorReply } from "#protocol/wire/reply.ts";
import type { CommandIo } from "./command.ts";
import { type Complex, cannotConnect, foreignServer, type Link } from "./complex.ts";
import { jobRefusal, refusalStatus } from "./errors.ts";
import { completeJobId } from "./job-ids.ts";

/** Largest number of requests without an answer. */
const IN_FLIGHT_MAX = 256;

export type JobRequests = {
  readonly command: string;
  readonly operands: readonly string[];
  readonly request: (id: string, index: number) => Request;
  /** returns the message about a refusal (default: jobRefusal) */
  readonly refusal?: (reply: ErrorReply, id: string) => string;
  /** exit status after a refusal (default: the code modulo 256) */
  readonly refusalStatus?: number;
  /** returns the message to print in place of `cannot connect` */
  readonly unreachable?: (error: ServerUnreachable) => string;
};

/** Sends the requests. Resolves with the exit status: 0, or the exit status of the last operand that failed. */
export async function requestForJobs(io: CommandIo, complex: Complex, work: JobRequests): Promise<number> {
  let status = 0;
  let link: Link | null = null;
  /** results that are not printed yet, in order; each function waits for its answer and prints it */
  const waiting: (() => Promise<void>)[] = [];
  const tellOldest = async (): Promise<void> => waiting.shift()?.();
  const tell = (text: string, exit: number) => async (): Promise<void> => {
    io.err(text);
    status = exit;
  };
  const unreachable = (error: ServerUnreachable): void => {
    if (work.unreachable !== undefined) {
      io.err(work.unreachable(error));
      status = error.pbse % 256;
    } else status = cannotConnect(io, work.command, complex, error);
  };

  try {
    for (const [index, operand] of work.operands.entries()) {
      const id = await completeJobId(complex, operand);
      if (id.kind === "malformed") {
        waiting.push(tell(`${work.command}: illegally formed job identifier: ${operand}\n`, 1));
        continue;
      }
      if (id.kind === "elsewhere") {
        const error = await foreignServer(complex, id.server);
        if (error !== null) waiting.push(async () => unreachable(error));
        continue;
      }
      link ??= await complex.connect();
      waiting.push(answerOf(link, id.id, index));
      if (waiting.length >= IN_FLIGHT_MAX) await tellOldest();
    }
    while (waiting.length > 0) await tellOldest();
  } catch (error) {
    if (!(error instanceof ServerUnreachable)) throw error;
    unreachable(error);
  } finally {
    link?.close();
  }
  return status;

  function answerOf(open: Link, id: string, index: number): () => Promise<void> {
    const answer = open.request(work.request(id, index));
    answer.catch(() => undefined);
    return async () => {
      const reply = await answer;
      if (reply.ok) return;
      io.err(work.refusal === undefined ? jobRefusal(work.command, reply, id) : work.refusal(reply, id));
      status = work.refusalStatus ?? refusalStatus(reply.code);
    };
  }
}
