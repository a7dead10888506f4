// What `partita doctor` says about the hosts of a complex, from what the server knows of them. Pure.

import { TERMS } from "#identity/terms.ts";
import type { HostView } from "#protocol/hosts-view.ts";
import type { IdentityAnswers } from "#protocol/identity-link.ts";
import type { Finding } from "./doctor.ts";

/** The facts to judge. now_s: epoch seconds; version: that of the programs on this host; date: writes epoch seconds for people */
export type HostFacts = {
  readonly list: IdentityAnswers["list"];
  readonly hosts: readonly HostView[];
  readonly now_s: number;
  readonly version: string;
  readonly date: (at_s: number) => string;
};

/** Longest time that a mom may take to answer without a warning. The server itself waits several seconds for moms before it takes action. */
const LATENCY_MS_MAX = 1000;
/** Largest number of hosts that one line names. */
const NAMED_MAX = 10;

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
    ...hosts.flatMap((host) => linkFindings(facts, host, until)),
  ];
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

function linkFindings({ version }: HostFacts, host: HostView, until: ReadonlyMap<string, number>): Finding[] {
  const { connected_s, latency_ms, state } = host;
  if (connected_s === null)
    return until.has(host.host.toLowerCase())
      ? [warning(`${host.host} has joined, but its mom is not connected: call partita doctor on that host`)]
      : [];
  const findings: Finding[] = [];
  if (state === "") findings.push(warning(`the mom of ${host.host} is connected, but has no vnode: qmgr -c "create node ${host.host}"`));
  if (latency_ms !== null && latency_ms > LATENCY_MS_MAX)
    findings.push(warning(`the mom of ${host.host} took ${latency_ms} ms for an answer`));
  if (host.version !== null && host.version !== version)
    findings.push(warning(`${host.host} runs version ${host.version}, not ${version}: call partita upgrade on that host`));
  return findings;
}

const named = (names: readonly string[]): string =>
  names.length <= NAMED_MAX ? names.join(" ") : `${names.slice(0, NAMED_MAX).join(" ")} and ${names.length - NAMED_MAX} more`;
