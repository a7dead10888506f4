// The connection to the server. It is made when it is needed, and again after it has ended. pbs_web has the rights of the user as whom it runs.

import { connectServer, type ServerConnection } from "#protocol/client.ts";
import type { Conf } from "#support/conf.ts";
import type { Ask } from "../api/objects.ts";

/** Time that the server has to answer. */
const ANSWER_MS_MAX = 30_000;

export type ServerLink = {
  /** Sends a request. Rejects with ServerUnreachable, or with a TimeoutError if the server does not answer. */
  readonly ask: Ask;
  close(): void;
};

export function serverLink(conf: Conf): ServerLink {
  let link: Promise<ServerConnection> | null = null;
  const connected = (): Promise<ServerConnection> => {
    link ??= connectServer(conf);
    return link;
  };
  const drop = (dropped: Promise<ServerConnection>): void => {
    if (link === dropped) link = null;
    dropped.then((connection) => connection.close()).catch(() => undefined);
  };
  return {
    async ask(request, onPart) {
      const used = connected();
      try {
        const reply = (await used).request(request, onPart === undefined ? {} : { onPart });
        return await inTime(reply);
      } catch (error) {
        drop(used);
        throw error;
      }
    },
    close() {
      if (link !== null) drop(link);
    },
  };
}

async function inTime<T>(promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new DOMException(`the server did not answer within ${ANSWER_MS_MAX / 1000} s`, "TimeoutError")),
    ANSWER_MS_MAX,
  );
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
