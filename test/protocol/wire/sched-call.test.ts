// The server dials a scheduler on another host over TLS 1.3: who is taken for that scheduler, and who gets a link of it (docs/schedulers.md).

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import type { Credentials } from "#identity/files/credentials.ts";
import { serverFault } from "#identity/peer.ts";
import { ALPN } from "#protocol/wire/alpn.ts";
import type { ServerLink } from "#protocol/wire/ipc-transport.ts";
import { callScheduler } from "#protocol/wire/sched-call.ts";
import type { TlsListenOptions } from "#protocol/wire/tls-listener.ts";
import { until } from "./links-bed.ts";
import { authority, dial, inTlsWorld, member, type TlsWorld } from "./tls-bed.ts";

const CA = authority();
const HEAD = member(CA, "head", "server");
const NODE7 = member(CA, "node7");

const hello = (name: string) => ({ name, pid: 1, version: "1", pongs: true });

/** A scheduler that listens as pbs_sched does, and says hello to the server. */
function listening(name: string, credentials: Credentials = NODE7, hi: unknown = hello(name)): Partial<TlsListenOptions> {
  return {
    credentials,
    protocol: ALPN.sched,
    types: ["sched-ping"],
    questions: null,
    fault: (identity) => serverFault(identity, "head", new Set()),
    onLink(link) {
      link.welcome();
      link.send("sched-hello", hi);
    },
    onFrame: (link, _type, data) => link.send("sched-pong", data),
  };
}

type Called = {
  link: ServerLink | null;
  ends: number;
  why: string | null;
  readonly frames: string[];
  readonly problems: string[];
  end(): void;
};

type CallOptions = { readonly host?: string; readonly own?: Credentials; readonly gone?: string; readonly dial_ms_max?: number };

/** The address decides nothing: node7 is at the loopback address here. */
function calling({ port }: { readonly port: number }, options: CallOptions = {}): Called {
  const called: Called = { link: null, ends: 0, why: null, frames: [], problems: [], end: () => undefined };
  called.end = callScheduler(
    {
      sched: "s1",
      host: options.host ?? "node7",
      address: "127.0.0.1",
      port,
      credentials: options.own ?? HEAD,
      types: ["sched-hello", "sched-pong"],
      fault: ({ host }) => (host === options.gone ? `${host} was revoked` : null),
      limits: { dial_ms_max: options.dial_ms_max ?? 10_000 },
    },
    {
      onLink(link) {
        called.link = link;
        link.welcome();
      },
      onFrame: (_link, type, data) => called.frames.push(`${type} ${JSON.stringify(data)}`),
      onProblem: (text) => void called.problems.push(text),
      onEnd(_link, why) {
        called.ends++;
        called.why = why?.message ?? null;
      },
    },
  );
  return called;
}

