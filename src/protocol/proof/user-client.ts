// How a user's commands connect to a server on another host: by TLS 1.3. The server is proved by the authority that this
// host trusts, the user by a certificate or by MUNGE (docs/identity.md).
//
// C1. Nothing about the user is sent before the server has shown a certificate of that authority. The certificate must have the role `server` and the name in
//     PBS_SERVER, and must not be in the list of revoked certificates that this host keeps.
// C2. A credential is made for this connection alone (claim.ts).

import { existsSync } from "node:fs";
import type { Socket } from "node:net";
import type { PeerCertificate, TLSSocket } from "node:tls";
import type { Credentials } from "#identity/files/credentials.ts";
import { readLogin, readUserCredentials } from "#identity/files/user-credentials.ts";
import { identityIn, namesIn, serverFault } from "#identity/peer.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import { ALPN } from "../wire/alpn.ts";
import { encodeFrame, type Frame, frameDecoder } from "../wire/frame.ts";
import { LIMITS } from "../wire/limits.ts";
import { handshakeFault } from "../wire/tls-fault.ts";
import { claimText } from "./claim.ts";
import { bindingOf, PROVE, PROVED } from "./exchange.ts";
import { type Munge, openMunge } from "./munge.ts";
import { PBSE_BADCRED, PBSE_BADHOST, PBSE_SYSTEM, refusal, ServerUnreachable } from "./unreachable.ts";

export type UserTarget = {
  /** PBS_HOME */
  readonly home: string;
  /** PBS_SERVER: the name in the server's certificate */
  readonly server: string;
  /** address and port of the server */
  readonly host: string;
  readonly port: number;
  /** the complex has one user, the caller (user mode) */
  readonly own: boolean;
  /** node name of this host */
  readonly here: string;
  /** PBS_AUTH_METHOD: `munge` is used even if the user has a certificate; null: unset */
  readonly method: string | null;
  /** munged's socket; null: the default of libmunge */
  readonly munge_socket: string | null;
  /** gives the attempt up when it is aborted */
  readonly ended?: AbortSignal;
};

/** Connects and proves the user. The socket has no listener for errors: the caller must add one. Rejects with ServerUnreachable. */
export async function connectAsUser(target: UserTarget): Promise<Socket> {
  const { credentials, is_user } = shown(target);
  const socket = await dial(target, credentials, await revokedOf(target.home));
  try {
    const credential = target.own || is_user ? null : await mungeCredential(target, bindingOf(socket));
    const answer = await exchange(socket, encodeFrame(PROVE, { credential }));
    if (answer.type === PROVED) return socket;
    throw refusal(answer.data);
  } catch (error) {
    socket.destroy();
    throw error instanceof ServerUnreachable ? error : unreachable(messageOf(error), PBSE_SYSTEM, error);
  }
}

const unreachable = (line: string, pbse: number, cause?: unknown): ServerUnreachable => new ServerUnreachable(line, pbse, cause);

/** Returns the certificate to show. is_user: it names the user. */
function shown({ home, server, here, own, method }: UserTarget): { readonly credentials: Credentials; readonly is_user: boolean } {
  try {
    const users = own || method?.toLowerCase() === "munge" ? null : readUserCredentials(home, { server, host: here });
    if (users !== null) return { credentials: users, is_user: true };
    const login = readLogin(home, own);
    if (login !== null) return { credentials: login, is_user: false };
  } catch (error) {
    throw unreachable(messageOf(error), PBSE_BADCRED, error);
  }
  throw unreachable(`${home}/identity has no certificate for users of this host: as root, partita cert renew`, PBSE_BADCRED);
}

/** Serial numbers of revoked certificates. Most hosts have no list, and its schema takes time to load. */
async function revokedOf(home: string): Promise<ReadonlySet<string>> {
  if (!existsSync(`${home}/identity/revoked.json`)) return NOTHING_REVOKED;
  try {
    const { revokedSerials } = await import("#identity/files/revoked.ts");
    return revokedSerials(home);
  } catch (error) {
    throw unreachable(messageOf(error), PBSE_BADCRED, error);
  }
}

const NOTHING_REVOKED: ReadonlySet<string> = new Set<string>();

