// `partita status`: shows what runs, as text or JSON.
//
// S1. If the caller may not find out whether a daemon runs, it is not reported as stopped. In system mode an ordinary user
//     gets the data that the server gives to every user.

import { hostname } from "node:os";
import { pairRole } from "#protocol/failover/pair-role.ts";
import type { ServersView } from "#protocol/hosts-view.ts";
import type { Conf } from "#support/conf.ts";
import { localStamper } from "#support/local-time.ts";
import { isMember } from "../complex/complex-home.ts";
import {
  askServer,
  DAEMONS,
  type DaemonName,
  daemonPid,
  downNode,
  downScheds,
  enabledDaemons,
  isClosed,
  keeperPids,
  type Seen,
  schedPids,
} from "../complex/daemons.ts";
import { isStopped } from "../complex/processes.ts";
import { serverLines } from "../hosts/servers.ts";

export type Report = {
  readonly text: string;
  /** exit status. 0: the server answers, and everything that should run on this host runs, as far as the caller may know; otherwise 1 */
  readonly status: number;
};

/** The state of a daemon. A number: its pid. running: it runs, but the caller may not know its pid. unknown: the caller may not know whether it runs. */
type Daemon = number | "running" | "not running" | "unknown";

export async function reportStatus(conf: Conf, json: boolean): Promise<Report> {
  if (isMember(conf)) return reportMember(conf, json);
  const seen = await askServer(conf);
  const daemons = DAEMONS.map((name): [DaemonName, Daemon] => [name, lookAt(conf, name, seen)]);
  const enabled = enabledDaemons(conf);
  const down = daemons.filter(([name, state]) => enabled.includes(name) && state === "not running");
  const faulty = seen === null || down.length > 0 || downScheds(seen).length > 0 || (conf.start.mom && downNode(seen, conf) !== null);
  const servers = seen === null ? null : await lookAtServers(conf);
  const text = json
    ? JSON.stringify({ ...asJson(conf, seen, daemons), servers, stands_by: standsBy(conf, servers) }, null, 2)
    : [...lines(conf, seen, daemons), ...pairLines(conf, servers)].join("\n");
  return { text, status: faulty ? 1 : 0 };
}

/** The servers of a complex with two servers; null: it has one, or the active server does not tell. */
async function lookAtServers(conf: Conf): Promise<ServersView | null> {
  if (conf.pair === null) return null;
  const { askForServers } = await import("../hosts/hosts.ts");
  return askForServers(conf).catch(() => null);
}

/** Whether the server on this host waits while another one leads; null: that is not known. */
function standsBy(conf: Conf, servers: ServersView | null): boolean | null {
  if (servers === null || isClosed(conf, "server")) return null;
  return daemonPid(conf, "server") !== null && pairRole(conf, hostname()) !== servers.active.role;
}

function pairLines(conf: Conf, servers: ServersView | null): readonly string[] {
  const waits = standsBy(conf, servers) === true;
  return [...(waits ? [`  the server on this host stands by: the server on ${servers?.active.host} leads`] : []), ...serversLines(servers)];
}

function serversLines(servers: ServersView | null): readonly string[] {
  if (servers === null) return [];
  const stamper = localStamper();
  return serverLines(servers, (at_s) => stamper.stamp(at_s * 1000)).map((line) => `  ${line}`);
}

/** Reports on a host whose server is on another host: its own daemons, and whether the server accepts it. */
async function reportMember(conf: Conf, json: boolean): Promise<Report> {
  const { lookAtServer } = await import("../hosts/member.ts");
  const sight = await lookAtServer(conf);
  const daemons = enabledDaemons(conf).map((name): readonly [DaemonName, Daemon] => [name, lookAt(conf, name, null)]);
  const here = schedsHere(conf);
  const down = daemons.some(([, state]) => state === "not running") || here.some(({ pid }) => pid === null);
  const shown = Object.fromEntries(daemons.map(([name, state]) => [`pbs_${name}`, state === "not running" ? null : state]));
  const servers = sight.ok ? await lookAtServers(conf) : null;
  const facts = { conf: conf.file, mode: conf.mode, answers: sight.ok, server: sight.text, daemons: shown, scheds: here, servers };
  const text = json
    ? JSON.stringify(facts, null, 2)
    : [
        `${conf.file}, ${conf.mode} mode: ${sight.text}`,
        ...daemons.map(([name, state]) => daemonLine(name, state, true)),
        ...here.map(schedLine),
        ...serversLines(servers),
      ].join("\n");
  return { text, status: sight.ok && !down ? 0 : 1 };
}

