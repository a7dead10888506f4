// The identity of the peer of a unix socket: SO_PEERCRED, which the kernel sets when the peer connects. The peer cannot change
// it.

import type { Socket } from "node:net";
import { libc } from "#support/libc/libc.ts";

export type PeerCredentials = { readonly pid: number; readonly uid: number; readonly gid: number };

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;

type Getsockopt = (fd: number, level: number, name: number, value: Int32Array, size: number[]) => number;
let getsockopt: Getsockopt | null = null;

const MSG_PEEK = 0x2;
const MSG_DONTWAIT = 0x40;
const EAGAIN = 11;

type Recv = (fd: number, bytes: Uint8Array, count: number, flags: number) => number;
let recv: Recv | null = null;

/** Returns the credentials of the peer of a unix socket, or null if the peer has already gone or the kernel does not give them. */
export function peerCredentials(socket: Socket): PeerCredentials | null {
  const fd = descriptorOf(socket);
  if (fd === null) return null;
  getsockopt ??= libc().libc.func(
    "int getsockopt(int fd, int level, int name, _Out_ int32_t *value, _Inout_ uint32_t *size)",
  ) as Getsockopt;
  const value = new Int32Array(3);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, value, [12]) !== 0) return null;
  const [pid = 0, uid = 0, gid = 0] = value;
  return { pid, uid: uid >>> 0, gid: gid >>> 0 };
}

/**
 * Whether the kernel has no unread data of a connected socket. The end of the connection counts as data. The kernel knows of
 * data that Node.js has not noticed yet.
 */
export function isQuiet(socket: Socket): boolean {
  const fd = descriptorOf(socket);
  if (fd === null) return false;
  const { koffi, libc: c } = libc();
  recv ??= c.func("long recv(int fd, _Out_ uint8_t *bytes, size_t count, int flags)") as Recv;
  return recv(fd, new Uint8Array(1), 1, MSG_PEEK | MSG_DONTWAIT) === -1 && koffi.errno() === EAGAIN;
}

/** Returns the file descriptor of a Node.js socket (node-ipc uses plain sockets). Node.js has no public call for it, but the handle of libuv has the number. */
export function descriptorOf(socket: Socket): number | null {
  const handle = (socket as unknown as { readonly _handle?: { readonly fd?: number } | null })._handle;
  const fd = handle?.fd;
  return typeof fd === "number" && fd >= 0 ? fd : null;
}
