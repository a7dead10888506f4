// Where hosts take files of jobs, as the server has heard it from them.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { HostIdentity } from "#identity/peer.ts";
import { FileHosts } from "#server/shell/file-hosts.ts";

const identity = (host: string, role: "host" | "server" = "host") => ({ host, role, serial: "40" }) satisfies HostIdentity;

function hosts() {
  const kernel = () => ({ config: { host: "head", machine: "head.example.org" } }) as never;
  const known = new FileHosts({ kernel, hasHost: (name) => name === "n1" });
  const offer = (from: HostIdentity, address: string, port: number) =>
    known.answer({ type: "files-offer", data: { version: "", port } }, from, address);
  const place = (host: string) => known.answer({ type: "files-place", data: { version: "", host } }, identity("n9"), "10.0.0.9").data;
  return { offer, place };
}

test("a host is reached where it has said so; the server's host as the server is", () => {
  const { offer, place } = hosts();
  assert.deepEqual(place("n1"), { known: true, address: null, port: null }, "it has said nothing yet");
  assert.deepEqual(place("n2"), { known: false, address: null, port: null }, "it is not of the complex");
  offer(identity("n1"), "10.0.0.1", 15003);
  offer(identity("head", "server"), "10.0.0.7", 15004);
  assert.deepEqual(place("n1.example.org"), { known: true, address: "10.0.0.1", port: 15003 });
  for (const name of ["head", "HEAD.example.org"]) assert.deepEqual(place(name), { known: true, address: null, port: 15004 });
});

test("in a complex with two servers, the host of the active one is reached as every host", () => {
  const { offer, place } = hosts();
  offer(identity("spare"), "10.0.0.2", 15003);
  offer(identity("head"), "10.0.0.1", 15004);
  assert.deepEqual(place("head"), { known: true, address: "10.0.0.1", port: 15004 });
  assert.deepEqual(place("spare"), { known: true, address: "10.0.0.2", port: 15003 });
});
