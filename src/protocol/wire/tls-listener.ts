// Links over TLS 1.3: the side that accepts connections (docs/identity.md). It is the server, or a scheduler on another
// host. The rules of link-server.ts apply, and these:
//
// S1. A link needs a certificate of the authority that fault() accepts. A peer without one can ask one question, for a
//     certificate; nothing else that it sends is read. A scheduler takes no questions.
// S2. Connections that have proved nothing are bounded (unproved.ts), and each has little time.
// S3. An open link ends when its certificate is no longer accepted (review()).
// S4. Each connection proves itself by the key of its certificate: no session is resumed.

import { constants } from "node:crypto";
import type { Socket } from "node:net";
import type { SecureContextOptions, TLSSocket, Server as TlsServer } from "node:tls";
import type { Credentials } from "#identity/files/credentials.ts";
import type { HostIdentity } from "#identity/peer.ts";
import { certificateFacts } from "#identity/x509/certificate.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import { sparingly } from "../bounds/sparingly.ts";
import { ALPN } from "./alpn.ts";
import { encodeFrame, FrameError, frameDecoder } from "./frame.ts";
import { createIpc, serverOf, setInbox } from "./ipc.ts";
import type { LinkServer } from "./ipc-transport.ts";
import { LIMITS, type Limits } from "./limits.ts";
import { isRemoteUser, type LinkPeer, NO_UID } from "./link-peer.ts";
import { type Admission, acceptLinks, PBSE_BADCRED, PBSE_NOCONNECTS, startListening, type Verdict } from "./link-server.ts";
import type { LinkHandlers } from "./server-link.ts";
import type { Shares } from "./share.ts";
import { refusedCertificate } from "./tls-fault.ts";
import { plainAddress, unprovedConnections } from "./unproved.ts";

export type Question = { readonly type: string; readonly data: unknown };
export type Answer = { readonly type: string; readonly data: unknown };

/** Examines the proof of a client whose certificate has the role `user` or `login`. null: the client has gone. */
export type UserProofs = { take(socket: TLSSocket, identity: HostIdentity): Promise<Verdict | null> };
/** failed: called for a client at this address that did not prove its user. say: for the log. */
export type ProofHooks = { readonly failed: (address: string) => void; readonly say: (text: string) => void };

export type TlsListenOptions = LinkHandlers & {
  /** not 0, which node-ipc does not take for a port */
  readonly port: number;
  /** `::`: every address of this host */
  readonly address: string;
  /** accepted frame types of links */
  readonly types: readonly string[];
  /** what links are for (ALPN) */
  readonly protocol: string;
  /** the listener's own */
  readonly credentials: Credentials;
  /** why a host is refused, in words for the log; null: it is accepted */
  fault(identity: HostIdentity): string | null;
  /** null: this listener takes no questions */
  readonly questions: Questions | null;
  /** absent: users of other hosts are refused */
  readonly proofs?: (limits: Limits, hooks: ProofHooks) => UserProofs;
  readonly limits?: Partial<Limits>;
  /** what the peers of all listeners of this process hold (share.ts) */
  readonly shares?: Shares;
};

export type Questions = {
  /** accepted frame types */
  readonly types: readonly string[];
  /** identity null: the peer has shown no certificate. address: the peer's address; it proves nothing */
  answer(question: Question, identity: HostIdentity | null, address: string): Promise<Answer>;
};

export type TlsLinkServer = LinkServer & {
  /** Ends links whose certificates are no longer accepted (S3). Called when certificates were revoked, and from time to time because they expire. */
  review(): void;
  /** shows this certificate to new connections */
  show(credentials: Credentials): void;
};

/** Starts to listen on every address of this host. Rejects if the port cannot be opened. */
export const listenEverywhere = (options: Omit<TlsListenOptions, "address">): Promise<TlsLinkServer> =>
  listenTls({ ...options, address: "::" }).catch((error: unknown) => {
    // This host has no IPv6.
    if (codeOf(error) !== "EAFNOSUPPORT" && codeOf(error) !== "EADDRNOTAVAIL") throw error;
    return listenTls({ ...options, address: "0.0.0.0" });
  });

