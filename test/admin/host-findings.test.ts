// What partita doctor says about hosts: one line for each thing that an administrator should look at.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type HostFacts, hostFindings, serverFindings, sightFindings } from "#admin/health/host-findings.ts";
import { TERMS } from "#identity/terms.ts";
import type { HostView, ServersView, StandbyView } from "#protocol/hosts-view.ts";
import type { IdentityAnswers } from "#protocol/identity-link.ts";

const NOW_S = 1_800_000_000;
type List = IdentityAnswers["list"];
type Certificate = List["certificates"][number];

const certificate = (host: string, left_s: number, fields: Partial<Certificate> = {}): Certificate => {
  const { role, standing } = { role: "host", standing: "valid", ...fields } as const;
  return { serial: `${host}${left_s}`, host, role, user: null, standing, from_s: 0, until_s: NOW_S + left_s };
};
const YEAR = TERMS.certificate_s;
const list = (fields: Partial<List> = {}): List => ({
  authority: { fingerprint: "ab", until_s: NOW_S + TERMS.authority_s },
  next: null,
  left: [],
  certificates: [certificate("head", YEAR, { role: "server" }), certificate("node7", YEAR)],
  tokens: [],
  ...fields,
});
const host = (fields: Partial<HostView> = {}): HostView => ({
  host: "node7",
  connected_s: NOW_S - 10,
  latency_ms: 2,
  ahead_ms: 20,
  datagrams: "both",
  place: { address: "10.0.0.7", port: 15_002 },
  version: "1",
  state: "free",
  ...fields,
});
const found = (one: List, hosts: readonly HostView[], reach: Partial<HostFacts> = {}): readonly string[] =>
  hostFindings({
    ...{ list: one, hosts, now_s: NOW_S, version: "1", date: (at_s) => `day ${Math.round((at_s - NOW_S) / 86_400)}` },
    ...{ port: 15_001, unreached: [], other_addresses: [], ...reach },
  })
    .filter(({ level }) => level !== "ok")
    .map(({ text }) => text);

test("doctor on the server: hosts, certificates and authorities that need attention, and no others", () => {
  const next = { fingerprint: "cd", until_s: NOW_S + TERMS.authority_s };
  const early = { fingerprint: "ab", until_s: NOW_S + YEAR / 2 };
  // biome-ignore format: a table
  const rows: readonly (readonly [what: string, one: List, hosts: readonly HostView[], texts: readonly RegExp[]])[] = [
    ["all is well",          list(),                                   [host(), host({ host: "head" })], []],
    ["no authority",         list({ authority: null }),                [host({ connected_s: null })],    []],
    ["not connected",        list(),                                   [host({ connected_s: null })],    [/^node7 has joined, but its mom is not connected/]],
    ["away, never joined",   list({ certificates: [] }),               [host({ connected_s: null })],    []],
    ["no vnode",             list(),                                   [host({ state: "" })],            [/has no vnode: qmgr -c "create node node7"$/]],
    ["slow",                 list(),                                   [host({ latency_ms: 1001 })],     [/took 1001 ms for an answer$/]],
    ["a clock ahead",        list(),                                   [host({ ahead_ms: 61_000 })],     [/^the clock of node7 is 61 s ahead of that of the server/]],
    ["a clock behind",       list(),                                   [host({ ahead_ms: -3_600_000 })], [/^the clock of node7 is 3600 s behind that of the server/]],
    ["a firewall",           list(),                                   [host({ datagrams: "none" })],    [/^UDP: datagrams from node7 do not reach the server: open its UDP port 15001/]],
    ["a one-way firewall",   list(),                                   [host({ datagrams: "there" })],   [/^UDP: the answers from port 15001 of the server do not reach node7/]],
    ["another version",      list(),                                   [host({ version: "0" })],         [/^node7 runs version 0, not 1: call partita upgrade/]],
    ["not renewed",          list({ certificates: [certificate("node7", YEAR / 5)] }), [host()],         [/^the certificate of node7 ends on day 73 and was not renewed/]],
    ["renewed",              list({ certificates: [certificate("node7", YEAR / 5), certificate("node7", YEAR)] }), [host()], []],
    ["revoked",              list({ certificates: [certificate("node7", 5, { standing: "revoked" })] }), [host({ connected_s: null })], []],
    ["the authority's end",  list({ authority: early, certificates: [certificate("node7", YEAR / 2)] }), [host()], [/^certificates end early, because their authority does/]],
    ["hosts that follow",    list({ next, left: ["node7"] }),          [host()],                         [/^hosts without a certificate of the next authority: node7$/]],
    ["all have followed",    list({ next }),                           [host()],                         [/partita cert rotate --finish lets it take over$/]],
  ];
  for (const [what, one, hosts, texts] of rows) {
    const lines = found(one, hosts);
    assert.equal(lines.length, texts.length, `${what}: ${lines.join("; ")}`);
    for (const [at, text] of texts.entries()) assert.match(lines[at] ?? "", text, what);
  }
});