/** A scheduler of a host that has joined. pid null: it has crashed, and its keeper waits before it starts the scheduler again. */
type SchedHere = { readonly name: string; readonly pid: number | null; readonly keeper: number | null };

function schedsHere(conf: Conf): SchedHere[] {
  const pids = new Map(schedPids(conf).map(({ name, pid }) => [name, pid]));
  const keepers = new Map(keeperPids(conf).map(({ name, pid }) => [name, pid]));
  const names = [...new Set([...pids.keys(), ...keepers.keys()])].sort();
  return names.map((name) => ({ name, pid: pids.get(name) ?? null, keeper: keepers.get(name) ?? null }));
}

function schedLine({ name, pid, keeper }: SchedHere): string {
  if (pid === null) return `  scheduler ${name}: has crashed and is started again later (its log says when); partita start starts it now`;
  return `  scheduler ${name}: ${daemonWord(pid, true)}${keeper === null ? ", is not started again after a crash" : ""}`;
}

/** Returns the state of a daemon. If the caller may not read its lock, the state is derived from the server's answer and from the state of the host's vnode. */
function lookAt(conf: Conf, name: DaemonName, seen: Seen | null): Daemon {
  if (!isClosed(conf, name)) return daemonPid(conf, name) ?? "not running";
  if (name === "server" && seen !== null) return "running";
  if (name === "mom" && seen !== null && seen.nodes.some(({ id }) => id === conf.mom_node_name))
    return downNode(seen, conf) === null ? "running" : "unknown";
  return "unknown";
}

function asJson(conf: Conf, seen: Seen | null, daemons: readonly (readonly [DaemonName, Daemon])[]): object {
  return {
    conf: conf.file,
    mode: conf.mode,
    answers: seen !== null,
    // null means that the daemon does not run.
    daemons: Object.fromEntries(daemons.map(([name, state]) => [`pbs_${name}`, state === "not running" ? null : state])),
    scheds: scheds(seen),
    nodes: nodes(seen),
  };
}

function lines(conf: Conf, seen: Seen | null, daemons: readonly (readonly [DaemonName, Daemon])[]): string[] {
  const enabled = enabledDaemons(conf);
  return [
    `${conf.file}, ${conf.mode} mode: the server ${seen === null ? "does not answer" : "answers"}`,
    ...daemons.map(([name, state]) => daemonLine(name, state, enabled.includes(name))),
    ...scheds(seen).map(
      ({ name, ...rest }) =>
        `  scheduler ${name}: ${Object.values(rest)
          .filter((part) => part !== null)
          .join(", ")}`,
    ),
    ...nodes(seen).map(({ name, state }) => `  vnode ${name}: ${state}`),
  ];
}

function daemonLine(name: DaemonName, state: Daemon, enabled: boolean): string {
  return `  ${`pbs_${name}`.padEnd(11)} ${daemonWord(state, enabled)}`;
}

function daemonWord(state: Daemon, enabled: boolean): string {
  if (typeof state === "number") return isStopped(state) ? `pid ${state}, stopped: kill -CONT ${state} continues it` : `pid ${state}`;
  if (state === "unknown") return "not known (only root may look)";
  return state === "not running" && !enabled ? "not running (not enabled)" : state;
}

type Sched = { readonly name: string; readonly state: unknown; readonly partition: unknown; readonly comment: unknown };

function scheds(seen: Seen | null): Sched[] {
  return (seen?.scheds ?? []).flatMap((item) =>
    "attrs" in item
      ? [{ name: item.id, state: item.attrs["state"], partition: item.attrs["partition"] ?? null, comment: item.attrs["comment"] ?? null }]
      : [],
  );
}

const nodes = (seen: Seen | null): { readonly name: string; readonly state: unknown }[] =>
  (seen?.nodes ?? []).flatMap((item) => ("attrs" in item ? [{ name: item.id, state: item.attrs["state"] }] : []));
