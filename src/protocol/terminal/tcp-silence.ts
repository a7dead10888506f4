// Ends the TCP connection of a terminal whose other host no longer exists, or has been out of reach for a long time.
//
// The kernel of the other host acknowledges data and probes even while the process there is stopped, and while it takes no data. So the time of the last
// acknowledgement tells a stopped qsub, for which the job waits, from a host that has gone. TCP_USER_TIMEOUT does not: it also ends connections to a receiver
// that takes nothing.

import type { Socket } from "node:net";
import { libc } from "#support/libc/libc.ts";
import { descriptorOf } from "../wire/peer-credentials.ts";

/** Silence after which the kernel begins to probe, and the interval of its probes. */
const KEEPALIVE_S = 10;
const LOOK_MS = 10_000;
/** A host that acknowledges nothing for this long counts as gone. The kernel probes a receiver that takes nothing at least every two minutes. */
const SILENT_MS_MAX = 300_000;

const IPPROTO_TCP = 6;
const TCP_KEEPINTVL = 5;
const TCP_KEEPCNT = 6;
const TCP_INFO = 11;
/** Size of struct tcp_info up to tcpi_last_ack_recv, the time in ms since the last acknowledgement, and the position of this field. */
const INFO_BYTES = 60;
const LAST_ACK_AT = 56;

type Getsockopt = (fd: number, level: number, name: number, value: Uint8Array, size: number[]) => number;
let getsockopt: Getsockopt | null = null;
type Setsockopt = (fd: number, level: number, name: number, value: Int32Array, size: number) => number;
let setsockopt: Setsockopt | null = null;

/** Returns the time in ms since the other host has acknowledged anything; null: not known, because the connection does not exist yet or any more. */
function sinceAcknowledged_ms(socket: Socket): number | null {
  const fd = descriptorOf(socket);
  if (fd === null) return null;
  getsockopt ??= libc().libc.func(
    "int getsockopt(int fd, int level, int name, _Out_ uint8_t *value, _Inout_ uint32_t *size)",
  ) as Getsockopt;
  const info = Buffer.alloc(INFO_BYTES);
  const size = [INFO_BYTES];
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, size) !== 0 || (size[0] ?? 0) < INFO_BYTES) return null;
  return info.readUInt32LE(LAST_ACK_AT);
}

/** Lets the kernel probe. Node.js itself sets ten probes of one second, so that a cut of twenty seconds would end an idle connection. */
function probe(socket: Socket): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, 1000 * KEEPALIVE_S);
  const fd = descriptorOf(socket);
  if (fd === null) return;
  setsockopt ??= libc().libc.func("int setsockopt(int fd, int level, int name, const int32_t *value, uint32_t size)") as Setsockopt;
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, new Int32Array([KEEPALIVE_S]), Int32Array.BYTES_PER_ELEMENT);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, new Int32Array([SILENT_MS_MAX / (1000 * KEEPALIVE_S)]), Int32Array.BYTES_PER_ELEMENT);
}

export function watchSilence(socket: Socket): void {
  if (socket.connecting) socket.once("connect", () => probe(socket));
  else probe(socket);
  const timer = setInterval(() => {
    if ((sinceAcknowledged_ms(socket) ?? 0) > SILENT_MS_MAX) socket.destroy(new Error("the other host does not answer"));
  }, LOOK_MS);
  timer.unref();
  socket.once("close", () => clearInterval(timer));
}
