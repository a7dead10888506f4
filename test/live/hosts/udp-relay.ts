// A relay for datagrams between two hosts of a test, which treats them as a bad network does. `node udp-relay.ts PORT HOST:PORT CONTROL`: listens on PORT, and takes
// orders as JSON lines at the unix socket CONTROL. The answer to an order is what has happened so far.

import { createSocket, type Socket } from "node:dgram";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

/**
 * there, back: whether datagrams from and to the dialling end pass. lost_of: every so manieth of a direction is lost; 0: none. doubled: each arrives twice, once late.
 * replay, garbage: sends as many to the target now, of those that it has seen or of random bytes.
 */
export type UdpOrder = {
  readonly there: boolean;
  readonly back: boolean;
  readonly lost_of: number;
  readonly doubled: boolean;
  readonly replay?: number;
  readonly garbage?: number;
};
export type UdpCounts = { there: number; back: number; lost: number };

const LATE_MS = 500;
const SEEN_MAX = 100;

const [port, target, control] = process.argv.slice(2);
if (port !== undefined && target !== undefined && control !== undefined) serve(Number(port), target, control);

function serve(own_port: number, to: string, orders: string): void {
  const [host = "", far = "0"] = to.split(":");
  let order: UdpOrder = { there: true, back: true, lost_of: 0, doubled: false };
  const counts: UdpCounts = { there: 0, back: 0, lost: 0 };
  const seen: Buffer[] = [];
  const near = createSocket("udp4");
  /** a socket to the target for each end that dials */
  const ways = new Map<string, Socket>();

  const carry = (way: "there" | "back", send: () => void): void => {
    const number = ++counts[way];
    if (!order[way] || (order.lost_of > 0 && number % order.lost_of === 0)) {
      counts.lost++;
      return;
    }
    send();
    if (order.doubled) setTimeout(send, LATE_MS);
  };

  const wayOf = (address: string, from: number): Socket => {
    const key = `${address} ${from}`;
    const known = ways.get(key);
    if (known !== undefined) return known;
    const made = createSocket("udp4");
    made.on("message", (bytes) => carry("back", () => near.send(bytes, from, address)));
    ways.set(key, made);
    return made;
  };

  near.on("message", (bytes, { address, port: from }) => {
    seen.push(bytes);
    if (seen.length > SEEN_MAX) seen.shift();
    carry("there", () => wayOf(address, from).send(bytes, Number(far), host));
  });
  near.bind(own_port, () => process.stdout.write("ready\n"));

  const attack = ({ replay = 0, garbage = 0 }: UdpOrder): void => {
    const socket = createSocket("udp4");
    let left = 0;
    const send = (bytes: Buffer): void => {
      left++;
      socket.send(bytes, Number(far), host, () => {
        if (--left === 0) socket.close();
      });
    };
    for (let count = 0; count < replay; count++) send(seen[count % seen.length] ?? Buffer.alloc(40));
    for (let count = 0; count < garbage; count++)
      send(Buffer.from(Array.from({ length: 1 + ((count * 37) % 1400) }, (_, at) => (count * at) & 255)));
    if (left === 0) socket.close();
  };

  createServer((boss) => {
    createInterface({ input: boss }).on("line", (line) => {
      order = JSON.parse(line) as UdpOrder;
      attack(order);
      boss.end(`${JSON.stringify(counts)}\n`);
    });
  }).listen(orders);
}
