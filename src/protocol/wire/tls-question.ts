// A host's question about certificates: one TLS connection, one frame, one answer. Commands and daemons load this file, and
// node:tls with it, only when they ask.
//
// Q1. Nothing is sent before the server has proved itself by the authority that the host trusts, or that its token names.

import type { ConnectionOptions, PeerCertificate, TLSSocket } from "node:tls";
import type { Credentials } from "#identity/files/credentials.ts";
import { anyServerFault, identityIn, namesIn } from "#identity/peer.ts";
import { messageOf } from "#support/caught.ts";
import { isRecord } from "#support/guards.ts";
import { ALPN } from "./alpn.ts";
import { encodeFrame, type Frame, frameDecoder } from "./frame.ts";
import { LIMITS } from "./limits.ts";
import { handshakeFault } from "./tls-fault.ts";

export type Place = { readonly host: string; readonly port: number };

/** The error if a question could not be sent or was not answered. Its message tells the user why. */
export class QuestionError extends Error {
  override readonly name = "QuestionError";
}

/** Asks the server at a place for the certificate (PEM) of its authority. Throws QuestionError unless this certificate has the given fingerprint. */
export async function fetchAuthority(place: Place, fingerprint: string): Promise<string> {
  // Here the peer is not trusted and is sent nothing: whoever shows the certificate, its fingerprint decides.
  const socket = await dial(place, { isProved: false });
  try {
    for (const certificate of chainOf(socket.getPeerCertificate(true)))
      if (certificate.fingerprint256.replaceAll(":", "").toLowerCase() === fingerprint) return pemOf(certificate.raw);
  } finally {
    socket.destroy();
  }
  throw new QuestionError(`the server at ${place.host} belongs to another complex than the token, or the token is damaged`);
}

/** The asking host: the authority that it trusts, and the certificate that it shows if it has one. revoked: serial numbers of certificates that it refuses. */
export type Asker = { readonly authority: string; readonly own: Credentials | null; readonly revoked: ReadonlySet<string> };
/** server: the name in the certificate of the server that answered. */
export type Asked = { readonly answer: Frame; readonly server: string };

/** Asks the server at that place one question. answers: accepted types of the answer. Throws QuestionError. */
export async function askAuthority(place: Place, asker: Asker, question: Frame, answers: readonly string[]): Promise<Asked> {
  let server = "";
  const socket = await dial(place, {
    isProved: true,
    ca: [asker.authority],
    ...(asker.own === null ? {} : { key: asker.own.key, cert: asker.own.certificate }),
    checkServerIdentity: (_host, peer: PeerCertificate) => {
      const identity = identityIn(namesIn(peer.subjectaltname), peer.serialNumber);
      const fault = anyServerFault(identity, asker.revoked);
      if (fault !== null) return new Error(fault);
      server = identity?.host ?? "";
      return undefined;
    },
  });
  try {
    const answer = await exchange(socket, question, answers);
    // The server does not accept this host's certificate.
    if (answer.type === "refused") throw new QuestionError(`the server refuses: ${textIn(answer.data)}`);
    return { answer, server };
  } finally {
    socket.destroy();
  }
}

/** isProved: the server must prove itself. */
type DialOptions = ConnectionOptions & { readonly isProved: boolean };

async function dial({ host, port }: Place, { isProved, ...options }: DialOptions): Promise<TLSSocket> {
  const { connect } = await import("node:tls");
  return new Promise((resolve, reject) => {
    // Without rejectUnauthorized, the variable NODE_TLS_REJECT_UNAUTHORIZED of the caller would decide.
    const checks = { minVersion: "TLSv1.3", rejectUnauthorized: isProved } as const;
    const socket = connect({ ...options, ...checks, host, port, ALPNProtocols: [ALPN.question] });
    const fail = (error: Error): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(new QuestionError(`the server at ${host}, port ${port}: ${handshakeFault(error)}`, { cause: error }));
    };
    const timer = setTimeout(() => fail(new Error("it does not answer")), LIMITS.dial_ms_max);
    socket.once("error", fail);
    socket.once("secureConnect", () => {
      if (socket.alpnProtocol !== ALPN.question) return fail(new Error("it is no server of Partita"));
      clearTimeout(timer);
      socket.removeListener("error", fail);
      resolve(socket);
    });
  });
}

function exchange(socket: TLSSocket, { type, data }: Frame, answers: readonly string[]): Promise<Frame> {
  return new Promise((resolve, reject) => {
    const decoder = frameDecoder(LIMITS.question_chars_max, new Set([...answers, "refused"]));
    const fail = (error: Error): void => {
      clearTimeout(timer);
      reject(new QuestionError(`the server gives no answer: ${handshakeFault(error)}`, { cause: error }));
    };
    const timer = setTimeout(() => fail(new Error("it takes too long")), LIMITS.question_ms_max);
    socket.setEncoding("utf8");
    socket.on("error", fail);
    socket.on("close", () => fail(new Error("it closed the connection")));
    socket.on("data", (chunk: string) => {
      try {
        decoder.add(chunk);
        const taken = decoder.take();
        if (taken === null) return;
        clearTimeout(timer);
        resolve(taken.frame);
      } catch (error) {
        fail(new Error(messageOf(error)));
      }
    });
    socket.write(encodeFrame(type, data));
  });
}

function textIn(refused: unknown): string {
  const text = isRecord(refused) ? refused["text"] : undefined;
  return typeof text === "string" ? text.slice(0, 1000) : "it gives no reason";
}

/** Returns the certificates that the peer showed, its own first. */
function chainOf(peer: PeerCertificate | ReturnType<TLSSocket["getPeerCertificate"]>): readonly PeerCertificate[] {
  const chain: PeerCertificate[] = [];
  let next: unknown = peer;
  while (isCertificate(next) && !chain.includes(next)) {
    chain.push(next);
    next = Reflect.get(next, "issuerCertificate");
  }
  return chain;
}

const isCertificate = (value: unknown): value is PeerCertificate => typeof value === "object" && value !== null && "raw" in value;

function pemOf(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}
