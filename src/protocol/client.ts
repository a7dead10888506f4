// The client library of the commands. It holds one connection to the server with many requests in flight. It loads only
// node:net, so that a command starts quickly (CONTRIBUTING.md).
//
// C1. Every request is answered exactly once: by the server's reply, or by ServerUnreachable if the connection ends first.
// C2. The parts of a reply arrive in order, before the reply.
// C3. In a complex with two servers, a connection is used for requests only after the server has answered a question over it, which a server that was stopped, or that
//     another one may have replaced, does not answer. The answer names the host of the server.

import type { Socket } from "node:net";
import { codeOf } from "#support/caught.ts";
import { isRecord } from "#support/guards.ts";
import type { Opened } from "./failover/active-server.ts";
import type { GridRequest } from "./grid-messages.ts";
import type { Request } from "./messages.ts";
import { PBSE_NOCONNECTS, PBSE_PERM, PBSE_PROTOCOL, PBSE_SYSTEM, refusal, ServerUnreachable } from "./proof/unreachable.ts";
import { type ConnectTo, type PlaceConf, type ServerPlace, serverPlace, socketPlace, type TwoServers } from "./server-place.ts";
import type { Frame } from "./wire/frame.ts";
import { FRAME_END, frameDecoder } from "./wire/frame.ts";
import { LIMITS } from "./wire/limits.ts";
import type { PartFrame, Reply } from "./wire/reply.ts";
import { gridSocketPath } from "./wire/socket-path.ts";
import { versionTalk } from "./wire/versions.ts";

export { ServerUnreachable } from "./proof/unreachable.ts";

export type RequestOptions = {
  /** called with the items of a status reply as they arrive */
  readonly onPart?: (items: readonly unknown[]) => void;
};

/** Returns a listener for `onPart` that adds the items to a list. T: the type of the items in replies to the request. */
export const collectInto =
  <T>(items: T[]): NonNullable<RequestOptions["onPart"]> =>
  (part) => {
    for (const item of part) items.push(item as T);
  };

export type ServerConnection = {
  /** Resolves with the server's reply, including refusals. Rejects only with ServerUnreachable. */
  request(request: Request, options?: RequestOptions): Promise<Reply>;
  /** Number of requests that have no reply yet. */
  readonly open_requests: number;
  /** in a complex with two servers: the host of the server; undefined: it has not answered yet */
  readonly server?: string | undefined;
  /** Ends the connection; requests without a reply are rejected. */
  close(): void;
};

/** A connection that also carries requests of the grid's commands. */
export type OpenConnection = Omit<ServerConnection, "request"> & {
  request(request: Request | GridRequest, options?: RequestOptions): Promise<Reply>;
};

export type ConnectOptions = {
  /** time in ms during which the client tries again if the server is too busy to accept the connection (default 10 s) */
  readonly busy_ms_max?: number;
  readonly flow?: Flow | undefined;
};

/** Functions by which the owner of a connection limits its flow of data and ends it. Used when a resident runs a command for a launcher. */
export type Flow = {
  /** ends the connection when nobody needs its data any more */
  readonly ended: AbortSignal;
  /** Returns null if more data may arrive now, otherwise a promise that resolves when more data may arrive. */
  room(): Promise<void> | null;
  /** Returns a connection to the place. It is used instead of a new connection that the client would open. */
  connect?(place: ServerPlace): Promise<OpenConnection>;
};

/** A connection that can be used again, with another flow. */
export type KeptConnection = OpenConnection & {
  server?: string | undefined;
  /** Sets the flow that controls the requests from now on. undefined: none. */
  follow(flow: Flow | undefined): void;
  /** whether the connection can no longer be used */
  readonly broken: boolean;
  readonly socket: Socket;
};

/** Connects to the server of a complex. conf: the configuration (support/conf.ts). Rejects with ServerUnreachable. */
export async function connectServer(conf: PlaceConf, options: ConnectOptions = {}): Promise<ServerConnection> {
  const place = serverPlace(conf);
  return options.flow?.connect?.(place) ?? connectPlace(place, options);
}

