// Connects to a unix socket by a path of any length. Loads only node:net.

import { createConnection, type Socket } from "node:net";
import { socketAddress } from "./socket-path.ts";

/**
 * Connects to a socket. Resolves when the socket is connected. The socket then has no listener for errors: the caller must add
 * one. Rejects with the system's error.
 */
export function connectUnix(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { address, release } = socketAddress(path);
    const socket = createConnection(address);
    socket.once("connect", () => {
      release();
      socket.removeAllListeners("error");
      resolve(socket);
    });
    socket.once("error", (error) => {
      release();
      reject(error);
    });
  });
}
