// `partita hosts` at the server: hosts with vnodes, connected or not, and moms without vnodes.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { HostView, StandbyView } from "#protocol/hosts-view.ts";
import { ALICE, addHost, addVnode, advance, askOk, CONFIG, type Harness, harness, mom } from "../harness.ts";

const hosts = (h: Harness): readonly HostView[] =>
  (askOk(h, ALICE, { kind: "view-hosts" }) as { readonly hosts: readonly HostView[] }).hosts;
const hello = (host: string) => ({ host, port: 15002, pid: 1, version: "23", release: "2", vnodes: [], jobs: [] });

test("view-hosts: who is connected, since when, which version, in which state; also hosts that are away and moms without vnodes", () => {
  const h = harness();
  addHost(h, "n2");
  addVnode(h, "n1", { state: ["state-unknown", "down"] });
  const since_s = Math.floor(h.core.kernel.now_ms / 1000);
  mom(h, 900, "mom-hello", hello("guest"));
  advance(h, 100);
  assert.partialDeepStrictEqual(hosts(h), [
    { host: "n1", connected_s: null, latency_ms: null, version: null, state: "state-unknown,down" },
    { host: "n2", connected_s: since_s, state: "free" },
    { host: "guest", connected_s: since_s, version: "2", state: "" },
  ]);
});

test("view-hosts: the latency is the time between the latest question and its answer, and no other message counts as one", () => {
  const h = harness();
  const link = 901;
  addHost(h, "n1");
  const latency = (): number | null | undefined => hosts(h)[0]?.latency_ms;
  h.silent.add(link);
  mom(h, link, "mom-hello", { ...hello("n1"), pongs: true });
  assert.equal(latency(), null);
  const number = h.core.kernel.moms.pings;
  advance(h, 2);
  mom(h, link, "mom-pong", { number: number - 1 });
  assert.equal(latency(), null, "an answer to an earlier question");
  mom(h, link, "mom-pong", { number });
  assert.equal(latency(), 2000);
  advance(h, 1);
  mom(h, link, "mom-pong", { number });
  assert.equal(latency(), 2000, "an answer counts once");
});

test("view-hosts: the clock of a host, and whether its datagrams and their answers arrive", () => {
  const h = harness();
  const link = 902;
  addHost(h, "n1");
  mom(h, link, "mom-hello", { ...hello("n1"), address: "10.0.0.1", reports: { every_s: 10 } });
  const view = (): HostView | undefined => hosts(h).find(({ host }) => host === "n1");
  const clock = (ahead_ms: number): { readonly clock_ms: number } => ({ clock_ms: h.core.kernel.now_ms + ahead_ms });
  assert.partialDeepStrictEqual(view(), { datagrams: null, ahead_ms: null, place: { address: "10.0.0.1", port: 15002 } });
  mom(h, link, "mom-report", { number: 1, ...clock(120_000) });
  assert.partialDeepStrictEqual(view(), { datagrams: "both", ahead_ms: 120_000 });
  mom(h, link, "mom-report", { number: 2, unheard: 4, ...clock(0) });
  assert.equal(view()?.datagrams, "there", "it does not get the answers");
  for (let count = 0; count < 3; count++) {
    advance(h, 10);
    mom(h, link, "mom-report", { number: 3 + count, unheard: 5 + count, ...clock(-500) });
  }
  assert.partialDeepStrictEqual(view(), { datagrams: "none", ahead_ms: -500 });
  for (let count = 0; count < 4; count++) {
    mom(h, link, "mom-report", { number: 6 + count, ...clock(0) });
    advance(h, 10);
  }
  assert.equal(view()?.datagrams, "both");
});

test("view-hosts: the servers of a complex with two servers, as they are at the time of the request", () => {
  const h = harness();
  assert.partialDeepStrictEqual(askOk(h, ALICE, { kind: "view-hosts" }), { servers: null });
  let standbys: readonly StandbyView[] = [];
  const pair = { role: "secondary", host: "spare", other: "head", standbys: () => standbys } as const;
  Object.assign(h.core.kernel, { config: { ...CONFIG, pair } });
  const active = { role: "secondary", host: "spare" };
  assert.partialDeepStrictEqual(askOk(h, ALICE, { kind: "view-hosts" }), { servers: { active, other: "head", standbys: [] } });
  standbys = [{ role: "primary", host: "head", pid: 7, waits: true, seen_s: 40 }];
  assert.partialDeepStrictEqual(askOk(h, ALICE, { kind: "view-hosts" }), { servers: { active, other: "head", standbys } });
});
