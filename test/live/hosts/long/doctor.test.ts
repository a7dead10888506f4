// `partita hosts` and `partita doctor` on the server and on other hosts: what they say about clocks, names, firewalls and the database, when something is wrong with one of them.

import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { HostView } from "#protocol/hosts-view.ts";
import { until } from "../../complex.ts";
import { LACK_OF_POSTGRES, type Postgres, startPostgres } from "../../store/postgres-bed.ts";
import { type Bed, closeBed, joins, makeBed } from "../bed.ts";
import { lackOfNamespaces, lackOfWeather, makeNet, type NetHost } from "../namespaces.ts";

const skip = lackOfNamespaces() || lackOfWeather() || LACK_OF_POSTGRES;

type Finding = { readonly level: "ok" | "warning" | "fault"; readonly text: string };

/** All findings of `partita doctor -F json` on a host. */
function findings(bed: Bed, host: NetHost): readonly Finding[] {
  const { stdout, stderr } = host.run([join(bed.net.dir, "opt/bin/partita"), "doctor", "-F", "json", "--home", bed.homeOf(host)]);
  assert.ok(stdout.startsWith("["), `${stdout}${stderr}`);
  return JSON.parse(stdout) as readonly Finding[];
}

const found = (bed: Bed, host: NetHost, level: Finding["level"], text: RegExp): boolean =>
  findings(bed, host).some((each) => each.level === level && text.test(each.text));

const view = (bed: Bed, name: string): HostView | undefined => {
  const { hosts } = JSON.parse(bed.partita(bed.head, "hosts", "-F", "json")) as { readonly hosts: readonly HostView[] };
  return hosts.find(({ host }) => host === name);
};

/** A program that loads this file has a clock that is so many milliseconds ahead. */
const AHEAD = (ms: number): string => `const now = Date.now.bind(Date); Date.now = () => now() + ${ms};\n`;

test("hosts and doctor: clocks, names, ports over TCP and UDP, and the database, each named when it is wrong", { skip }, async () => {
  const net = makeNet(["head", "node7", "node8", "db"], { weather: true });
  const [head, node7, node8, db] = net.hosts as readonly [NetHost, NetHost, NetHost, NetHost];
  let postgres: Postgres | null = null;
  try {
    postgres = startPostgres({
      durable: true,
      within: db.within,
      conf: ["listen_addresses = '*'"],
      hba: [`host all all ${head.address}/32 scram-sha-256`],
    });
    const bed = makeBed(net, head);
    appendFileSync(join(bed.homeOf(head), "pbs.conf"), "PARTITA_STORE=postgres\n");
    const database = postgres.conf("sslmode = disable", "connect_timeout = 2").replace(/^host = .*$/m, "host = db");
    writeFileSync(join(bed.homeOf(head), "pbs/server_priv/database.conf"), database, { mode: 0o600 });
    bed.partita(head, "start");
    const late = join(net.dir, "ahead.cjs");
    writeFileSync(late, AHEAD(-120_000));
    for (const host of [node7, node8]) {
      joins(bed, host);
      mkdirSync(join(bed.homeOf(host), "pbs/mom_priv"), { recursive: true });
      appendFileSync(join(bed.homeOf(host), "pbs/mom_priv/config"), "$status_interval 1\n");
      bed.pbs(["qmgr", "-c", `create node ${host.name}`]);
    }
    bed.partita(node7, "start");
    const start = [join(net.dir, "opt/bin/partita"), "start", "--home", bed.homeOf(node8)];
    await node8.later(start, { env: { ...process.env, NODE_OPTIONS: `--require=${late}` } });
    for (const { name } of [node7, node8]) await until(`${name} reports`, () => view(bed, name)?.datagrams === "both");
    clocks(bed, node7, node8, late);
    await firewalls(bed, node7, node8);
    names(bed, node7);
    await databaseAway(bed, db);
  } finally {
    closeBed(net);
    postgres?.remove();
  }
});

