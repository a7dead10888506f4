// How a client on another host proves its user (docs/identity.md): the first frame after the handshake, and the server's answer.

import type { TLSSocket } from "node:tls";

/** The client's frame: `prove` {credential: a munge credential; null: the certificate names the user}. The server's: `proved` {}, or `refused` {code, text}. */
export const PROVE = "prove";
export const PROVED = "proved";

const BINDING_LABEL = "EXPORTER-partita-user";
const BINDING_BYTES = 32;

/** Identifies a connection: 64 hexadecimal digits that only its two ends can compute (RFC 8446 section 7.5). */
export const bindingOf = (socket: TLSSocket): string =>
  socket.exportKeyingMaterial(BINDING_BYTES, BINDING_LABEL, Buffer.alloc(0)).toString("hex");
