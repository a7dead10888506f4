// The two servers of a complex, in words (docs/standby.md). Pure.

import type { ServersView } from "#protocol/hosts-view.ts";

/** time: writes epoch seconds for people */
type Time = (at_s: number) => string;

/** Returns one line for the active server, and one for the standby. */
export function serverLines({ active, other, standbys }: ServersView, time: Time): readonly string[] {
  const lines = standbys.map(({ role, host, pid, waits, seen_s }) =>
    waits
      ? `standby: ${host} (${role}, pid ${pid}) waits, last seen ${time(seen_s)}`
      : `no standby waits: the server on ${host} (${role}) has not been seen since ${time(seen_s)}`,
  );
  return [
    `active server: ${active.host} (${active.role})`,
    ...(lines.length === 0 ? [`no standby waits: no server waits on ${other}`] : lines),
  ];
}

/** Whether the other server can take over. */
export const hasStandby = ({ standbys }: ServersView): boolean => standbys.some(({ waits }) => waits);
