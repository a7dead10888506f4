// The server's attempts to reach schedulers on other hosts, over real connections on the loopback interface. The host of the tests has the name `localhost`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { serverFault } from "#identity/peer.ts";
import { REVOKED } from "#protocol/join-link.ts";
import { ALPN } from "#protocol/wire/alpn.ts";
import type { ServerLink } from "#protocol/wire/ipc-transport.ts";
import { listenTls, type TlsLinkServer } from "#protocol/wire/tls-listener.ts";
import { RemoteScheds } from "#server/shell/remote-scheds.ts";
import type { RemotePlace } from "#server/state/partitions.ts";
import { until } from "../../protocol/wire/links-bed.ts";
import { authority, freePort, member } from "../../protocol/wire/tls-bed.ts";

const CA = authority();
const HEAD = member(CA, "head", "server");
const HERE = member(CA, "localhost");

type Bed = {
  readonly remote: RemoteScheds;
  readonly ports: readonly number[];
  readonly places: Map<string, RemotePlace>;
  /** schedulers whose link the core knows */
  readonly up: Set<string>;
  readonly links: ServerLink[];
  readonly frames: string[];
  readonly closed: ServerLink[];
  readonly told: string[];
  readonly revoked: Set<string>;
  authority: boolean;
  /** the leader that the server names */
  leader: string | null;
  /** frames that schedulers have received, with their data */
  readonly received: string[];
  listen(sched: string, port: number): Promise<TlsLinkServer>;
};

async function inBed(work: (bed: Bed) => Promise<void>): Promise<void> {
  const ports = [await freePort(), await freePort(), await freePort()];
  const servers: TlsLinkServer[] = [];
  const bed: Omit<Bed, "remote"> = {
    ports,
    places: new Map([["s1", { host: "localhost", port: undefined }]]),
    up: new Set(),
    links: [],
    frames: [],
    closed: [],
    told: [],
    revoked: new Set(),
    authority: true,
    leader: null,
    received: [],
    async listen(sched, port) {
      const server = await listenTls({
        port,
        address: "127.0.0.1",
        types: ["sched-quit", REVOKED],
        protocol: ALPN.sched,
        credentials: HERE,
        questions: null,
        fault: (identity) => serverFault(identity, "head", new Set()),
        onLink(link) {
          link.welcome();
          link.send("sched-hello", { name: sched, pid: 1, version: "1" });
        },
        onFrame(link, type, data) {
          bed.received.push(`${type} ${JSON.stringify(data)}`);
          if (type === "sched-quit") link.end();
        },
      });
      servers.push(server);
      return server;
    },
  };
  const fault = ({ host }: { readonly host: string }): string | null => (bed.revoked.has(host) ? `${host} was revoked` : null);
  const remote = new RemoteScheds({
    placeOf: (sched) => bed.places.get(sched) ?? null,
    isDown: (sched) => !bed.up.has(sched),
    ownSide: () => (bed.authority ? { credentials: HEAD, fault } : null),
    leads: () => true,
    leader: () => bed.leader,
    ports,
    types: ["sched-hello"],
    handlers: {
      onLink: (link) => void bed.links.push(link),
      onFrame: (link, type) => void bed.frames.push(`${link.peer.sched} ${type}`),
      onClose: (link) => void bed.closed.push(link),
    },
    unreached: (sched, why) => void bed.told.push(`${sched}: ${why}`),
    log: (sched, text) => void bed.told.push(`${sched} log: ${text}`),
  });
  try {
    await work(Object.assign(bed, { remote }));
  } finally {
    remote.close();
    for (const server of servers) await server.close();
  }
}

test("remote scheduler: found at the last of its ports, behind another scheduler; found again after a cut", async () => {
  await inBed(async (bed) => {
    const [, second = 0, third = 0] = bed.ports;
    await bed.listen("s2", second);
    await bed.listen("s1", third);
    assert.equal(bed.remote.start("s1"), true);
    await until("the hello", () => bed.frames.length === 1);
    assert.deepEqual([bed.frames, bed.told], [["s1 sched-hello"], []]);
    bed.up.add("s1");
    bed.remote.start("s1");
    assert.equal(bed.closed.length, 0, "a second start changes nothing");
    bed.links[0]?.destroy();
    await until("the next hello", () => bed.frames.length === 2);
    assert.deepEqual([bed.closed.length, bed.told], [1, []]);
  });
});

