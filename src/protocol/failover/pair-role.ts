// Which server of a complex with two servers a process is: PBS_PRIMARY or PBS_SECONDARY of pbs.conf. Pure.
//
// P1. Exactly one of the two places must name the server. Host and port are compared, so that both servers can be on one machine, each with a port of its own.

import { type Conf, ConfError, type ServerAt } from "#support/conf.ts";

/** primary: the server that leads whenever it can. secondary: the server that leads while the primary cannot. */
export type PairRole = "primary" | "secondary";

/** Returns the role of the server on this machine; null: the complex has one server. hostname: the name of the machine. Throws ConfError (P1). */
export function pairRole(
  { pair, port, mom_node_name, file }: Pick<Conf, "pair" | "port" | "mom_node_name" | "file">,
  hostname: string,
): PairRole | null {
  if (pair === null) return null;
  const isHere = (at: ServerAt): boolean =>
    at.port === port.server && (isLoopback(at.host) || [hostname, mom_node_name].some((name) => isSame(name, at.host)));
  const [primary, secondary] = [isHere(pair.primary), isHere(pair.secondary)];
  if (primary !== secondary) return primary ? "primary" : "secondary";
  const what = primary ? "both are" : "neither is";
  throw new ConfError(`${file}: PBS_PRIMARY and PBS_SECONDARY: ${what} this host (${hostname}, port ${port.server})`);
}

const isLoopback = (host: string): boolean => host === "localhost" || host === "::1" || /^127\./.test(host);

/** Whether two names mean one host: they are equal without regard to case, or differ by a domain. */
function isSame(a: string, b: string): boolean {
  const [one, other] = [a.toLowerCase(), b.toLowerCase()];
  return one === other || one.startsWith(`${other}.`) || other.startsWith(`${one}.`);
}