test("scheduler call: each end is known by its certificate, and frames go both ways", async () => {
  await inTlsWorld(
    CA,
    async (world) => {
      const called = calling(world);
      await until("the hello", () => called.frames.length === 1);
      assert.deepEqual(
        [called.link?.peer.host?.host, called.link?.peer.sched, called.link?.peer.pid, called.link?.peer.uid],
        ["node7", "s1", 0, 0xffffffff],
      );
      called.link?.send("sched-ping", { number: 7, text: "ä".repeat(100_000) });
      await until("the answer", () => called.frames.length === 2);
      assert.match(called.frames[1] ?? "", /^sched-pong {"number":7,/);
      called.end();
      await until("the end", () => called.ends === 1);
      assert.equal(called.why, null, "the link had counted");
    },
    listening("s1"),
  );
});

test("scheduler call: a name with a domain means the same host", async () => {
  await inTlsWorld(
    CA,
    async (world) => {
      const called = calling(world, { host: "Node7.cluster.org" });
      await until("the hello", () => called.frames.length === 1);
      called.end();
      await until("the end", () => called.ends === 1);
    },
    listening("s1"),
  );
});

test("scheduler call: nobody else is taken for the scheduler (C1, C2)", async () => {
  const foreign = authority("Another CA");
  // biome-ignore format: a table
  const rows: readonly (readonly [name: string, at: Partial<TlsListenOptions>, options: CallOptions, why: RegExp])[] = [
    ["another host",           listening("s1", member(CA, "node8")),                  {},                          /the peer is the host node8, not node7/],
    ["a name that begins alike", listening("s1", member(CA, "node7")),                { host: "node7x" },          /the peer is the host node7, not node7x/],
    ["a server named like it", listening("s1", member(CA, "node7", "server")),        {},                          /the peer is the server node7 and no other host/],
    ["a foreign authority",    listening("s1", member(foreign, "node7")),             {},                          /self.signed|unable to/i],
    ["an expired certificate", listening("s1", member(CA, "node7", "host", -1)),      {},                          /expired/],
    ["a revoked certificate",  listening("s1"),                                       { gone: "node7" },           /^node7 was revoked$/],
    ["another scheduler",      listening("s2"),                                       {},                          /^it is the scheduler "s2"$/],
    ["a mom's protocol",       { ...listening("s1"), protocol: ALPN.link },           {},                          /no application protocol/i],
    ["one that says other things", listening("s1", NODE7, ["s1"]),                    {},                          /^it does not say hello$/],
  ];
  for (const [name, at, options, why] of rows) {
    await inTlsWorld(
      CA,
      async (world) => {
        const called = calling(world, options);
        await until(`${name} is refused`, () => called.ends === 1);
        assert.match(called.why ?? "", why, name);
        assert.deepEqual([called.link, called.frames], [null, []], name);
      },
      at,
    );
  }
});

test("scheduler call: a scheduler gives a link to its server only", async () => {
  const foreign = authority("Another CA");
  // biome-ignore format: a table
  const rows: readonly (readonly [name: string, own: Credentials, problem: RegExp])[] = [
    ["a host that pretends to be the server", member(CA, "node8"),                    /the peer is the host node8 and no server/],
    ["a host with the server's name",         member(CA, "head"),                     /the peer is the host head and no server/],
    ["the server of another name",            member(CA, "other", "server"),          /the server other, not head/],
    ["the server of another complex",         { ...member(foreign, "head", "server"), authority: CA.certificate }, /is not one of this complex \(/],
    ["an expired server",                     member(CA, "head", "server", -1),       /has expired by the clock of the server/],
  ];
  const links: ServerLink[] = [];
  await inTlsWorld(
    CA,
    async (world) => {
      for (const [name, own, problem] of rows) {
        const before = world.problems.length;
        const called = calling(world, { own });
        await until(`${name} is refused`, () => called.ends === 1 && world.problems.length > before);
        assert.match(world.problems[before] ?? "", problem, name);
        assert.deepEqual([called.link, called.frames, called.why?.startsWith("it refuses this server: ")], [null, [], true], name);
      }
      // A mom's dialler speaks another protocol, whoever it is.
      const mom = dial(world, () => member(CA, "node8"), { server: "node7" });
      await until("the mom is refused", () => mom.faults.length > 0);
      assert.deepEqual([mom.opened, links], [0, []]);
    },
    { ...listening("s1"), onLink: (link) => void links.push(link) },
  );
});

test("scheduler call: what the other end says of a refusal cannot control a terminal", async () => {
  await inTlsWorld(
    CA,
    async (world) => {
      const called = calling(world);
      await until("the refusal", () => called.ends === 1);
      assert.match(called.why ?? "", /^it refuses this server: bad/);
      assert.ok(called.why?.includes("\u001b") === false);
    },
    { ...listening("s1"), fault: () => "bad\u001b[31m words" },
  );
});

test("scheduler call: it ends in time, whatever the other end does", async () => {
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const address = silent.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  try {
    const called = calling({ port }, { dial_ms_max: 200 });
    await until("the end", () => called.ends === 1);
    assert.equal(called.why, "it does not prove itself in time");
  } finally {
    silent.close();
  }
  await inTlsWorld(
    CA,
    async (world: TlsWorld) => {
      const called = calling(world, { dial_ms_max: 200 });
      await until("the end", () => called.ends === 1);
      assert.equal(called.why, "it does not prove itself in time", "no hello came");
    },
    { ...listening("s1"), onLink: (link) => link.welcome() },
  );
  const nobody = calling({ port });
  await until("the end", () => nobody.ends === 1);
  assert.match(nobody.why ?? "", /ECONNREFUSED/);
});
