// Common code of tests of eligible time: a server that records it, and its form in qstat.

import { addHost, apply, type Harness, harness, ROOT, statusOf } from "../harness.ts";

export function world(server: Record<string, unknown> = {}): { h: Harness; link: number } {
  const h = harness({ server: { eligible_time_enable: true, log_events: 2047, ...server } });
  return { h, link: addHost(h, "n1") };
}
/** `2 00:00:10` as a manager sees it */
export function shown(h: Harness, id: string): string {
  const [item] = statusOf(h, ROOT, { kind: "status", object: "job", ids: [id], attrs: ["accrue_type", "eligible_time"], history: "with" });
  const { attrs } = item as { attrs: { accrue_type?: string; eligible_time?: string } };
  return `${attrs.accrue_type ?? "-"} ${attrs.eligible_time ?? "-"}`;
}
export const setServer = (h: Harness, set: Record<string, unknown>, ...unset: string[]): void =>
  apply(h, { kind: "server-changed", set, unset });
