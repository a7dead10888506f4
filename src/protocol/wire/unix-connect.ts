// A connection to a unix socket by its path, however long that is. Loads node:net and nothing else.

import { createConnection, type Socket } from "node:net";
import { socketAddress } from "./socket-path.ts";

/** Resolves when it is connected, without a listener for errors: from then on they are the caller's. Rejects with the system's error. */
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