test("doctor on the server: ports of moms that cannot be reached, and names that mean other hosts", () => {
  const place = { host: "node7", address: "10.0.0.7", port: 15_002 };
  const other = { host: "node7", address: "10.0.0.7", found: ["10.0.0.9"] };
  const texts = found(list(), [host()], { unreached: [{ ...place, why: "ECONNREFUSED" }], other_addresses: [other] });
  assert.equal(texts.length, 2);
  assert.match(texts[0] ?? "", /^TCP port 15002 of node7 \(10\.0\.0\.7\) cannot be reached from here: ECONNREFUSED/);
  assert.match(texts[1] ?? "", /^the name node7 means 10\.0\.0\.9 here, but its mom connects from 10\.0\.0\.7/);
});

test("doctor on a host: whether its mom is connected, reports by datagrams and reaches the moms of other hosts", () => {
  const others = [{ host: "node8", address: "10.0.0.8", port: 15_002 }];
  const own = { port: 15_001, runs_mom: true, unreached: [] };
  const levels = (...args: Parameters<typeof sightFindings>): string =>
    sightFindings(...args)
      .map(({ level }) => level)
      .join();
  assert.equal(levels({ connected: true, datagrams: "both", others }, own), "ok");
  assert.equal(levels({ connected: false, datagrams: null, others }, own), "fault");
  assert.equal(levels({ connected: false, datagrams: null, others }, { ...own, runs_mom: false }), "");
  assert.equal(
    levels({ connected: true, datagrams: "none", others }, { ...own, unreached: others.map((each) => ({ ...each, why: "x" })) }),
    "ok,warning,warning",
  );
});

test("doctor: which server is active, and whether a standby waits", () => {
  const standby = (waits: boolean): StandbyView => ({ role: "secondary", host: "spare", pid: 7, waits, seen_s: 40 });
  const servers = (standbys: readonly StandbyView[]): ServersView => ({
    active: { role: "primary", host: "head" },
    other: "spare",
    standbys,
  });
  const remedy = "nobody takes over if the active server fails: call partita start on spare";
  const rows: readonly (readonly [standbys: readonly StandbyView[], level: string, text: string])[] = [
    [[standby(true)], "ok", "active server: head (primary); standby: spare (secondary, pid 7) waits, last seen at 40"],
    [
      [standby(false)],
      "warning",
      `active server: head (primary); no standby waits: the server on spare (secondary) has not been seen since at 40; ${remedy}`,
    ],
    [[], "warning", `active server: head (primary); no standby waits: no server waits on spare; ${remedy}`],
  ];
  for (const [standbys, level, text] of rows)
    assert.deepEqual(
      serverFindings(servers(standbys), (at_s) => `at ${at_s}`),
      [{ level, text }],
    );
});
