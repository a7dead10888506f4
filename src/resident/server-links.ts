// Connections to servers that a resident keeps for a while from one command to the next: half of a short command's work is otherwise to connect.
//
// K1. A connection serves one command at a time, and is kept only when nothing is open on it. A cancelled command's ends with it.
// K2. Before it is lent again it must be quiet (a server that ended has closed it, seen or not) and its socket the one that the path names now.
// K3. Nothing is ever sent twice: a connection that breaks under a command breaks for the command.

import { statSync } from "node:fs";
import { connectSocket, type Flow, type KeptConnection, type ServerConnection, ServerUnreachable } from "#protocol/client.ts";
import { isQuiet } from "#protocol/wire/peer-credentials.ts";

/** An idle connection is a burden to the server: users are many. */
const KEEP_MS = 5000;
/** of one server */
const KEPT_MAX = 8;

export type ServerLinks = {
  /** As connectSocket. */
  connect(path: string, flow: Flow): Promise<ServerConnection>;
};

type Kept = { readonly connection: KeptConnection; readonly socket_file: string; readonly timer: NodeJS.Timeout };

/** No connection yet. */
export function serverLinks(): ServerLinks {
  const idle = new Map<string, Kept[]>();

  const drop = (path: string, { connection, timer }: Kept): void => {
    clearTimeout(timer);
    connection.close();
    const left = (idle.get(path) ?? []).filter((each) => each.connection !== connection);
    if (left.length === 0) idle.delete(path);
    else idle.set(path, left);
  };

  /** One that may be lent, taken out; those that may not are ended. */
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

/** Of the file that a path names; "": of none, or of one that we may not see (to connect tells which). */
function identity(path: string): string {
  try {
    const { dev, ino, ctimeMs } = statSync(path);
    return `${dev} ${ino} ${ctimeMs}`;
  } catch {
    return "";
  }
}
