// Hosts by name and address: what `create node` learns about the host of a node.

import assert from "node:assert/strict";
import { hostname, networkInterfaces } from "node:os";
import { test } from "node:test";
import { hostLookup } from "#server/shell/host-lookup.ts";

const found = (host: string): Promise<string | null> => new Promise((resolve) => hostLookup("alpha")(host, resolve));

test("a name that has an address is found, an address of this host gives the name of its mom", async () => {
  assert.equal(await found("localhost"), "localhost");
  assert.equal(await found("nosuch host"), null);
  for (const address of ["127.0.0.1", "::1"]) assert.equal(await found(address), "alpha", address);
  const others = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const named = await Promise.all(others.filter(({ internal }) => !internal).map(({ address }) => found(address)));
  assert.ok(!named.includes(null), `an address of ${hostname()} is unknown`);
});

test("an address without a name is unknown unless it is one of this host", async () => {
  // 192.0.2.0/24 is reserved for documentation (RFC 5737).
  assert.equal(await found("192.0.2.1"), null);
});

test("a further loopback address is that of a mom of its own", async () => {
  assert.equal(await found("127.0.0.2"), null);
});
