// Sockets of a multicast group. The server's socket only sends, a mom's socket only receives.
//
// M1. A mom's socket is bound to the address of the group, so that the kernel passes on no datagram that was sent to the
//     address of the host.
// M2. A network interface is stated by its name or by one of its addresses. If none is stated, it is the one through which the
//     kernel reaches the other end.

import { createSocket, type Socket } from "node:dgram";
import { isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import type { MulticastSettings } from "#model/tables/multicast-attributes.ts";
import type { GroupSocket } from "#protocol/multicast/group-desk.ts";
import { messageOf } from "#support/caught.ts";

/** Size of the kernel's buffer for datagrams that arrive while the mom is busy. The kernel may allow less (net.core.rmem_max). */
const RECEIVE_BYTES = 1024 * 1024;
/** Number of datagrams that wait until the socket is open. */
const WAITING_MAX = 256;
/** The port of the socket that asks the kernel for its route. Nothing is sent. */
const ROUTE_PORT = 9;

/** Opens a socket that sends to a group. near: address of a mom. fault: called if that fails; datagrams are then lost. */
export function openGroupSender(settings: MulticastSettings, near: string, fault: (text: string) => void): GroupSocket {
  const { address, port, ttl } = settings;
  const six = isIPv6(address);
  const socket = createSocket({ type: six ? "udp6" : "udp4" });
  const failed = (error: unknown): void => fault(`multicast to ${address} port ${port}: ${messageOf(error)}`);
  socket.on("error", failed);
  socket.unref();
  let waiting: Uint8Array[] | null = [];
  let closed = false;
  let is_faulty = false;
  const send = (bytes: Uint8Array): void =>
    socket.send(bytes, port, address, (error) => {
      // A fault is told once, until a datagram leaves again.
      if (error !== null && !is_faulty) failed(error);
      is_faulty = error !== null;
    });
  socket.bind(0, async () => {
    try {
      const local = await outgoing(settings.interface, near, six);
      if (closed) return;
      socket.setMulticastInterface(local);
      socket.setMulticastTTL(ttl);
      socket.setMulticastLoopback(false);
    } catch (error) {
      failed(error);
    }
    const kept = waiting ?? [];
    waiting = null;
    if (!closed) for (const bytes of kept) send(bytes);
  });
  return {
    send(bytes) {
      if (closed) return;
      if (waiting === null) send(bytes);
      else if (waiting.length < WAITING_MAX) waiting.push(bytes);
    },
    close() {
      if (!closed) socket.close();
      closed = true;
    },
  };
}

/** Chooses the group whose datagrams are received from now on; null: none. net: the stated network interface, or null (M2) */
type Listen = (group: { readonly address: string; readonly port: number } | null, net: string | null) => void;

/** server: the server's host. fault: called if a group cannot be joined; the server then sends commands over the connection */
export function groupListener(server: string, heard: (bytes: Uint8Array) => void, fault: (text: string) => void): Listen {
  let socket: Socket | null = null;
  let present = "";
  const close = (): void => {
    socket?.close();
    socket = null;
  };
  return (group, net) => {
    const wanted = group === null ? "" : JSON.stringify([group, net]);
    if (wanted === present) return;
    present = wanted;
    close();
    if (group === null) return;
    const { address, port } = group;
    const six = isIPv6(address);
    const made = createSocket({ type: six ? "udp6" : "udp4", reuseAddr: true, recvBufferSize: RECEIVE_BYTES });
    socket = made;
    const failed = (error: unknown): void => {
      fault(`the multicast group ${address} port ${port} cannot be joined: ${messageOf(error)}`);
      if (socket !== made) return;
      close();
      present = "";
    };
    made.on("error", failed);
    made.on("message", heard);
    made.unref();
    made.bind({ port, address }, async () => {
      try {
        const local = await outgoing(net, server, six);
        if (socket === made) made.addMembership(address, local);
      } catch (error) {
        failed(error);
      }
    });
  };
}

/**
 * Returns the local interface in the form that the functions of node:dgram want: an address of IPv4, or `::%name`. stated: a
 * name or an address; null: the interface through which the host `toward` is reached.
 */
async function outgoing(stated: string | null, toward: string, six: boolean): Promise<string> {
  const found = stated ?? (await localAddress(toward));
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    if (name !== found && !addresses?.some(({ address }) => address === found)) continue;
    if (six) return `::%${name}`;
    const four =
      addresses?.find(({ family, address }) => family === "IPv4" && (address === found || name === found)) ??
      addresses?.find(({ family }) => family === "IPv4");
    if (four !== undefined) return four.address;
  }
  throw new Error(`there is no network interface ${found} with an address of ${six ? "IPv6" : "IPv4"}`);
}

/** Returns the address of this host from which the kernel would send to another host. */
function localAddress(toward: string): Promise<string> {
  const plain = toward.replace(/^::ffff:(?=\d+\.)/, "");
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(plain) ? "udp6" : "udp4");
    let ended = false;
    const end = (error: Error | null): void => {
      if (ended) return;
      ended = true;
      const { address } = error === null ? socket.address() : { address: "" };
      socket.close();
      if (error === null) resolve(address);
      else reject(error);
    };
    socket.once("error", end);
    socket.connect(ROUTE_PORT, plain, (error?: Error) => end(error ?? null));
  });
}