async function dial(target: UserTarget, { key, certificate, authority }: Credentials, revoked: ReadonlySet<string>): Promise<TLSSocket> {
  const { connect } = await import("node:tls");
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: target.host,
      port: target.port,
      key,
      cert: certificate,
      ca: [authority],
      minVersion: "TLSv1.3",
      // Without this, the variable NODE_TLS_REJECT_UNAUTHORIZED of the caller would decide.
      rejectUnauthorized: true,
      ALPNProtocols: [ALPN.user],
      checkServerIdentity: (_host: string, peer: PeerCertificate) => serverError(peer, target.server, revoked),
    });
    const fail = (error: Error): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(dialFault(target, error));
    };
    const timer = setTimeout(() => fail(late()), LIMITS.dial_ms_max);
    const giveUp = (): void => fail(late());
    target.ended?.addEventListener("abort", giveUp, { once: true });
    socket.once("error", fail);
    socket.once("secureConnect", () => {
      if (socket.alpnProtocol !== ALPN.user) return fail(new Error("it takes no commands from other hosts"));
      clearTimeout(timer);
      target.ended?.removeEventListener("abort", giveUp);
      socket.removeListener("error", fail);
      socket.setKeepAlive(true, LIMITS.keepalive_ms);
      resolve(socket);
    });
  });
}

const late = (): Error => Object.assign(new Error("it does not answer in time"), { code: "ETIME" });

/** Checks the certificate of the peer (C1). undefined: the peer is the server. */
function serverError(peer: PeerCertificate, server: string, revoked: ReadonlySet<string>): Error | undefined {
  const fault = serverFault(identityIn(namesIn(peer.subjectaltname), peer.serialNumber), server, revoked);
  return fault === null ? undefined : new Error(fault);
}

function dialFault({ host, port }: UserTarget, error: Error): ServerUnreachable {
  switch (codeOf(error)) {
    case "ECONNREFUSED":
      return unreachable("Connection refused", PBSE_SYSTEM, error);
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return unreachable("Unknown Host.", PBSE_BADHOST, error);
    case "ETIMEDOUT":
      return unreachable("Connection timed out", PBSE_SYSTEM, error);
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return unreachable("No route to host", PBSE_SYSTEM, error);
    // The server closes connections that it cannot take now.
    case "ECONNRESET":
      return new ServerUnreachable(`the server at ${host}, port ${port}, closed the connection`, PBSE_SYSTEM, error, true);
    case "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL":
      return unreachable(
        `the server at ${host}, port ${port}, takes no commands from other hosts: it is of an older version`,
        PBSE_SYSTEM,
        error,
      );
    default:
      return unreachable(`the server at ${host}, port ${port}: ${handshakeFault(error)}`, PBSE_BADCRED, error);
  }
}

let opened: { readonly munge: Munge; readonly socket: string | null } | null = null;

/** Makes a credential for one connection (C2). binding: identifies the connection. */
async function mungeCredential({ server, munge_socket }: UserTarget, binding: string): Promise<string> {
  if (opened === null || opened.socket !== munge_socket) {
    const { munge_calls_max: calls_max, munge_waiting_max: waiting_max } = LIMITS;
    opened = { munge: openMunge({ socket: munge_socket, calls_max, waiting_max }), socket: munge_socket };
  }
  try {
    return await opened.munge.encode(claimText({ server, binding, made_s: Math.floor(Date.now() / 1000) }));
  } catch (error) {
    throw unreachable(`MUNGE cannot prove who you are: ${messageOf(error)}`, PBSE_BADCRED, error);
  }
}

/** Sends the proof and waits for its answer. Rejects with ServerUnreachable or with the system's error. */
function exchange(socket: TLSSocket, proof: string): Promise<Frame> {
  return new Promise((resolve, reject) => {
    const decoder = frameDecoder(LIMITS.proof_chars_max, new Set([PROVED, "refused"]));
    const done = (act: () => void): void => {
      clearTimeout(timer);
      socket.removeAllListeners("data").removeAllListeners("error").removeAllListeners("close");
      act();
    };
    const fail = (error: Error): void => done(() => reject(error));
    const timer = setTimeout(() => fail(new Error("the server does not say whether it accepts the user")), LIMITS.proof_ms_max);
    socket.setEncoding("utf8");
    socket.on("error", (error) => fail(new Error(handshakeFault(error))));
    socket.on("close", () => fail(new Error("the server closed the connection")));
    socket.on("data", (chunk: Buffer | string) => {
      try {
        decoder.add(String(chunk));
        const taken = decoder.take();
        if (taken !== null) done(() => resolve(taken.frame));
      } catch (error) {
        fail(new Error(messageOf(error)));
      }
    });
    socket.write(proof);
  });
}
