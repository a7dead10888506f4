// Where the server listens: PBS_HOME/sock/server.sock. server_priv is closed to users (0750), spool is writable by everybody (so anybody could put a
// socket of his own there first); sock is a directory of the server (0755; user mode 0700) with the socket in it (0666; user mode 0600).
//
// A socket address holds 107 bytes of path. A longer one is reached through an open descriptor of its directory (/proc/self/fd/N/server.sock): no
// second place that could be forged, no shortened name that could collide.

import { closeSync, constants, openSync } from "node:fs";
import { basename, dirname } from "node:path";

const SOCKET_PATH_BYTES_MAX = 107;

/** The path of the server's socket. */
export function serverSocketPath(home: string): string {
  return `${home}/sock/server.sock`;
}

export type SocketAddress = {
  /** to bind or connect to */
  readonly address: string;
  /** gives the directory's descriptor back; not before the socket bound by it is closed */
  release(): void;
};

/** A path as an address that the kernel takes. Throws the file system's error where the directory of a long path cannot be opened. */
export function socketAddress(path: string): SocketAddress {
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX) return { address: path, release: () => undefined };
  const fd = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  return { address: `/proc/self/fd/${fd}/${basename(path)}`, release: () => closeSync(fd) };
}