/** Starts to listen. Rejects if the port cannot be opened. */
export async function listenTls(options: TlsListenOptions): Promise<TlsLinkServer> {
  const limits: Limits = { ...LIMITS, ...options.limits };
  const { questions } = options;
  const ipc = createIpc(new Set([...options.types, ...(questions?.types ?? [])]));
  ipc.config.maxConnections = limits.connections_max;
  ipc.config.tls = {
    ...contextOf(options.credentials),
    requestCert: true,
    // A host that wants to join has no certificate yet: admission() decides what a peer may do (S1), and says why a peer is refused.
    rejectUnauthorized: false,
    ALPNProtocols: [options.protocol, ...(options.proofs === undefined ? [] : [ALPN.user]), ...(questions === null ? [] : [ALPN.question])],
    handshakeTimeout: limits.handshake_ms_max,
  };
  ipc.serveNet(options.address, options.port);
  const server = serverOf(ipc);
  const say = sparingly((text) => options.onProblem?.(text, null));
  const unproved = unprovedConnections(limits, say);
  const users = options.proofs?.(limits, { failed: unproved.failed, say }) ?? null;
  const door: Door = { options, limits, say, proved: unproved.leave, asking: new Map(), users };
  const onProblem: LinkHandlers["onProblem"] = (text, peer) => (peer === null ? say(text) : options.onProblem?.(text, peer));
  const admit = (socket: Socket): Admission => admission(door, socket as TLSSocket);
  const carrier = { server, types: options.types, limits, admit, ...(options.shares === undefined ? {} : { shares: options.shares }) };
  const links = acceptLinks(carrier, { ...options, onProblem });
  const listening = startListening(server);
  const tls = server.server as TlsServer;
  tls.on("connection", (raw: Socket) => unproved.enter(raw));
  tls.on("tlsClientError", (error: Error, socket: TLSSocket) => {
    socket.destroy();
    // A peer that only disconnects is not logged: `partita join` reads the authority's certificate, disconnects and connects again.
    if (codeOf(error) !== "ECONNRESET") say(`a handshake failed: ${error.message}`);
  });
  await listening;

  return {
    get links() {
      return new Set(links.values());
    },
    setLimits: (changed) => void Object.assign(limits, changed),
    review() {
      for (const link of links.values()) {
        const fault = reviewFault(link.peer, options);
        if (fault === null) continue;
        options.onProblem?.(fault, link.peer);
        link.destroy();
      }
    },
    show: (credentials) => tls.setSecureContext(contextOf(credentials)),
    close() {
      return new Promise((resolve) => {
        tls.once("close", () => resolve());
        server.stop();
        unproved.close();
      });
    },
  };
}

/** Returns why an open link is no longer accepted (S3); null: it is. */
function reviewFault({ host, until_s = Number.POSITIVE_INFINITY }: LinkPeer, { fault }: TlsListenOptions): string | null {
  if (host === undefined) return null;
  return fault(host) ?? (Date.now() / 1000 < until_s ? null : `the certificate ${host.serial} of ${host.host} has expired`);
}

/**
 * What admission needs. say: writes into the log. proved: notes that the connection of this socket has proved itself.
 * asking: number of unanswered questions by the name of the host.
 */
type Door = {
  readonly options: TlsListenOptions;
  readonly limits: Limits;
  readonly say: (text: string) => void;
  readonly proved: (socket: Socket) => void;
  readonly asking: Map<string, number>;
  /** proofs of users; null: there are none */
  readonly users: UserProofs | null;
};

/** Decides about a new connection (S1): a link, a question, or nothing. */
function admission(door: Door, socket: TLSSocket): Admission {
  socket.setKeepAlive(true, door.limits.keepalive_ms);
  const identity = identityOf(socket);
  const fault = identity === null ? certificateFault(socket) : door.options.fault(identity);
  const { questions } = door.options;
  if (questions !== null && socket.alpnProtocol === ALPN.question && fault === null) {
    if (identity !== null && !beginsQuestion(door, socket, identity)) {
      const text = "too many questions at a time";
      return { kind: "refused", refusal: { problem: `${text} of host ${identity.host}`, code: PBSE_NOCONNECTS, text } };
    }
    takeQuestion(door, questions, socket, identity);
    return { kind: "elsewhere" };
  }
  if (identity !== null && fault === null) {
    const until_s = expiryOf(socket);
    const peer = { pid: 0, uid: NO_UID, gid: NO_UID, host: identity, address: plainAddress(socket.remoteAddress ?? ""), until_s };
    if (socket.alpnProtocol === door.options.protocol && !isRemoteUser(peer)) {
      door.proved(socket);
      return { kind: "peer", peer };
    }
    if (socket.alpnProtocol === ALPN.user && isRemoteUser(peer) && door.users !== null) {
      door.proved(socket);
      const verdict = door.users.take(socket, identity);
      return { kind: "later", verdict: verdict.then((each) => each && reviewed(each, until_s, door.options)) };
    }
  }
  const known = identity !== null && typeof socket.alpnProtocol === "string";
  const reason = fault ?? (known ? wrongRole(identity) : noIdentity(socket));
  const text = fault ?? (known ? `Invalid credential: ${reason}` : "Invalid credential");
  return { kind: "refused", refusal: { problem: `${reason}, from ${addressOf(socket)}`, code: PBSE_BADCRED, text } };
}

