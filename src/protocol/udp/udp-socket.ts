// Sockets for datagrams: the server's, which receives on its port at every address, and a mom's, which communicates only
// with its server.

import { createSocket, type Socket } from "node:dgram";
import { lookup } from "node:dns";
import { codeOf } from "#support/caught.ts";

/** Size of the kernel's buffer for datagrams that arrive while the server is busy. The kernel may allow less (net.core.rmem_max). */
const RECEIVE_BYTES = 4 * 1024 * 1024;
/** How long an address of the server is used before it is looked up again. */
const ADDRESS_MS = 60_000;

export type UdpServer = { close(): void };

/** Receives datagrams on a port. onDatagram: called for each; answer() sends a datagram back. Rejects if the port cannot be bound. */
export async function listenUdp(
  port: number,
  onDatagram: (bytes: Uint8Array, answer: (bytes: Uint8Array) => void) => void,
): Promise<UdpServer> {
  const open = (type: "udp4" | "udp6"): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = createSocket({ type, recvBufferSize: RECEIVE_BYTES });
      socket.once("error", (error) => {
        socket.close();
        reject(error);
      });
      socket.bind({ port }, () => {
        socket.removeAllListeners("error");
        resolve(socket);
      });
    });
  // A socket of IPv6 that is bound to no address receives datagrams of IPv4, too.
  const socket = await open("udp6").catch((error: unknown) => {
    if (codeOf(error) !== "EAFNOSUPPORT" && codeOf(error) !== "EADDRNOTAVAIL") throw error;
    return open("udp4");
  });
  // An answer that cannot be sent is lost, as it could be on its way: the mom reports again.
  socket.on("error", () => undefined);
  socket.on("message", (bytes, { port: from, address }) =>
    onDatagram(bytes, (answer) => socket.send(answer, from, address, () => undefined)),
  );
  return { close: () => void socket.close() };
}

export type UdpClient = { send(bytes: Uint8Array): void; close(): void };

/** Opens a socket to a port of a host. A datagram that cannot be sent is lost. */
export function dialUdp(target: { readonly host: string; readonly port: number }, onDatagram: (bytes: Uint8Array) => void): UdpClient {
  let socket: Socket | null = null;
  let address: { readonly address: string; readonly until_ms: number } | null = null;
  let closed = false;

  const socketFor = (family: number): Socket => {
    const type = family === 6 ? "udp6" : "udp4";
    const made = socket ?? createSocket(type);
    if (socket === null) {
      made.on("error", () => undefined);
      made.on("message", (bytes, from) => {
        if (from.port === target.port) onDatagram(bytes);
      });
      made.unref();
    }
    socket = made;
    return made;
  };
  const send = (bytes: Uint8Array, to: string, family: number): void => {
    if (!closed) socketFor(family).send(bytes, target.port, to, () => undefined);
  };

  return {
    send(bytes) {
      const now_ms = performance.now();
      if (address !== null && now_ms < address.until_ms) return send(bytes, address.address, address.address.includes(":") ? 6 : 4);
      lookup(target.host, (error, found, family) => {
        if (error !== null || closed) return;
        if (address !== null && address.address.includes(":") !== (family === 6)) {
          socket?.close();
          socket = null;
        }
        address = { address: found, until_ms: now_ms + ADDRESS_MS };
        send(bytes, found, family);
      });
    },
    close() {
      closed = true;
      socket?.close();
      socket = null;
    },
  };
}