/** Connects to the daemon of the grid (pbs_grid) in a PBS_HOME. Rejects with ServerUnreachable. */
export async function connectGrid({ home }: Pick<PlaceConf, "home">, options: ConnectOptions = {}): Promise<OpenConnection> {
  const place = socketPlace(gridSocketPath(home));
  return options.flow?.connect?.(place) ?? connectPlace(place, options);
}

/** Does the same as connectServer for the path of a unix socket. */
export const connectSocket = (path: string, options: ConnectOptions = {}): Promise<KeptConnection> =>
  connectPlace(socketPlace(path), options);

/** Does the same as connectServer for a place. */
export async function connectPlace(place: ServerPlace, options: ConnectOptions = {}): Promise<KeptConnection> {
  const busy_ms_max = options.busy_ms_max ?? 10_000;
  const begin_ms = performance.now();
  for (let wait_ms = 5; ; wait_ms = Math.min(wait_ms * 2, 200)) {
    try {
      if (options.flow?.ended.aborted === true) throw new Error("nobody waits for it");
      const connection = "connect" in place ? converse(await place.connect()) : await searched(place);
      connection.follow(options.flow);
      return connection;
    } catch (error) {
      const may_wait = isBusy(error) && performance.now() - begin_ms < busy_ms_max;
      if (!may_wait) throw unreachable(error);
    }
    await new Promise((resolve) => setTimeout(resolve, wait_ms));
  }
}

/** Connects to the active one of two servers (C3). */
async function searched({ near, servers, wait, answer }: TwoServers): Promise<KeptConnection> {
  const { connectActive, failoverAnswer, failoverWait } = await import("./failover/active-server.ts");
  const opening =
    (connect: ConnectTo) =>
    async (ended: AbortSignal): Promise<Opened<KeptConnection>> => {
      const connection = converse(await connect(ended));
      return { connection, answered: leads(connection), close: () => connection.close() };
    };
  return connectActive({
    near: near === null ? null : opening(near),
    servers: servers.map(opening),
    wait_ms: failoverWait(wait),
    answer_ms: failoverAnswer(answer),
  });
}

/** Asks the server whether it leads: no other server answers. Resolves when it has answered; the connection then names its host. */
async function leads(connection: KeptConnection): Promise<void> {
  try {
    connection.server = await hostOf(connection);
  } catch (error) {
    if (error instanceof ServerUnreachable && error.pbse !== PBSE_SYSTEM) throw error;
    throw Object.assign(new Error("the connection was lost", { cause: error }), { code: "ECONNRESET" });
  }
}

/** Returns the host of the server, as the server says it. Rejects with ServerUnreachable. */
export async function hostOf(connection: ServerConnection): Promise<string | undefined> {
  let host: string | undefined;
  const onPart = (items: readonly unknown[]): void => {
    for (const item of items) host ??= hostIn(item);
  };
  await connection.request({ kind: "status", object: "server", ids: [], attrs: ["server_host"] }, { onPart });
  return host;
}

function hostIn(item: unknown): string | undefined {
  const attrs = isRecord(item) && isRecord(item["attrs"]) ? item["attrs"] : {};
  const host = attrs["server_host"];
  return typeof host === "string" ? host : undefined;
}

/** Whether the server of a kept connection still answers (C3). If the complex has one server, nothing is asked. */
export async function stillAnswers(connection: KeptConnection, place: ServerPlace): Promise<boolean> {
  if ("connect" in place) return true;
  const { failoverAnswer } = await import("./failover/active-server.ts");
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), failoverAnswer(place.answer));
    leads(connection)
      .then(
        () => resolve(true),
        () => resolve(false),
      )
      .finally(() => clearTimeout(timer));
  });
}

