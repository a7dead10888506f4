// `partita hosts`: the servers and moms of the complex as the active server sees them, and until when certificates are valid.

import { connectServer } from "#protocol/client.ts";
import type { HostView, ServersView } from "#protocol/hosts-view.ts";
import type { IdentityAnswers } from "#protocol/identity-link.ts";
import type { Conf } from "#support/conf.ts";
import { localStamper } from "#support/local-time.ts";
import { AdminError } from "../complex/complex-home.ts";
import { serverLines } from "./servers.ts";
import { table } from "./table.ts";

/** certificate_until_s: null if the host has no certificate, undefined if the caller may not know. Times are epoch seconds. */
type Shown = HostView & { readonly certificate_until_s: number | null | undefined };

/** servers: null if the complex has one server. list: the certificates, which only root may see; null for other users */
export type Hosts = {
  readonly hosts: readonly HostView[];
  readonly servers: ServersView | null;
  readonly list: IdentityAnswers["list"] | null;
};

/** Asks the active server for the servers of the complex. Returns null if the complex has one server. Throws AdminError, ServerUnreachable. */
export async function askForServers(conf: Conf): Promise<ServersView | null> {
  return conf.pair === null ? null : (await askForHosts(conf)).servers;
}

/** Asks the server for the hosts. Throws AdminError, ServerUnreachable. */
export async function askForHosts(conf: Conf): Promise<Hosts> {
  const link = await connectServer(conf);
  try {
    const reply = await link.request({ kind: "view-hosts" });
    if (!reply.ok) throw new AdminError(reply.text?.trim() ?? `error ${reply.code}`);
    const list = await link.request({ kind: "identity", ask: { verb: "list" } });
    // A server of an earlier release does not tell about servers.
    const { hosts, servers = null } = reply.value as Pick<Hosts, "hosts"> & Partial<Pick<Hosts, "servers">>;
    return { hosts, servers, list: list.ok ? (list.value as IdentityAnswers["list"]) : null };
  } finally {
    link.close();
  }
}

/** Shows the hosts as text or JSON. Throws AdminError, ServerUnreachable. */
export async function showHosts(conf: Conf, json: boolean): Promise<string> {
  const { hosts, servers, list } = await askForHosts(conf);
  const until = list === null ? null : validUntil(list);
  const shown = hosts.map((host): Shown => {
    return { ...host, certificate_until_s: until === null ? undefined : (until.get(host.host.toLowerCase()) ?? null) };
  });
  if (json) return JSON.stringify({ servers, hosts: shown }, null, 2);
  const stamper = localStamper();
  const lines = servers === null ? [] : serverLines(servers, (at_s) => stamper.stamp(at_s * 1000));
  return [...lines, asText(shown)].join("\n");
}

/** Returns for each host, by its name, when the last of its valid certificates ends. */
function validUntil({ certificates }: IdentityAnswers["list"]): ReadonlyMap<string, number> {
  const until = new Map<string, number>();
  for (const { host, standing, until_s } of certificates)
    if (standing === "valid") until.set(host, Math.max(until_s, until.get(host) ?? 0));
  return until;
}

const WAYS = { both: "pass", there: "one way", none: "blocked" } as const;
const HEAD = ["host", "connected since", "answers in", "clock", "datagrams", "version", "certificate until", "state"];

function asText(hosts: readonly Shown[]): string {
  if (hosts.length === 0) return 'The complex has no hosts yet: qmgr -c "create node NAME"';
  const stamper = localStamper();
  const time = (at_s: number): string => stamper.stamp(at_s * 1000);
  const cells = (each: Shown): readonly string[] => [
    each.host,
    each.connected_s === null ? "not connected" : time(each.connected_s),
    each.latency_ms === null ? "-" : `${each.latency_ms} ms`,
    each.ahead_ms === null ? "-" : `${each.ahead_ms < 0 ? "-" : "+"}${(Math.abs(each.ahead_ms) / 1000).toFixed(1)} s`,
    each.datagrams === null ? "-" : WAYS[each.datagrams],
    each.version ?? "-",
    typeof each.certificate_until_s === "number" ? time(each.certificate_until_s) : "-",
    each.state === "" ? "no vnode" : each.state,
  ];
  return table(HEAD, hosts.map(cells)).join("\n");
}
