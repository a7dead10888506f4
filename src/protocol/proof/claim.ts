// What the payload of a munge credential claims (docs/identity.md). MUNGE proves the uid and gid of the credential's maker; the payload says what the credential is
// good for. Pure.
//
// P1. A credential is good for one server, one TLS connection and a short time. A standby server, and the same server on another connection, refuse it.
// P2. Each payload stands for exactly one claim.

import { hostName } from "#identity/host-name.ts";

export type Claim = {
  /** PBS_SERVER */
  readonly server: string;
  /** identifies the connection: 64 hexadecimal digits (exchange.ts) */
  readonly binding: string;
  /** epoch seconds by the clock of the maker's host */
  readonly made_s: number;
};

/** A credential is refused if its time differs by more than this from the server's clock, in seconds. munged has a limit of its own, 300 s by default. */
export const CLAIM_AGE_S_MAX = 300;

const FORM = /^partita-user\/1 server=(\S{1,63}) binding=([0-9a-f]{64}) made=(0|[1-9][0-9]{0,11})$/;

export const claimText = ({ server, binding, made_s }: Claim): string =>
  `partita-user/1 server=${server.toLowerCase()} binding=${binding} made=${made_s}`;

/** Returns why the server refuses the payload of a credential; null: it is good. expected.made_s: the server's clock. */
export function claimFault(payload: string, expected: Claim): string | null {
  const [, server = "", binding, made = ""] = FORM.exec(payload) ?? [];
  if (binding === undefined) return "it was not made for a Partita server";
  if (hostName(server) !== hostName(expected.server)) return `it was made for the server ${server}`;
  if (binding !== expected.binding) return "it was made for another connection";
  const late_s = expected.made_s - Number(made);
  if (Math.abs(late_s) <= CLAIM_AGE_S_MAX) return null;
  return `it was made ${Math.abs(late_s)} s ${late_s > 0 ? "ago" : "in the future"} by the server's clock: compare the clocks of both hosts`;
}
