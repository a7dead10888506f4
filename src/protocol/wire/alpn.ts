// What a TLS connection between hosts is for, agreed on in its handshake (ALPN, RFC 7301). A later protocol gets another number.

export const ALPN = Object.freeze({
  /** frames between daemons */
  link: "partita/1",
  /** one question of a host for a certificate */
  question: "partita-join/1",
});
