// The Ethernet switch of a test's network, with the weather of its links: it loses frames, delays them, or lets nothing pass in one direction. Because it works on
// frames, it treats TCP, UDP and multicast alike, and the hosts' own TCP repeats what was lost. `node switch.ts CONTROL PORT ...`: makes a network device of each name, which becomes
// the cable of a host, prints `ready`, and takes orders as JSON lines at the unix socket CONTROL. It ends with its standard input.

import { closeSync, openSync, read, writeSync } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { libc } from "#support/libc/libc.ts";
import { fate, type Packet, packetOf, type Rule, type SwitchCounts, type SwitchOrder } from "./weather.ts";

type Cable = { readonly name: string; readonly fd: number; rules: readonly Rule[]; readonly counts: SwitchCounts };

const TUNSETIFF = 0x400454ca;
/** IFF_TAP | IFF_NO_PI */
const TAP_WITHOUT_HEADER = 0x1002;
const IFREQ_BYTES = 40;
const FLAGS_AT = 16;
const FRAME_BYTES_MAX = 2048;

/** Makes the network device of that name, and returns the descriptor of its frames. */
function openCable(name: string): number {
  const fd = openSync("/dev/net/tun", "r+");
  const request = Buffer.alloc(IFREQ_BYTES);
  request.write(name);
  request.writeUInt16LE(TAP_WITHOUT_HEADER, FLAGS_AT);
  const ioctl = libc().libc.func("int ioctl(int fd, unsigned long request, void *argument)");
  if (ioctl(fd, TUNSETIFF, request) === 0) return fd;
  closeSync(fd);
  throw new Error(`the kernel does not make the network device ${name}`);
}

function serve(control: string, names: readonly string[]): void {
  const cables = names.map((name): Cable => ({ name, fd: openCable(name), rules: [], counts: { passed: 0, lost: 0 } }));
  /** the cable behind which an Ethernet address was seen */
  const places = new Map<string, Cable>();

  const deliver = (to: Cable, frame: Buffer): void => {
    try {
      writeSync(to.fd, frame);
    } catch {
      // The cable is unplugged.
    }
  };

  const pass = (from: Cable, to: Cable, frame: Buffer, packet: Packet | null): void => {
    const fates = [fate(from.rules, "out", packet, Math.random()), fate(to.rules, "in", packet, Math.random())];
    if (fates[0] === "lost") from.counts.lost++;
    else if (fates[1] === "lost") to.counts.lost++;
    else {
      from.counts.passed++;
      to.counts.passed++;
      const delay_ms = fates.reduce((sum: number, each) => sum + Number(each), 0);
      if (delay_ms === 0) deliver(to, frame);
      else setTimeout(deliver, delay_ms, to, Buffer.from(frame));
    }
  };

  const forward = (from: Cable, frame: Buffer): void => {
    if (frame.length < 14) return;
    places.set(frame.toString("hex", 6, 12), from);
    const packet = packetOf(frame);
    const known = places.get(frame.toString("hex", 0, 6));
    for (const to of known === undefined ? cables : [known]) if (to !== from) pass(from, to, frame, packet);
  };

  for (const cable of cables) {
    const frame = Buffer.alloc(FRAME_BYTES_MAX);
    const next = (): void =>
      read(cable.fd, frame, 0, FRAME_BYTES_MAX, null, (error, length) => {
        // A device that is gone has gone with its host.
        if (error !== null && error.code !== "EIO") return;
        if (error === null) forward(cable, frame.subarray(0, length));
        next();
      });
    next();
  }

  createServer((boss) => {
    boss.on("error", () => undefined);
    createInterface({ input: boss }).on("line", (line) => {
      const order = JSON.parse(line) as SwitchOrder;
      const cable = cables.find(({ name }) => name === order.cable);
      if (cable !== undefined) cable.rules = order.rules;
      boss.end(`${JSON.stringify(cable?.counts ?? null)}\n`);
    });
  }).listen(control, () => process.stdout.write("ready\n"));
  // Threads that wait for frames would hold a usual end back.
  process.stdin.on("close", () => process.kill(process.pid, "SIGKILL")).resume();
}

const [control, ...names] = process.argv.slice(2);
if (control !== undefined) serve(control, names);
