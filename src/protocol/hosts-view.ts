// The answer to the request `view-hosts` (`partita hosts`).

import type { PairRole } from "./failover/pair-role.ts";

/**
 * both: datagrams of the mom reach the server, and the answers reach the mom. there: the mom's datagrams arrive, but no answer does. none: no datagram of the
 * mom arrives, so its reports come over the connection
 */
export type Datagrams = "both" | "there" | "none";

/** A host of the complex: one with vnodes, or one whose mom is connected. */
export type HostView = {
  readonly host: string;
  /** since when its mom is connected, epoch seconds; null: it is not */
  readonly connected_s: number | null;
  /** time between the latest question of the server and the mom's answer, rounded up to whole milliseconds; null: there is none yet */
  readonly latency_ms: number | null;
  /** by how many milliseconds the clock of the host is ahead of the server's; null: unknown */
  readonly ahead_ms: number | null;
  /** whether datagrams pass between the mom and the server; null: it sends none, or none are due yet */
  readonly datagrams: Datagrams | null;
  /** where the mom accepts connections of other moms; null: it is not connected, or on the server's host */
  readonly place: { readonly address: string; readonly port: number } | null;
  /** the version of Partita that its mom runs; null: unknown */
  readonly version: string | null;
  /** states of its vnodes, each once, as pbsnodes shows them; "": it has none */
  readonly state: string;
};

/** A server that waits, or has waited, as the active server sees it. waits: it has shown within the time of silence that it is alive */
export type StandbyView = {
  readonly role: PairRole;
  readonly host: string;
  readonly pid: number;
  readonly waits: boolean;
  /** time of its last sign of life, epoch seconds. If the active server has seen none since it leads: the time of its first look */
  readonly seen_s: number;
};

/** The two servers of a complex (docs/standby.md). other: the host of pbs.conf on which a standby is expected */
export type ServersView = {
  readonly active: { readonly role: PairRole; readonly host: string };
  readonly other: string;
  readonly standbys: readonly StandbyView[];
};
