// Connects the server to a scheduler on another host: one connection over TLS 1.3, on which both ends have a certificate of
// the complex's authority (docs/identity.md). The caller decides whether and when to try again after a failure.
//
// C1. The peer must have a certificate with the role `host` and the name in the scheduler's sched_host. Its address proves
//     nothing.
// C2. The connection counts when the peer has said hello with the name of that scheduler, for which it has dial_ms_max. A
//     peer of that host with another name is another scheduler (WrongScheduler).

import type { PeerCertificate, TLSSocket } from "node:tls";
import type { Credentials } from "#identity/files/credentials.ts";
import { type HostIdentity, hostFault, identityIn, namesIn } from "#identity/peer.ts";
import { printableText } from "#model/attribute-checks.ts";
import { isRecord } from "#support/guards.ts";
import { ALPN } from "./alpn.ts";
import { clientOf, createIpc } from "./ipc.ts";
import { LIMITS, type Limits } from "./limits.ts";
import { type LinkHandlers, NO_UID, ServerConnection, type ServerLink } from "./server-link.ts";
import { handshakeFault } from "./tls-fault.ts";
import { identityOf } from "./tls-listener.ts";

/** The error if a scheduler of another name is at that port. */
export class WrongScheduler extends Error {
  override readonly name = "WrongScheduler";
}

const NO_ANSWER: Error = Object.assign(new Error("it does not answer"), { code: "ETIMEDOUT" });

export type SchedCall = {
  readonly sched: string;
  /** name of the host, as the certificate must have it; also the address, unless there is another */
  readonly host: string;
  readonly address?: string;
  readonly port: number;
  /** the server's own */
  readonly credentials: Credentials;
  /** sent at once, before the scheduler says hello */
  readonly first?: { readonly type: string; readonly data: unknown };
  /** accepted frame types */
  readonly types: readonly string[];
  /** why a host is refused, in words for the log; null: it is welcome */
  fault(identity: HostIdentity): string | null;
  readonly limits?: Partial<Limits>;
};

export type CallHandlers = Pick<LinkHandlers, "onProblem"> & {
  /** the scheduler has said hello; the frame follows */
  onLink(link: ServerLink): void;
  onFrame(link: ServerLink, type: string, data: unknown): void;
  /** called once, when the connection has ended or could not be made. why null: the connection had counted (C2) before it ended */
  onEnd(link: ServerLink | null, why: Error | null): void;
};

/** Makes one attempt. Returns a function that ends the connection now. Throws if the credentials cannot be used. */
export function callScheduler(call: SchedCall, handlers: CallHandlers): () => void {
  const limits: Limits = { ...LIMITS, ...call.limits };
  const ipc = createIpc(new Set([...call.types, "refused"]));
  ipc.config.maxRetries = 0;
  ipc.config.stopRetrying = true;
  ipc.config.tls = tlsOptions(call);
  ipc.connectToNet("server", call.address ?? call.host, call.port);
  const client = clientOf(ipc);
  let is_there = false;
  client.socket.once("connect", () => {
    is_there = true;
  });
  const timer = setTimeout(() => fail(is_there ? new Error("it does not prove itself in time") : NO_ANSWER), limits.dial_ms_max).unref();
  let why: Error | null = null;
  let link: ServerConnection | null = null;
  let counts = false;

  const fail = (error: Error): void => {
    why ??= error;
    client.socket.destroy();
  };
  client.on("error", (error: Error) => {
    why ??= new Error(handshakeFault(error), { cause: error });
  });
  client.on("connect", () => {
    const socket = client.socket as TLSSocket;
    if (socket.alpnProtocol !== ALPN.sched) return fail(new Error("it speaks another protocol"));
    const identity = identityOf(socket);
    const fault = hostFault(identity, call.host) ?? (identity === null ? null : call.fault(identity));
    if (identity === null || fault !== null) return fail(new Error(fault ?? "it has no certificate of a host"));
    client.socket.setKeepAlive(true, limits.keepalive_ms);
    const peer = { pid: 0, uid: NO_UID, gid: NO_UID, host: identity, sched: call.sched };
    const writer = { parser: client.parser, write: (_socket: unknown, text: string) => client.send(text) };
    const { first } = call;
    if (first === undefined) {
      link = new ServerConnection(writer, client.socket, peer, limits, [], handlers);
      return;
    }
    link = new ServerConnection(writer, client.socket, peer, limits, [], { ...handlers, speaks_first: true });
    link.send(first.type, first.data);
  });
  client.on("disconnect", () => {
    clearTimeout(timer);
    link?.closed();
    handlers.onEnd(counts ? link : null, counts ? null : (why ?? new Error("it closed the connection")));
  });
  client.on("refused", (data: unknown) => fail(new Error(refusalIn(data))));
  for (const type of call.types) {
    client.on(type, (data: unknown) => {
      if (link === null || why !== null) return;
      if (!counts) {
        const fault = introduction(type, data, call.sched);
        if (fault !== null) return fail(fault);
        counts = true;
        clearTimeout(timer);
        handlers.onLink(link);
      }
      handlers.onFrame(link, type, data);
    });
  }
  return () => fail(new Error("it is not wanted any more"));
}

/** Checks the hello of the peer (C2). Returns null if it is the scheduler. */
function introduction(type: string, data: unknown, sched: string): Error | null {
  if (type !== "sched-hello" || !isRecord(data)) return new Error("it does not say hello");
  return data["name"] === sched ? null : new WrongScheduler(`it is the scheduler ${JSON.stringify(data["name"]).slice(0, 40)}`);
}

const REASON_CHARS_MAX = 200;

function refusalIn(data: unknown): string {
  const text = isRecord(data) ? data["text"] : undefined;
  return `it refuses this server${typeof text === "string" ? `: ${printableText(text.slice(0, REASON_CHARS_MAX))}` : ""}`;
}

function tlsOptions({ host, credentials }: SchedCall): Record<string, unknown> {
  const { key, certificate, authority } = credentials;
  return {
    key,
    cert: certificate,
    ca: [authority],
    minVersion: "TLSv1.3",
    ALPNProtocols: [ALPN.sched],
    rejectUnauthorized: true,
    checkServerIdentity: (_host: string, peer: PeerCertificate) => {
      const fault = hostFault(identityIn(namesIn(peer.subjectaltname), peer.serialNumber), host);
      return fault === null ? undefined : new Error(fault);
    },
  };
}
