// The server's attributes for multicast.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isGroupAddress } from "#model/tables/group-address.ts";
import { multicastSettings } from "#model/tables/multicast-attributes.ts";

test("addresses of groups", () => {
  for (const text of ["224.0.0.1", "239.192.150.1", "239.255.255.255", "ff15::96:1", "FF02::1", "ff05:0:0:0:0:0:0:1", "ff02::"])
    assert.ok(isGroupAddress(text), text);
  for (const text of [
    "",
    "10.0.0.1",
    "223.255.255.255",
    "240.0.0.1",
    "239.1.1",
    "239.1.1.256",
    "239.1.1.1.1",
    "::1",
    "fe80::1",
    "ff15",
    "ff15::1::2",
    "ff15:1:2:3:4:5:6:7:8",
    "ff15::96:1%eth0",
    "ff15::xyz",
    "group.example",
  ])
    assert.ok(!isGroupAddress(text), text);
});

test("the settings of the group", () => {
  assert.equal(multicastSettings({ server: {} }), null);
  assert.equal(multicastSettings({ server: { multicast: false, multicast_port: 1 } }), null);
  const assumed = { address: "239.192.150.1", port: 15_009, interface: null, ttl: 1, repeats: 2, interval_ms: 200, moms_min: 8 };
  assert.deepEqual(multicastSettings({ server: { multicast: true } }), assumed);
  const server = { multicast: true, multicast_group: "ff15::1", multicast_interface: "eth0", multicast_repeats: 0 };
  assert.deepEqual(multicastSettings({ server }), { ...assumed, address: "ff15::1", interface: "eth0", repeats: 0 });
});
