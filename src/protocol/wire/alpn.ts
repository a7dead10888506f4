// The purposes of TLS connections between hosts. Both ends agree on one in the handshake (ALPN, RFC 7301). A new version of
// a protocol gets another number.

export const ALPN = Object.freeze({
  /** frames between daemons; the daemon connects to the server */
  link: "partita/1",
  /** frames between server and scheduler; the server connects to the scheduler */
  sched: "partita-sched/1",
  /** frames between moms of different hosts */
  mom: "partita-mom/1",
  /** files of jobs, from one host to another */
  files: "partita-files/1",
  /** requests of a user of another host */
  user: "partita-user/1",
  /** one question of a host (join-link.ts) */
  question: "partita-join/1",
});
