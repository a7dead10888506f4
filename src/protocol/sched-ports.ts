// The ports at which a scheduler on another host listens, and at which its server looks for it, if its sched_port is not set
// (docs/schedulers.md). pbs.conf of both hosts must state the same ports. Pure.

import { ConfError } from "#support/conf.ts";
import { LIMITS } from "./wire/limits.ts";

/** The first port if pbs.conf states none. */
const SCHED_PORT_FIRST = 15_050;
const RANGE = /^(\d{1,5})(?:-(\d{1,5}))?$/;
const PORT_MAX = 65_535;

/** Returns the ports in their order. conf: PARTITA_SCHED_PORTS of pbs.conf, such as `15050-15069`. Throws ConfError. */
export function schedPorts({ PARTITA_SCHED_PORTS: stated }: Readonly<Record<string, string | undefined>>): readonly number[] {
  const [, first, last = first] = stated === undefined ? [] : (RANGE.exec(stated.trim()) ?? ["", "0"]);
  const from = first === undefined ? SCHED_PORT_FIRST : Number(first);
  const count = last === undefined ? LIMITS.sched_ports : Number(last) - from + 1;
  if (from < 1 || count < 1 || count > LIMITS.sched_ports_max || from + count - 1 > PORT_MAX)
    throw new ConfError(
      `PARTITA_SCHED_PORTS must be FIRST-LAST, two TCP ports, with at most ${LIMITS.sched_ports_max} ports: ${JSON.stringify(stated)}`,
    );
  return Array.from({ length: count }, (_, at) => from + at);
}
