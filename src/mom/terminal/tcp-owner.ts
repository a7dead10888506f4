// Finds the owner of a TCP connection on this host in the kernel's tables of sockets.

import { readFileSync } from "node:fs";

/** Returns the uid of the socket with these ports, from the text of /proc/net/tcp or tcp6; null: there is none. Pure. */
export function ownerIn(table: string, port: number, peer_port: number): number | null {
  for (const line of table.split("\n").slice(1)) {
    const [, local = "", remote = "", , , , , uid] = line.trim().split(/\s+/);
    if (portOf(local) === port && portOf(remote) === peer_port) return Number(uid);
  }
  return null;
}

const portOf = (address: string): number => Number.parseInt(address.slice(address.lastIndexOf(":") + 1), 16);

/** Returns the uid of the process at the other end of a connection; null: that end no longer exists, or is on another host. */
export function tcpOwner(socket: { readonly remotePort?: number | undefined; readonly localPort?: number | undefined }): number | null {
  const { remotePort, localPort } = socket;
  if (remotePort === undefined || localPort === undefined) return null;
  for (const name of ["tcp", "tcp6"]) {
    try {
      const uid = ownerIn(readFileSync(`/proc/net/${name}`, "latin1"), remotePort, localPort);
      if (uid !== null) return uid;
    } catch {
      // The kernel does not have this table.
    }
  }
  return null;
}
