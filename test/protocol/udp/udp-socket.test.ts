// The mom's socket for datagrams: how it looks up the address of the server.

import assert from "node:assert/strict";
import { test } from "node:test";
import { dialUdp, listenUdp } from "#protocol/udp/udp-socket.ts";
import { until } from "../wire/links-bed.ts";
import { freePort } from "../wire/tls-bed.ts";

test("one lookup of the address is under way at a time, and the former address is used if a lookup fails", async () => {
  const port = await freePort();
  const heard: string[] = [];
  const server = await listenUdp(port, (bytes) => void heard.push(new TextDecoder().decode(bytes)));
  const lookups: ((error: Error | null, address: string) => void)[] = [];
  let now_ms = 0;
  const client = dialUdp({ host: "head", port }, () => undefined, {
    lookup: (_host, done) => void lookups.push(done),
    now_ms: () => now_ms,
  });
  const send = (text: string): void => client.send(new TextEncoder().encode(text));
  try {
    for (const text of ["a", "b", "c"]) send(text);
    assert.equal(lookups.length, 1);
    lookups[0]?.(null, "127.0.0.1");
    await until("the datagrams that waited arrive", () => heard.length === 3);
    now_ms += 60_000;
    for (const text of ["d", "e"]) send(text);
    await until("datagrams use the former address during the next lookup", () => heard.length === 5);
    assert.equal(lookups.length, 2);
    lookups[1]?.(new Error("no name server"), "");
    send("f");
    await until("datagrams use the former address after the failure", () => heard.length === 6);
    assert.equal(lookups.length, 2);
    now_ms += 5000;
    send("g");
    assert.equal(lookups.length, 3, "the address is looked up again some seconds later");
  } finally {
    client.close();
    server.close();
  }
});
