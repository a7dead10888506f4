// Connections to servers that a resident keeps from one command to the next. To connect anew takes half of the time of a
// short command.
//
// K1. A connection serves one command at a time. It is kept only if all requests on it have been answered. The connection of
//     a cancelled command is closed.
// K2. A connection is used again only if nothing has arrived on it (a server that ended has closed it, even if Node.js has
//     not noticed yet) and the path still names the same socket.
// K3. Nothing is ever sent twice. If a connection breaks, the command that uses it gets an error.

import { statSync } from "node:fs";
import { connectSocket, type Flow, type KeptConnection, type ServerConnection, ServerUnreachable } from "#protocol/client.ts";
import { isQuiet } from "#protocol/wire/peer-credentials.ts";

/** How long an idle connection is kept: each one is a load on the server, and there are many users. */
const KEEP_MS = 5000;
/** largest number of idle connections to one server */
const KEPT_MAX = 8;

export type ServerLinks = {
  /** Connects to the server at this socket, as connectSocket does, or uses a kept connection. */
  connect(path: string, flow: Flow): Promise<ServerConnection>;
};

type Kept = { readonly connection: KeptConnection; readonly socket_file: string; readonly timer: NodeJS.Timeout };

/** Makes the links of a resident. There is no connection yet. */
export function serverLinks(): ServerLinks {
  const idle = new Map<string, Kept[]>();

  const drop = (path: string, { connection, timer }: Kept): void => {
    clearTimeout(timer);
    connection.close();
    const left = (idle.get(path) ?? []).filter((each) => each.connection !== connection);
    if (left.length === 0) idle.delete(path);
    else idle.set(path, left);
  };

  /** Takes a kept connection that can be used. Those that cannot be used are closed. */
  const take = (path: string, socket_file: string): KeptConnection | null => {
    for (;;) {
      const kept = idle.get(path)?.pop();
      if (kept === undefined) return null;
      clearTimeout(kept.timer);
      const { connection } = kept;
      if (!connection.broken && socket_file !== "" && kept.socket_file === socket_file && isQuiet(connection.socket)) return connection;
      connection.close();
    }
  };

  const keep = (path: string, socket_file: string, connection: KeptConnection): void => {
    const all = idle.get(path) ?? [];
    if (connection.broken || connection.open_requests > 0 || all.length >= KEPT_MAX) return connection.close();
    const kept: Kept = { connection, socket_file, timer: setTimeout(() => drop(path, kept), KEEP_MS) };
    kept.timer.unref();
    idle.set(path, [...all, kept]);
  };

  return {
    async connect(path, flow) {
      const socket_file = identity(path);
      const connection = take(path, socket_file) ?? (await connectSocket(path, { flow }));
      connection.follow(flow);
      let given_back = false;
      return {
        request(request, options) {
          if (given_back) return Promise.reject(new ServerUnreachable("Communication failure.", PBSE_SYSTEM));
          return connection.request(request, options);
        },
        get open_requests() {
          return given_back ? 0 : connection.open_requests;
        },
        close() {
          if (given_back) return;
          given_back = true;
          connection.follow(undefined);
          keep(path, socket_file, connection);
        },
      };
    },
  };
}

const PBSE_SYSTEM = 15010;

/** Returns the identity of the file with this path; "": the file does not exist or is not visible (the attempt to connect will show which). */
function identity(path: string): string {
  try {
    const { dev, ino, ctimeMs } = statSync(path);
    return `${dev} ${ino} ${ctimeMs}`;
  } catch {
    return "";
  }
}