/** Looks at the certificate of a proved user again: it may have been revoked or have expired during the proof, and a review sees only links (S3). */
function reviewed(verdict: Verdict, until_s: number, options: TlsListenOptions): Verdict {
  if (verdict.kind === "refused") return verdict;
  const peer = { ...verdict.peer, until_s };
  const fault = reviewFault(peer, options);
  return fault === null ? { ...verdict, peer } : { kind: "refused", refusal: { problem: fault, code: PBSE_BADCRED, text: fault } };
}

/** Counts a question of a host that has proved itself. Returns false if the host has too many. */
function beginsQuestion({ asking, limits, proved }: Door, socket: Socket, { host, role }: HostIdentity): boolean {
  proved(socket);
  // Questions are counted by role, so that users of the host cannot prevent its mom from asking.
  const key = `${role} ${host}`;
  const others = asking.get(key) ?? 0;
  if (others >= limits.host_questions_max) return false;
  asking.set(key, others + 1);
  socket.once("close", () => {
    const left = (asking.get(key) ?? 1) - 1;
    if (left > 0) asking.set(key, left);
    else asking.delete(key);
  });
  return true;
}

const wrongRole = ({ host, role }: HostIdentity): string => `the certificate of ${host} with the role ${role} cannot be used for this`;

/** Reads the one frame of a question, sends the answer and ends the connection. */
function takeQuestion({ limits, say }: Door, questions: Questions, socket: TLSSocket, identity: HostIdentity | null): void {
  const timer = setTimeout(() => socket.destroy(), limits.question_ms_max).unref();
  socket.once("close", () => clearTimeout(timer));
  const decoder = frameDecoder(limits.question_chars_max, new Set(questions.types));
  let asked = false;
  setInbox(socket, (chunk) => {
    if (asked) return;
    try {
      decoder.add(chunk);
      const taken = decoder.take();
      if (taken === null) return;
      asked = true;
      void questions.answer(taken.frame, identity, plainAddress(socket.remoteAddress ?? "")).then(
        ({ type, data }) => socket.end(encodeFrame(type, data)),
        () => socket.destroy(),
      );
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      say(`${messageOf(error)}, from ${addressOf(socket)}`);
      socket.destroy();
    }
  });
}

const addressOf = ({ remoteAddress = "" }: Socket): string => plainAddress(remoteAddress) || "an address that has gone";

/** The authority's certificate is sent too, so that a new host can compare it with its token. Without tickets, no session can be resumed (S4). */
export const contextOf = ({ key, certificate, authority }: Credentials): SecureContextOptions => ({
  key,
  cert: certificate + authority,
  ca: [authority],
  minVersion: "TLSv1.3",
  secureOptions: constants.SSL_OP_NO_TICKET,
});

/** Returns the identity of the peer; null: it has shown no certificate, or one that is not of the authority or has no name of a host. */
export function identityOf(socket: TLSSocket): HostIdentity | null {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  return certificate === undefined ? null : certificateFacts(certificate).identity;
}

/** Returns the end of the certificate that the peer has shown, in seconds since the epoch. */
const expiryOf = (socket: TLSSocket): number => {
  const until = socket.getPeerX509Certificate()?.validToDate;
  return until === undefined ? Number.POSITIVE_INFINITY : until.getTime() / 1000;
};

/** Returns what is wrong with a certificate that gives no identity, for the log and for its holder; null: the peer has shown none. */
function certificateFault(socket: TLSSocket): string | null {
  if (socket.getPeerX509Certificate() === undefined) return null;
  return socket.authorized ? "the certificate names no host" : refusedCertificate(messageOf(socket.authorizationError));
}

/** Returns why a peer gets no link although its certificate has no fault: it speaks no protocol of ours, or it has shown no certificate. */
const noIdentity = ({ alpnProtocol }: TLSSocket): string =>
  alpnProtocol === false || alpnProtocol === null ? "a peer that speaks no protocol of ours" : "a peer without certificate";
