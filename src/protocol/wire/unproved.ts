// Limits connections from the network that have not proved themselves: few at a time, and few failures of one address. bounds/waiting-room.ts treats an address as
// it treats a user.
//
// U1. If there are too many, a new connection ends the oldest connection of the address that has the most (bounds/waiting-room.ts).
// U2. An address whose connections end without proof again and again is not served for a while: a handshake costs the server more than its peer. Connections
//     that proved themselves do not count, so that a storm of moms behind one address is served.
// U3. All IPv6 addresses of a /64 network count as one address, because one host can use all of them. An IPv4 address counts
//     as itself, also on a socket for both versions of IP.

import { isIPv6, type Socket } from "node:net";
import { waitingRoom } from "../bounds/waiting-room.ts";
import type { Limits } from "./limits.ts";

/** Number of addresses whose failures are remembered. When there are more, all are forgotten. */
const ADDRESSES_MAX = 10_000;

type UnprovedLimits = Pick<Limits, "unproved_connections_max" | "unproved_ends_max" | "unproved_ends_ms">;

export type Unproved = {
  /** adds a connection before its handshake */
  enter(raw: Socket): void;
  /** removes the connection of this TLS socket, because it has proved itself */
  leave(socket: Socket): void;
  /** counts a connection from this address that had proved its host but did not prove its user; it counts like an end without proof (U2) */
  failed(address: string): void;
  close(): void;
};

/** Makes the object. say: writes into the log. */
export function unprovedConnections(limits: UnprovedLimits, say: (text: string) => void): Unproved {
  const sockets = new Map<string, Socket>();
  const failures = recentFailures(limits);
  const room = waitingRoom<string>({
    max: limits.unproved_connections_max,
    own: [],
    turnOut(key) {
      say(`too many connections that prove nothing: one is ended, ${key}`);
      sockets.get(key)?.destroy();
    },
  });
  const gone = (key: string, raw: Socket): void => {
    if (sockets.get(key) !== raw) return;
    sockets.delete(key);
    room.leave(key);
    failures.add(addressIn(key));
  };
  return {
    enter(raw) {
      const key = keyOf(raw);
      const address = addressIn(key);
      if (failures.areTooMany(address)) {
        say(`too many connections of ${address} proved nothing: it is not served for some seconds`);
        return void raw.destroy();
      }
      sockets.set(key, raw);
      raw.once("close", () => gone(key, raw));
      room.enter(key, address);
    },
    leave(socket) {
      const key = keyOf(socket);
      sockets.delete(key);
      room.leave(key);
    },
    failed: (address) => failures.add(peerAddress(address)),
    close() {
      for (const socket of sockets.values()) socket.destroy();
    },
  };
}

/** Address and port of the peer: the same for a connection and for the TLS socket over it. */
const keyOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress ?? ""} ${remotePort ?? ""}`;
const addressIn = (key: string): string => peerAddress(key.slice(0, key.indexOf(" ")));

/** Returns what counts as the address of a peer (U3): `2001:db8:0:1:*` stands for the network. address: as the socket has it */
export function peerAddress(address: string): string {
  const plain = plainAddress(address);
  if (!isIPv6(plain)) return plain;
  const [front = "", back] = (plain.split("%")[0] ?? "").split("::");
  const groups = groupsIn(front);
  if (back !== undefined) {
    const rest = groupsIn(back);
    while (groups.length + rest.length < 8) groups.push("0");
    groups.push(...rest);
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}:*`;
}

/** Returns an address; an IPv4 address that a socket for both versions of IP shows gets its usual form. */
export const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "");

/** Returns the groups of a part of an IPv6 address. An IPv4 address at the end counts as two groups, which are not read. */
const groupsIn = (part: string): string[] =>
  part === "" ? [] : part.split(":").flatMap((group) => (group.includes(".") ? ["0", "0"] : [group]));

/** Counts failures of each address in successive spans of time. */
function recentFailures({ unproved_ends_max, unproved_ends_ms }: UnprovedLimits) {
  const counts = new Map<string, number>();
  let since_ms = performance.now();
  const refresh = (): void => {
    const now_ms = performance.now();
    if (now_ms - since_ms < unproved_ends_ms && counts.size < ADDRESSES_MAX) return;
    since_ms = now_ms;
    counts.clear();
  };
  return {
    add(address: string): void {
      refresh();
      counts.set(address, (counts.get(address) ?? 0) + 1);
    },
    areTooMany(address: string): boolean {
      refresh();
      return (counts.get(address) ?? 0) >= unproved_ends_max;
    },
  };
}