/** node8 is two minutes behind. All else is in order. */
function clocks(bed: Bed, node7: NetHost, node8: NetHost, late: string): void {
  const { head } = bed;
  const ahead_ms = view(bed, "node8")?.ahead_ms ?? 0;
  assert.ok(Math.abs(ahead_ms + 120_000) < 20_000, `${ahead_ms} ms`);
  const said = findings(bed, head).filter(({ level }) => level !== "ok");
  assert.equal(said.length, 1, JSON.stringify(said));
  assert.match(said[0]?.text ?? "", /^the clock of node8 is 1[0-9]{2} s behind that of the server/);
  assert.match(bed.partita(head, "hosts"), /^node8 .* -1\d\d\.\d s +pass /m);
  assert.ok(
    found(bed, head, "ok", /^connected over the network: 2 hosts, 2 of them report by datagrams; clocks differ by at most 1\d\d\.\d s$/),
  );
  assert.ok(found(bed, node7, "ok", /^the mom is connected to the server, and can reach 1 of 1 moms on other hosts$/));
  const options = { ...process.env, NODE_OPTIONS: `--require=${late}` };
  const words = [
    "env",
    `NODE_OPTIONS=${options.NODE_OPTIONS}`,
    join(bed.net.dir, "opt/bin/partita"),
    "doctor",
    "--home",
    bed.homeOf(node8),
  ];
  assert.match(node8.run(words).stdout, /warning the clock of this host is 1\d\d s behind that of the server/);
}

async function firewalls(bed: Bed, node7: NetHost, node8: NetHost): Promise<void> {
  const { head } = bed;
  const cases = [
    {
      rule: { way: "out", protocol: "udp", lost: 1 } as const,
      datagrams: "none",
      text: /^UDP: datagrams from (node7|this host) do not reach the server: open/,
    },
    {
      rule: { way: "in", protocol: "udp", lost: 1 } as const,
      datagrams: "there",
      text: /^UDP: the answers from port 15001 of the server do not reach (node7|this host)/,
    },
  ];
  for (const { rule, datagrams, text } of cases) {
    await node7.weather(rule);
    await until(`datagrams: ${datagrams}`, () => view(bed, "node7")?.datagrams === datagrams);
    for (const host of [head, node7]) assert.ok(found(bed, host, "warning", text), `${host.name}: ${datagrams}`);
    assert.equal(bed.state("node7"), "free", "its reports take the connection");
  }
  await node7.weather({ protocol: "tcp", port: 15002, lost: 1 });
  await until("datagrams pass again", () => view(bed, "node7")?.datagrams === "both");
  const closed = /^TCP port 15002 of node7 \(10\.99\.0\.2\) cannot be reached from here: no answer in 5 s/;
  for (const host of [head, node8]) assert.ok(found(bed, host, "warning", closed), `${host.name}: TCP 15002`);
  await node7.weather({ protocol: "tcp", port: 15001, lost: 1 });
  assert.ok(found(bed, node7, "fault", /does a firewall close TCP port 15001\?/));
  await node7.weather();
  await until("node7 is free", () => bed.state("node7") === "free" && view(bed, "node7")?.datagrams === "both");
}

/** What the head takes for the address of node7 is another host. */
function names(bed: Bed, node7: NetHost): void {
  const file = join(bed.net.dir, "head/etc/hosts");
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace(/^\S+ node7$/m, "10.99.0.77 node7"));
  assert.ok(found(bed, bed.head, "warning", /^the name node7 means 10\.99\.0\.77 here, but its mom connects from 10\.99\.0\.2/));
  writeFileSync(file, text);
  const own = join(bed.net.dir, "node7/etc/hosts");
  const before = readFileSync(own, "utf8");
  writeFileSync(own, before.replace(/^\S+ head$/m, ""));
  assert.ok(found(bed, node7, "fault", /the name head has no address here/));
  writeFileSync(own, before);
}

async function databaseAway(bed: Bed, db: NetHost): Promise<void> {
  const { head } = bed;
  assert.ok(found(bed, head, "ok", /PostgreSQL db:5432.* can be reached/));
  await db.weather({ peer: head.address, lost: 1 });
  assert.ok(found(bed, head, "fault", /db:5432/));
  await db.weather();
  await until("the database is back", () => found(bed, head, "ok", /PostgreSQL db:5432.* can be reached/));
}
