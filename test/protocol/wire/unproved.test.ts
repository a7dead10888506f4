// What counts as one address among connections that prove nothing.

import assert from "node:assert/strict";
import { test } from "node:test";
import { peerAddress } from "#protocol/wire/unproved.ts";

test("all IPv6 addresses of a /64 network count as one address, and an IPv4 address as itself (U3)", () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [address: string, counts_as: string])[] = [
    ["2001:db8:0:1:aaaa:bbbb:cccc:dddd", "2001:db8:0:1:*"],
    ["2001:db8:0:1::5",                  "2001:db8:0:1:*"],
    ["2001:db8:0:2::5",                  "2001:db8:0:2:*"],
    ["2001:db8::5",                      "2001:db8:0:0:*"],
    ["2001:db8:1:2:3:4:5::",             "2001:db8:1:2:*"],
    ["fe80::1%eth0",                     "fe80:0:0:0:*"],
    ["::1",                              "0:0:0:0:*"],
    ["64:ff9b::192.0.2.1",               "64:ff9b:0:0:*"],
    ["192.0.2.7",                        "192.0.2.7"],
    ["::ffff:192.0.2.7",                 "192.0.2.7"],
    ["",                                 ""],
  ];
  for (const [address, counts_as] of rows) assert.equal(peerAddress(address), counts_as, address);
});
