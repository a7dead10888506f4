// Connections to servers that a resident keeps from one command to the next. To connect anew takes half of the time of a
// short command.
//
// K1. A connection serves one command at a time. It is kept only if all requests on it have been answered. The connection of
//     a cancelled command is closed.
// K2. A connection is used again only if nothing has arrived on it (a server that ended has closed it, even if Node.js has
//     not noticed yet) and the same server is still at its place. In a complex with two servers, the server must answer a question first.
// K3. Nothing is ever sent twice. If a connection breaks, the command that uses it gets an error.

import { connectPlace, type Flow, type KeptConnection, type ServerConnection, ServerUnreachable, stillAnswers } from "#protocol/client.ts";
import { PBSE_SYSTEM } from "#protocol/proof/unreachable.ts";
import type { ServerPlace } from "#protocol/server-place.ts";
import { isQuiet } from "#protocol/wire/peer-credentials.ts";

/** largest number of idle connections to one server */
const KEPT_MAX = 8;

export type ServerLinks = {
  /** Connects to the server at this place, as connectPlace does, or uses a kept connection. */
  connect(place: ServerPlace, flow: Flow): Promise<ServerConnection>;
};

type Kept = {
  readonly connection: KeptConnection /** of the place, when the connection was made */;
  readonly state: string;
  readonly timer: NodeJS.Timeout;
};

/** Makes the links of a resident. There is no connection yet. */
export function serverLinks(): ServerLinks {
  const idle = new Map<string, Kept[]>();

  const drop = (key: string, { connection, timer }: Kept): void => {
    clearTimeout(timer);
    connection.close();
    const left = (idle.get(key) ?? []).filter((each) => each.connection !== connection);
    if (left.length === 0) idle.delete(key);
    else idle.set(key, left);
  };

  /** Takes a kept connection that can be used. Those that cannot be used are closed. */
  const take = (key: string, state: string | null): KeptConnection | null => {
    for (;;) {
      const kept = idle.get(key)?.pop();
      if (kept === undefined) return null;
      clearTimeout(kept.timer);
      const { connection } = kept;
      if (!connection.broken && kept.state === state && isQuiet(connection.socket)) return connection;
      connection.close();
    }
  };

  const keep = ({ key, keep_ms }: ServerPlace, state: string | null, connection: KeptConnection): void => {
    const all = idle.get(key) ?? [];
    if (state === null || connection.broken || connection.open_requests > 0 || all.length >= KEPT_MAX) return connection.close();
    const kept: Kept = { connection, state, timer: setTimeout(() => drop(key, kept), keep_ms) };
    kept.timer.unref();
    idle.set(key, [...all, kept]);
  };

  return {
    async connect(place, flow) {
      const state = place.state();
      const kept = take(place.key, state);
      const is_good = kept !== null && (await stillAnswers(kept, place));
      if (!is_good) kept?.close();
      const connection = is_good ? kept : await connectPlace(place, { flow });
      connection.follow(flow);
      let given_back = false;
      return {
        request(request, options) {
          if (given_back) return Promise.reject(new ServerUnreachable("Communication failure.", PBSE_SYSTEM));
          return connection.request(request, options);
        },
        get server() {
          return connection.server;
        },
        get open_requests() {
          return given_back ? 0 : connection.open_requests;
        },
        close() {
          if (given_back) return;
          given_back = true;
          connection.follow(undefined);
          keep(place, state, connection);
        },
      };
    },
  };
}
