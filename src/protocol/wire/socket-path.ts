// The server's socket is PBS_HOME/sock/server.sock. It cannot be in server_priv, which is closed to users (0750). It cannot be
// in spool either: everybody can write there and could create a socket of that name first. sock is therefore a directory of the
// server (0755; user mode 0700) with the socket in it (0666; user mode 0600).
//
// A socket address holds 107 bytes of path. A longer path is reached through an open descriptor of its directory
// (/proc/self/fd/N/server.sock). This needs no second socket elsewhere, which could be forged, and no shortened name, which
// could collide.

import { closeSync, constants, openSync } from "node:fs";
import { basename, dirname } from "node:path";

const SOCKET_PATH_BYTES_MAX = 107;

/** Returns the path of the server's socket. */
export function serverSocketPath(home: string): string {
  return `${home}/sock/server.sock`;
}

export type SocketAddress = {
  /** the address to bind or to connect to */
  readonly address: string;
  /** Closes the directory's descriptor. Must not be called before a socket bound to the address is closed. */
  release(): void;
};

/**
 * Turns a path into an address that the kernel accepts. Throws the file system's error if the directory of a long path cannot
 * be opened.
 */
export function socketAddress(path: string): SocketAddress {
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX) return { address: path, release: () => undefined };
  const fd = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  return { address: `/proc/self/fd/${fd}/${basename(path)}`, release: () => closeSync(fd) };
}

/** Returns the path of the socket of the grid's daemon. */
export const gridSocketPath = (home: string): string => `${home}/grid_sock/grid.sock`;