/** EAGAIN: the listen queue of a unix socket is full at the moment. `again`: the server closed a TLS connection before the client had proved its user. */
const isBusy = (error: unknown): boolean => codeOf(error) === "EAGAIN" || (error instanceof ServerUnreachable && error.again);

function unreachable(error: unknown): ServerUnreachable {
  if (error instanceof ServerUnreachable) return error;
  switch (codeOf(error)) {
    case "EACCES":
    case "EPERM":
      return new ServerUnreachable("No Permission.", PBSE_PERM, error);
    case "EAGAIN":
      return new ServerUnreachable("No free connections", PBSE_NOCONNECTS, error);
    default:
      return new ServerUnreachable("Connection refused", PBSE_SYSTEM, error);
  }
}

type Waiting = {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
  readonly onPart: RequestOptions["onPart"];
};

/** Sends requests and receives replies over a connected socket. */
function converse(socket: Socket): KeptConnection {
  const waiting = new Map<number, Waiting>();
  const decoder = frameDecoder(LIMITS.daemon_frame_chars_max);
  let next_id = 1;
  let unsent = "";
  let broken: ServerUnreachable | null = null;
  let flow: Flow | undefined;
  const talk = versionTalk();

  const fail = (error: ServerUnreachable): void => {
    if (broken !== null) return;
    broken = error;
    flow?.ended.removeEventListener("abort", end);
    socket.destroy();
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  const receive = (frame: Frame): void => {
    const data = frame.data as { readonly id: number };
    if (frame.type === "refused") return fail(refusal(frame.data));
    const strange = talk.incoming(frame);
    if (strange !== null) return fail(new ServerUnreachable(strange, PBSE_PROTOCOL));
    const asked = waiting.get(data?.id);
    if (asked === undefined) return;
    if (frame.type === "part") asked.onPart?.((data as PartFrame).items);
    if (frame.type !== "reply") return;
    waiting.delete(data.id);
    if (waiting.size === 0) socket.unref();
    asked.resolve(data as Reply);
  };
  const end = (): void => fail(new ServerUnreachable("Communication failure.", PBSE_SYSTEM));
  socket.setEncoding("utf8");
  socket.on("data", (chunk) => {
    try {
      decoder.push(chunk as unknown as string, receive);
    } catch (error) {
      fail(new ServerUnreachable("Batch protocol error", PBSE_PROTOCOL, error));
    }
    const asked = flow;
    const wait = asked?.room() ?? null;
    if (wait === null || broken !== null) return;
    socket.pause();
    wait.then(
      () => {
        if (flow === asked) socket.resume();
      },
      () => undefined,
    );
  });
  socket.on("error", (error) => fail(new ServerUnreachable("Communication failure.", PBSE_SYSTEM, error)));
  socket.on("close", () => fail(new ServerUnreachable("Communication failure.", PBSE_SYSTEM)));
  socket.unref();

  /** Collects the requests of one turn of the event loop and sends them in one write. */
  const send = (text: string): void => {
    if (unsent === "") {
      queueMicrotask(() => {
        const all = unsent;
        unsent = "";
        if (broken === null) socket.write(all);
      });
    }
    unsent += text;
  };

  return {
    request(request, options = {}) {
      if (broken !== null) return Promise.reject(broken);
      return new Promise<Reply>((resolve, reject) => {
        const id = next_id++;
        waiting.set(id, { resolve, reject, onPart: options.onPart });
        socket.ref();
        send(talk.outgoing(`{"type":"request","data":{"id":${id},${JSON.stringify(request).slice(1)}}${FRAME_END}`));
      });
    },
    get open_requests() {
      return waiting.size;
    },
    get broken() {
      return broken !== null;
    },
    socket,
    follow(next) {
      flow?.ended.removeEventListener("abort", end);
      flow = next;
      // The flow that paused the socket may never make room again: its launcher has received everything and exited.
      socket.resume();
      flow?.ended.addEventListener("abort", end);
      if (flow?.ended.aborted === true) end();
    },
    close: end,
  };
}
