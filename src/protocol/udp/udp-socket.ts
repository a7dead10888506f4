// Sockets for datagrams: the server's, which receives on its port at every address, and a mom's, which communicates only
// with its server.

import { createSocket, type Socket } from "node:dgram";
import { lookup } from "node:dns";
import { codeOf } from "#support/caught.ts";

/** Size of the kernel's buffer for datagrams that arrive while the server is busy. The kernel may allow less (net.core.rmem_max). */
const RECEIVE_BYTES = 4 * 1024 * 1024;
/** How long an address of the server is used before it is looked up again. */
const ADDRESS_MS = 60_000;
/** How long the former address is used further after a lookup has failed. */
const RETRY_MS = 5000;
/** Number of datagrams that wait for the first address. */
const WAITING_MAX = 64;

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

/** lookup: looks up the address of a host, as the function of node:dns does. now_ms: a clock that is never set */
type Tools = { lookup(host: string, done: (error: Error | null, address: string) => void): void; now_ms(): number };

const TOOLS: Tools = { lookup, now_ms: () => performance.now() };

/**
 * Opens a socket to a port of a host. A datagram that cannot be sent is lost. One lookup of the address is under way at a time,
 * because each occupies a thread of the process. Meanwhile, and if the lookup fails, datagrams go to the former address; while
 * no address is known, at most WAITING_MAX datagrams wait.
 */
export function dialUdp(
  target: { readonly host: string; readonly port: number },
  onDatagram: (bytes: Uint8Array) => void,
  tools: Tools = TOOLS,
): UdpClient {
  let socket: Socket | null = null;
  let address: { readonly address: string; readonly until_ms: number } | null = null;
  let is_looking = false;
  /** datagrams that are sent when the first address is known */
  let waiting: Uint8Array[] = [];
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
  const send = (bytes: Uint8Array, to: string): void => {
    if (!closed) socketFor(familyOf(to)).send(bytes, target.port, to, () => undefined);
  };
  const lookUp = (): void => {
    if (is_looking) return;
    is_looking = true;
    tools.lookup(target.host, (error, found) => {
      is_looking = false;
      if (closed) return;
      const until_ms = tools.now_ms() + (error === null ? ADDRESS_MS : RETRY_MS);
      if (error === null) {
        if (address !== null && familyOf(address.address) !== familyOf(found)) {
          socket?.close();
          socket = null;
        }
        address = { address: found, until_ms };
      } else if (address !== null) address = { ...address, until_ms };
      if (address !== null) for (const bytes of waiting) send(bytes, address.address);
      waiting = [];
    });
  };

  return {
    send(bytes) {
      if (address === null || tools.now_ms() >= address.until_ms) lookUp();
      if (address !== null) send(bytes, address.address);
      else if (waiting.length < WAITING_MAX) waiting.push(bytes);
    },
    close() {
      closed = true;
      socket?.close();
      socket = null;
    },
  };
}

const familyOf = (address: string): number => (address.includes(":") ? 6 : 4);
