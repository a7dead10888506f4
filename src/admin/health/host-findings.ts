// What `partita doctor` says about the hosts of a complex, from what the server knows of them. Pure.

import { TERMS } from "#identity/terms.ts";
import type { HostView, ServersView } from "#protocol/hosts-view.ts";
import type { IdentityAnswers } from "#protocol/identity-link.ts";
import type { HostSight } from "#protocol/join-link.ts";
import { hasStandby, serverLines } from "../hosts/servers.ts";
import type { Finding } from "./doctor.ts";
import type { OtherAddress, Unreached } from "./reach.ts";

/** The facts to judge. now_s: epoch seconds; version: the version of the programs on this host; date: writes epoch seconds for people */
export type HostFacts = {
  readonly list: IdentityAnswers["list"];
  readonly hosts: readonly HostView[];
  readonly now_s: number;
  readonly version: string;
  readonly date: (at_s: number) => string;
  /** PBS_BATCH_SERVICE_PORT */
  readonly port: number;
  /** moms to which this host cannot connect, and hosts whose names mean other addresses here */
  readonly unreached: readonly Unreached[];
  readonly other_addresses: readonly OtherAddress[];
};

/** Longest time that a mom may take to answer without a warning. The server itself waits several seconds for moms before it takes action. */
const LATENCY_MS_MAX = 1000;
/** Largest number of hosts that one line names. */
const NAMED_MAX = 10;

/** Difference between the clocks of a host and of the server above which there is a warning. Certificates tolerate an hour, credentials of MUNGE five minutes. */
const CLOCK_MS_MAX = 60_000;

const warning = (text: string): Finding => ({ level: "warning", text });

export function hostFindings(facts: HostFacts): Finding[] {
  const { list, hosts } = facts;
  if (list.authority === null) return [];
  const until = new Map<string, number>();
  for (const { host, role, standing, until_s } of list.certificates)
    if (role === "host" && standing === "valid") until.set(host, Math.max(until_s, until.get(host) ?? 0));
  return [
    {
      level: "ok",
      text: `certificate authority until ${facts.date(list.authority.until_s)}; hosts with valid certificates: ${until.size}`,
    },
    ...authorityFindings(facts),
    ...certificateFindings(facts, until),
    ...networkFindings(hosts),
    ...hosts.flatMap((host) => linkFindings(facts, host, until)),
    ...facts.unreached.map(unreachedFinding),
    ...facts.other_addresses.map(({ host, address, found }) =>
      warning(`the name ${host} means ${found.join(" ")} here, but its mom connects from ${address}: correct /etc/hosts or the DNS`),
    ),
  ];
}

/** Returns one line about the hosts whose moms are connected over the network; none if there are no such hosts. */
function networkFindings(hosts: readonly HostView[]): Finding[] {
  const far = hosts.filter(({ place }) => place !== null);
  if (far.length === 0) return [];
  const by_datagram = far.filter(({ datagrams }) => datagrams === "both").length;
  const clocks_ms = far.flatMap(({ ahead_ms }) => (ahead_ms === null ? [] : [Math.abs(ahead_ms)]));
  const clocks = clocks_ms.length === 0 ? "" : `; clocks differ by at most ${(Math.max(...clocks_ms) / 1000).toFixed(1)} s`;
  return [{ level: "ok", text: `connected over the network: ${far.length} hosts, ${by_datagram} of them report by datagrams${clocks}` }];
}

const unreachedFinding = ({ host, address, port, why }: Unreached): Finding =>
  warning(
    `TCP port ${port} of ${host} (${address}) cannot be reached from here: ${why}; does a firewall close it? Jobs over several hosts need it`,
  );

/** What `partita doctor` says about the two servers of a complex. date: writes epoch seconds for people */
export function serverFindings(servers: ServersView, date: HostFacts["date"]): Finding[] {
  const text = serverLines(servers, date).join("; ");
  if (hasStandby(servers)) return [{ level: "ok", text }];
  return [warning(`${text}; nobody takes over if the active server fails: call partita start on ${servers.other}`)];
}

