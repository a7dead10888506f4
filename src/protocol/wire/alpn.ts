// What a TLS connection between hosts is for, agreed on in its handshake (ALPN, RFC 7301). A later protocol gets another number.

export const ALPN = Object.freeze({
  /** frames between daemons; a daemon of a host dials the server */
  link: "partita/1",
  /** frames between server and scheduler; the server dials the scheduler */
  sched: "partita-sched/1",
  /** frames between moms of different hosts */
  mom: "partita-mom/1",
  /** requests of a user of another host */
  user: "partita-user/1",
  /** one question of a host for a certificate */
  question: "partita-join/1",
});
