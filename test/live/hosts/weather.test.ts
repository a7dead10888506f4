// The switch of the tests' networks does what its rules say, to TCP and UDP: otherwise tests about bad networks would show nothing.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { until } from "../complex.ts";
import { ROOT } from "../shared.ts";
import { lackOfNamespaces, lackOfWeather, makeNet, type NetHost } from "./namespaces.ts";

const skip = lackOfNamespaces() || lackOfWeather();
const NODE = join(ROOT, "node_modules/node/bin/node");

/** Answers each datagram and each piece of data with itself. */
const ECHO = `
const udp = require("node:dgram").createSocket("udp4");
udp.on("message", (bytes, from) => udp.send(bytes, from.port, from.address)).bind(7, () =>
  require("node:net").createServer((socket) => socket.on("error", () => {}).pipe(socket)).listen(7, () => require("node:fs").writeFileSync(process.argv[1], "")));`;
/** Sends 50 datagrams and 50 kB over TCP to an address; prints how many of each came back within a time, and how long TCP took. */
const ASK = `
const [address, wait_ms] = process.argv.slice(1);
const heard = { udp: 0, tcp: 0, tcp_ms: null };
const udp = require("node:dgram").createSocket("udp4").on("message", () => heard.udp++).on("error", () => {});
for (let count = 0; count < 50; count++) udp.send("x", 7, address, () => {});
const begin_ms = performance.now();
const end = () => { console.log(JSON.stringify(heard)); process.exit(0); };
const tcp = require("node:net").connect(7, address, () => tcp.write(Buffer.alloc(50_000)));
tcp.on("error", () => {}).on("data", (piece) => { heard.tcp += piece.length; if (heard.tcp === 50_000) heard.tcp_ms = performance.now() - begin_ms; });
setInterval(() => { if (heard.udp === 50 && heard.tcp === 50_000 || performance.now() - begin_ms > wait_ms) end(); }, 5);`;

type Heard = { readonly udp: number; readonly tcp: number; readonly tcp_ms: number | null };

const ask = (from: NetHost, to: NetHost, wait_ms: number): Heard =>
  JSON.parse(from.must(NODE, "-e", ASK, to.address, String(wait_ms))) as Heard;

test("weather: frames of TCP and UDP are lost, delayed or kept from one direction, as the rules of a cable say", { skip }, async () => {
  const net = makeNet(["alpha", "beta", "gamma"], { weather: true });
  const [alpha, beta, gamma] = net.hosts as readonly [NetHost, NetHost, NetHost];
  try {
    for (const host of [beta, gamma]) {
      const ready = join(net.dir, `${host.name}.ready`);
      host.must("sh", "-c", 'setsid "$@" </dev/null >/dev/null 2>&1 &', "sh", NODE, "-e", ECHO, ready);
      await until(`${host.name} answers`, () => existsSync(ready));
    }
    const all = (heard: Heard): readonly number[] => [heard.udp, heard.tcp];
    assert.deepEqual(all(ask(alpha, beta, 60_000)), [50, 50_000]);

    await beta.weather({ delay_ms: 100 });
    const slow = ask(alpha, beta, 60_000);
    assert.deepEqual(all(slow), [50, 50_000]);
    assert.ok((slow.tcp_ms ?? 0) >= 400, `hello and data took ${slow.tcp_ms} ms, four ways of 100 ms`);

    await beta.weather({ protocol: "udp", lost: 1 });
    assert.deepEqual(all(ask(alpha, beta, 1000)), [0, 50_000], "a firewall against UDP");
    await beta.weather({ peer: alpha.address, lost: 1 });
    assert.deepEqual(all(ask(alpha, beta, 1000)), [0, 0]);
    assert.deepEqual(all(ask(gamma, beta, 60_000)), [50, 50_000], "another peer is not concerned");

    await beta.weather({ lost: 0.2 });
    const lossy = ask(alpha, beta, 3000);
    assert.ok(lossy.udp > 5 && lossy.udp < 50, `${lossy.udp} of 50 datagrams came back`);
    assert.ok(lossy.tcp > 0, "TCP repeats");

    const before = await beta.weather({ way: "out", lost: 1 });
    assert.deepEqual(all(ask(alpha, beta, 1000)), [0, 0]);
    const { passed, lost } = await beta.weather();
    assert.ok(passed >= before.passed + 50 && lost >= before.lost + 50, "all came there, and nothing came back");
    beta.cable("down");
    assert.deepEqual(all(ask(alpha, beta, 1000)), [0, 0]);
    beta.cable("up");
    assert.deepEqual(all(ask(alpha, beta, 60_000)), [50, 50_000]);
  } finally {
    net.close();
  }
});

test("a net is removed even if its test is killed", { skip }, async () => {
  const program = `
    const { makeNet } = await import(${JSON.stringify(join(import.meta.dirname, "namespaces.ts"))});
    const net = makeNet(["alpha"], { weather: true });
    net.hosts[0].must("sh", "-c", "setsid sleep 1000 </dev/null >/dev/null 2>&1 &");
    console.log(net.dir);
    process.kill(process.pid, "SIGKILL");`;
  const child = spawn(NODE, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  const dir = (await text(child.stdout)).trim();
  assert.match(dir, /partita-net-/);
  const spaces = (): string => spawnSync("ip", ["netns", "list"], { encoding: "utf8" }).stdout;
  await until("all is removed", () => !existsSync(dir) && !spaces().includes(`partita-${child.pid}-`));
});