/** port: PBS_BATCH_SERVICE_PORT; runs_mom: a mom runs on this host; unreached: moms to which this host cannot connect */
export type OwnFacts = { readonly port: number; readonly runs_mom: boolean; readonly unreached: readonly Unreached[] };

/** Returns what `partita doctor` says on a host that has joined. The first argument is what the server knows of this host. */
export function sightFindings({ connected, datagrams, others }: HostSight, { port, runs_mom, unreached }: OwnFacts): Finding[] {
  if (!runs_mom) return [];
  if (!connected) return [{ level: "fault", text: "a mom runs here, but it is not connected to the server: see mom_logs" }];
  const reached = others.length - unreached.length;
  return [
    { level: "ok", text: `the mom is connected to the server, and can reach ${reached} of ${others.length} moms on other hosts` },
    ...datagramFindings("this host", datagrams, port),
    ...unreached.map(unreachedFinding),
  ];
}

function datagramFindings(from: string, datagrams: HostView["datagrams"], port: number): Finding[] {
  const meanwhile = "until then its reports take the TCP connection";
  if (datagrams === "none")
    return [warning(`UDP: datagrams from ${from} do not reach the server: open its UDP port ${port} for this host; ${meanwhile}`)];
  if (datagrams === "there")
    return [warning(`UDP: the answers from port ${port} of the server do not reach ${from}: let answers pass the firewall; ${meanwhile}`)];
  return [];
}

function authorityFindings({ list: { authority, next, left }, now_s }: HostFacts): Finding[] {
  const findings: Finding[] = [];
  if (authority !== null && authority.until_s - now_s < TERMS.certificate_s)
    findings.push(warning("certificates end early, because their authority does: partita cert rotate makes another one"));
  if (next !== null)
    findings.push(
      warning(
        left.length === 0
          ? "all hosts have certificates of the next authority: partita cert rotate --finish lets it take over"
          : `hosts without a certificate of the next authority: ${named(left)}`,
      ),
    );
  return findings;
}

/** Findings about certificates. A mom renews its certificate when a third of its time is left (TERMS). If less is left, something prevents the renewal. */
function certificateFindings({ list, now_s, date }: HostFacts, until: ReadonlyMap<string, number>): Finding[] {
  const late_s = Math.min(TERMS.certificate_s / 4, (list.authority?.until_s ?? 0) - now_s);
  return [...until]
    .filter(([, until_s]) => until_s - now_s < late_s)
    .map(([host, until_s]) =>
      warning(`the certificate of ${host} ends on ${date(until_s)} and was not renewed: see mom_logs on that host`),
    );
}

function linkFindings({ version, port }: HostFacts, host: HostView, until: ReadonlyMap<string, number>): Finding[] {
  const { connected_s, latency_ms, ahead_ms, datagrams, state } = host;
  if (connected_s === null)
    return until.has(host.host.toLowerCase())
      ? [warning(`${host.host} has joined, but its mom is not connected: call partita doctor on that host`)]
      : [];
  const findings: Finding[] = [];
  if (state === "") findings.push(warning(`the mom of ${host.host} is connected, but has no vnode: qmgr -c "create node ${host.host}"`));
  if (latency_ms !== null && latency_ms > LATENCY_MS_MAX)
    findings.push(warning(`the mom of ${host.host} took ${latency_ms} ms for an answer`));
  if (ahead_ms !== null && Math.abs(ahead_ms) > CLOCK_MS_MAX) {
    const way = `${Math.round(Math.abs(ahead_ms) / 1000)} s ${ahead_ms > 0 ? "ahead of" : "behind"}`;
    findings.push(warning(`the clock of ${host.host} is ${way} that of the server: let a service set both clocks`));
  }
  findings.push(...datagramFindings(host.host, datagrams, port));
  if (host.version !== null && host.version !== version)
    findings.push(warning(`${host.host} runs version ${host.version}, not ${version}: call partita upgrade on that host`));
  return findings;
}

const named = (names: readonly string[]): string =>
  names.length <= NAMED_MAX ? names.join(" ") : `${names.slice(0, NAMED_MAX).join(" ")} and ${names.length - NAMED_MAX} more`;