test("remote scheduler: why it is not reached, and that it is when somebody listens at last", async () => {
  await inBed(async (bed) => {
    const [first = 0, , third = 0] = bed.ports;
    // biome-ignore format: a table
    const rows: readonly (readonly [place: RemotePlace, why: string])[] = [
      [{ host: "localhost", port: undefined }, `no scheduler s1 listens on ports ${first} to ${third} of localhost`],
      [{ host: "localhost", port: first },     `nobody listens on port ${first} of localhost`],
      [{ host: "no-such-host.invalid", port: first }, "no-such-host.invalid: getaddrinfo"],
    ];
    for (const [place, why] of rows) {
      bed.told.length = 0;
      bed.places.set("s1", place);
      bed.remote.start("s1");
      await until(why, () => bed.told.some((text) => text.startsWith(`s1: ${why}`)));
    }
    bed.places.set("s1", { host: "localhost", port: first });
    bed.remote.start("s1");
    await bed.listen("s1", first);
    await until("the hello", () => bed.frames.length === 1);
  });
});

test("remote scheduler: without an authority nobody is dialled", async () => {
  await inBed(async (bed) => {
    bed.authority = false;
    bed.remote.start("s1");
    await until("the reason", () => bed.told.includes("s1: the complex has no certificate authority (partita cert token makes it)"));
    await bed.listen("s1", bed.ports[0] ?? 0);
    bed.authority = true;
    await until("the hello", () => bed.frames.length === 1);
  });
});

test("remote scheduler: told to end, it keeps its link until it has ended, and is not dialled again (R3)", async () => {
  await inBed(async (bed) => {
    await bed.listen("s1", bed.ports[0] ?? 0);
    bed.remote.start("s1");
    await until("the hello", () => bed.frames.length === 1);
    const stopped = bed.remote.stopAll(["s1"]);
    assert.equal(bed.closed.length, 0);
    bed.links[0]?.send("sched-quit", {});
    await stopped;
    assert.deepEqual([bed.closed.length, bed.told], [1, []]);
    assert.equal(bed.remote.start("s1"), true);
    await until("it is dialled anew", () => bed.frames.length === 2);
  });
});

test("remote scheduler: the link of a host that was revoked ends, and it gets no other", async () => {
  await inBed(async (bed) => {
    await bed.listen("s1", bed.ports[0] ?? 0);
    bed.remote.start("s1");
    await until("the hello", () => bed.frames.length === 1);
    bed.remote.review();
    assert.equal(bed.told.length, 0);
    bed.revoked.add("localhost");
    bed.remote.review();
    await until("the end", () => bed.closed.length === 1);
    await until("the refusal", () => bed.told.some((text) => text.endsWith("localhost was revoked") && text.startsWith("s1: port ")));
    assert.equal(bed.told[0], "s1 log: localhost was revoked");
    assert.equal(bed.frames.length, 1);
  });
});

test("remote scheduler: another link is made when the core has given up the present one; local schedulers are not dialled", async () => {
  await inBed(async (bed) => {
    await bed.listen("s1", bed.ports[0] ?? 0);
    bed.remote.start("s1");
    await until("the hello", () => bed.frames.length === 1);
    bed.remote.start("s1");
    await until("the next hello", () => bed.frames.length === 2 && bed.closed.length === 1);
    assert.deepEqual([bed.remote.start("here"), bed.remote.look("here", () => undefined)], [false, false]);
  });
});

test("remote scheduler: whether its host answers", async () => {
  await inBed(async (bed) => {
    const look = (): Promise<string> =>
      new Promise((resolve) => void bed.remote.look("s1", (sight) => resolve(`${sight.pid} ${sight.process}`)));
    assert.equal(await look(), "0 none", "it is not connected");
    const server = await bed.listen("s1", bed.ports[0] ?? 0);
    bed.remote.start("s1");
    await until("the hello", () => bed.frames.length === 1);
    assert.equal(await look(), "0 runs");
    // The port closes, and the link stays open on this side until the answer is there.
    const closing = server.close();
    assert.equal(await look(), "0 none");
    await closing;
  });
});

test("remote scheduler: the first frame names the leader of two servers, and a complex with one server sends none (R4)", async () => {
  await inBed(async (bed) => {
    await bed.listen("s1", bed.ports[0] ?? 0);
    bed.remote.start("s1");
    await until("the hello", () => bed.frames.length === 1);
    bed.leader = "7/3";
    bed.links[0]?.send("sched-quit", {});
    await until("the next hello", () => bed.frames.length === 2);
    bed.links[1]?.send("sched-quit", {});
    await until("all frames", () => bed.received.length === 3);
    assert.deepEqual(bed.received, ["sched-quit {}", 'revoked {"certificates":[],"leader":"7/3"}', "sched-quit {}"]);
  });
});
