// A relay between two hosts of a test: it delays what it passes on, or holds it back in one direction or both, as a network does that loses every packet.
// `node relay.ts PORT HOST:PORT CONTROL`: listens on PORT, and takes orders as JSON lines at the unix socket CONTROL.

import { createServer, connect as dial, type Socket } from "node:net";
import { createInterface } from "node:readline";

/** delay_ms: of each piece. there, back: whether pieces from and to the dialling end pass. */
export type RelayOrder = { readonly delay_ms: number; readonly there: boolean; readonly back: boolean };

type Way = "there" | "back";

let order: RelayOrder = { delay_ms: 0, there: true, back: true };
/** what waits for its time or for its way to be open, in the order of arrival */
const waiting: { readonly due_ms: number; readonly way: Way; readonly act: () => void }[] = [];

function passLater(way: Way, act: () => void): void {
  waiting.push({ due_ms: performance.now() + order.delay_ms, way, act });
  setTimeout(passOn, order.delay_ms);
}

function passOn(): void {
  const shut = new Set<Way>((["there", "back"] as const).filter((way) => !order[way]));
  for (let at = 0; at < waiting.length; ) {
    const piece = waiting[at];
    if (piece === undefined) break;
    if (shut.has(piece.way) || piece.due_ms > performance.now() + 1) {
      // Nothing overtakes it.
      shut.add(piece.way);
      at++;
    } else {
      waiting.splice(at, 1);
      piece.act();
    }
  }
}

function pipe(from: Socket, to: Socket, way: Way): void {
  from.on("data", (chunk: Buffer) => passLater(way, () => to.write(chunk)));
  from.on("end", () => passLater(way, () => to.end()));
  from.on("error", () => passLater(way, () => to.destroy()));
}

const [port, target, control] = process.argv.slice(2);
if (port !== undefined && target !== undefined && control !== undefined) {
  const [host = "", far = "0"] = target.split(":");
  createServer({ allowHalfOpen: true }, (near) => {
    const there = dial({ host, port: Number(far), allowHalfOpen: true });
    pipe(near, there, "there");
    pipe(there, near, "back");
  }).listen(Number(port), () => process.stdout.write("ready\n"));
  createServer((boss) => {
    createInterface({ input: boss }).on("line", (line) => {
      order = JSON.parse(line) as RelayOrder;
      passOn();
      boss.end("done\n");
    });
  }).listen(control);
}
