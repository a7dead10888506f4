// A relay between a store and its PostgreSQL, which cuts connections, holds back what is sent, and can be away.

import { createConnection, createServer, type Socket } from "node:net";

export type Relay = {
  readonly port: number;
  /** what happens to the next message that contains this text: see Fault. stays_away: the relay is away from the moment at which it cuts the connection */
  next(text: string, fault: Fault, options?: { readonly stays_away: boolean }): void;
  /** delays all answers; 0: passes them on at once */
  slow(delay_ms: number): void;
  /** takes connections and passes nothing on, as a network that loses all packets does; false: the messages of new connections are passed on */
  swallow(is_on: boolean): void;
  /** number of connections that were made */
  readonly connections: number;
  /** ends all connections, and refuses new ones until back() is called */
  away(): void;
  back(): void;
  /** ends every fault: new connections are as if there had been none */
  heal(): void;
  /** passes on what was held back. Resolves when PostgreSQL has ended the connection */
  release(): Promise<void>;
  close(): Promise<void>;
};

/**
 * unsent: the connection is cut, and the message does not reach PostgreSQL. unanswered: it reaches PostgreSQL, and the connection is cut instead of the answer. held:
 * the store's side is cut; the message reaches PostgreSQL when release() is called. silent: the answer never comes, the connection stays.
 */
export type Fault = "unsent" | "unanswered" | "held" | "silent";

/** Starts a relay to a unix socket. */
export async function startRelay(socket: string): Promise<Relay> {
  let wanted: { readonly text: Buffer; readonly fault: Fault; readonly stays_away: boolean } | null = null;
  let held: { readonly inner: Socket; readonly message: Buffer } | null = null;
  let is_away = false;
  let is_swallowing = false;
  let connections = 0;
  let delay_ms = 0;
  const sockets = new Set<Socket>();
  const server = createServer((outer) => {
    connections++;
    const inner = createConnection(socket);
    for (const one of [outer, inner]) {
      sockets.add(one);
      one.on("error", () => undefined);
      one.on("close", () => sockets.delete(one));
    }
    if (is_away) return void outer.destroy();
    let fault: Fault | null = null;
    let stays_away = false;
    const cut = (): void => {
      if (stays_away) is_away = true;
      outer.destroy();
    };
    outer.on("data", (message) => {
      if (is_swallowing) return;
      if (wanted === null || !message.includes(wanted.text)) return void inner.write(message);
      ({ fault, stays_away } = wanted);
      wanted = null;
      if (fault === "unsent") cut();
      else if (fault === "held") {
        held = { inner, message };
        cut();
      } else inner.write(message);
    });
    inner.on("data", (message) => {
      if (is_swallowing) return;
      if (fault === "unanswered") cut();
      else if (fault === null && delay_ms === 0) outer.write(message);
      else if (fault === null) setTimeout(() => outer.write(message), delay_ms);
    });
    outer.on("close", () => {
      if (held?.inner !== inner) inner.destroy();
    });
    inner.on("close", () => outer.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the relay has no port");
  return {
    port: address.port,
    next(text, fault, { stays_away } = { stays_away: false }) {
      wanted = { text: Buffer.from(text), fault, stays_away };
    },
    slow(by_ms) {
      delay_ms = by_ms;
    },
    swallow(is_on) {
      is_swallowing = is_on;
    },
    get connections() {
      return connections;
    },
    away() {
      is_away = true;
      for (const one of sockets) one.destroy();
    },
    back() {
      is_away = false;
    },
    heal() {
      wanted = null;
      delay_ms = 0;
      is_swallowing = false;
      is_away = false;
    },
    async release() {
      if (held === null) throw new Error("nothing is held back");
      const { inner, message } = held;
      held = null;
      const ended = new Promise<void>((resolve) => inner.on("close", () => resolve()));
      // The message is followed by one that ends the session.
      inner.end(Buffer.concat([message, Buffer.from([0x58, 0, 0, 0, 4])]));
      inner.resume();
      await ended;
    },
    async close() {
      for (const one of sockets) one.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
