// The server's side of links over unix sockets. The daemons' side is in daemon-link.ts, links over TLS are in
// tls-listener.ts. The rules are those of link-server.ts.

import { chmodSync, existsSync, lstatSync, mkdirSync } from "node:fs";
import type { Socket } from "node:net";
import { dirname } from "node:path";
import { createIpc, serverOf } from "./ipc.ts";
import type { Limits } from "./limits.ts";
import { LIMITS } from "./limits.ts";
import { type Admission, acceptLinks, PBSE_BADCRED, startListening } from "./link-server.ts";
import { peerCredentials } from "./peer-credentials.ts";
import type { LinkHandlers, ServerLink } from "./server-link.ts";
import type { Shares } from "./share.ts";
import { socketAddress } from "./socket-path.ts";

export { connectLink, type DaemonLink } from "./daemon-link.ts";
export type { LinkHandlers, ServerLink } from "./server-link.ts";

export type ListenOptions = LinkHandlers & {
  readonly path: string;
  /** the accepted frame types */
  readonly types: readonly string[];
  /** true: every user may connect (system mode: socket 0666, directory 0755); false: only the server's user (0600 and 0700) */
  readonly everyone: boolean;
  readonly limits?: Partial<Limits>;
  /** what the peers of all listeners of this process hold (share.ts) */
  readonly shares?: Shares;
};

export type LinkServer = {
  readonly links: ReadonlySet<ServerLink>;
  /** Changes the limits of new and of existing connections. */
  setLimits(changed: Partial<Limits>): void;
  /** Ends all links and stops listening. */
  close(): Promise<void>;
};

/**
 * Starts to listen. The caller has locked the server's home, so an existing socket file belongs to no running server and is
 * removed. Rejects if the socket cannot be created at the path.
 */
export async function listenLinks(options: ListenOptions): Promise<LinkServer> {
  const limits: Limits = { ...LIMITS, ...options.limits };
  makeSocketDirectory(dirname(options.path), options.everyone);
  const { address, release } = socketAddress(options.path);
  const ipc = createIpc(new Set(options.types));
  ipc.config.maxConnections = limits.connections_max;
  ipc.config.readableAll = options.everyone;
  ipc.config.writableAll = options.everyone;
  ipc.serve(address);
  const server = serverOf(ipc);
  const links = acceptLinks(
    { server, types: options.types, limits, admit: localPeer, ...(options.shares === undefined ? {} : { shares: options.shares }) },
    options,
  );
  await startListening(server);
  chmodSync(options.path, options.everyone ? 0o666 : 0o600);

  return {
    get links() {
      return new Set(links.values());
    },
    setLimits: (changed) => void Object.assign(limits, changed),
    close() {
      return new Promise((resolve) => {
        server.server.once("close", () => {
          release();
          resolve();
        });
        server.stop();
      });
    },
  };
}

/** Determines the peer of a unix socket, which the kernel knows. */
function localPeer(socket: Socket): Admission {
  const peer = peerCredentials(socket);
  if (peer !== null) return { kind: "peer", peer };
  return { kind: "refused", refusal: { problem: "a peer without credentials", code: PBSE_BADCRED, text: "Invalid credential" } };
}

/** Creates the directory of the socket. It must belong to the server's user: a path that is no directory or has another owner is refused. */
function makeSocketDirectory(dir: string, everyone: boolean): void {
  if (!existsSync(dir)) mkdirSync(dir, { mode: 0o700 });
  const stat = lstatSync(dir);
  if (!stat.isDirectory() || stat.uid !== process.getuid?.()) throw new Error(`${dir} must be a directory of the server's own user`);
  chmodSync(dir, everyone ? 0o755 : 0o700);
}
