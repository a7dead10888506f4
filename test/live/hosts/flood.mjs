// A program of a hostile user on a login host: connections to the server's port that prove nothing, one after another, until it is ended. Arguments: host, port, the
// directory of the host's identity.

import { readFileSync } from "node:fs";
import { connect as connectPlain } from "node:net";
import { connect } from "node:tls";

const [, , host, port, identity] = process.argv;
const AT_ONCE = 200;
const OPEN_MS = 3000;

const pem = readFileSync(`${identity}/login.pem`, "utf8");
const place = { host, port: Number(port) };
const shown = { cert: pem, key: pem, rejectUnauthorized: false, ALPNProtocols: ["partita-user/1"] };
const proof = (credential) => `${JSON.stringify({ type: "prove", data: { credential } })}\f`;

const kinds = [
  // nothing at all; half a handshake; bytes of no protocol
  () => connectPlain(place),
  () =>
    connectPlain(place, function () {
      this.write(Buffer.from([22, 3, 1, 2, 0, 1, 0, 1]));
    }),
  () =>
    connectPlain(place, function () {
      this.write("GET / HTTP/1.0\r\n\r\n");
    }),
  // no certificate; no proof; a credential that is none; an endless proof
  () => connect({ ...place, rejectUnauthorized: false, ALPNProtocols: ["partita-user/1"] }),
  () => connect({ ...place, ...shown }),
  () =>
    connect({ ...place, ...shown }, function () {
      this.write(proof("MUNGE:AwQFAAA=:"));
    }),
  () =>
    connect({ ...place, ...shown }, function () {
      this.write("x".repeat(1 << 20));
    }),
];

let made = 0;
function next() {
  const socket = kinds[made++ % kinds.length]();
  const timer = setTimeout(() => socket.destroy(), OPEN_MS);
  socket.on("error", () => undefined);
  socket.resume().once("close", () => {
    clearTimeout(timer);
    setImmediate(next);
  });
}
for (let at = 0; at < AT_ONCE; at++) next();
