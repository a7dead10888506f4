// Server attributes for commands to many moms at once (docs/multicast.md). OpenPBS has no such attributes. They are shown only
// when they are set.

import type { AttributeOptions, AttributeRow, AttributeType } from "../attribute.ts";
import { isGroupAddress } from "./group-address.ts";

/** Values that apply while the attribute is unset. The address is from the range for use within an organization (RFC 2365). */
const DEFAULTS = {
  multicast: false,
  multicast_group: "239.192.150.1",
  multicast_port: 15_009,
  multicast_ttl: 1,
  multicast_repeats: 2,
  multicast_interval: 200,
  multicast_moms_min: 8,
} as const;

type Name = keyof typeof DEFAULTS;

const row = (name: Name, type: AttributeType, help: string, options: AttributeOptions = {}): AttributeRow => [
  name,
  type,
  "all",
  "mgr",
  help,
  { ...options, assumed: DEFAULTS[name] },
];

/** A name or an address of a network interface. */
const INTERFACE = /^[\w.:@-]{1,64}$/;

// biome-ignore format: one row per attribute
export const MULTICAST_ROWS: readonly AttributeRow[] = [
  row("multicast", "boolean", "whether commands to many moms of other hosts go to a multicast group"),
  row("multicast_group", "string", "address of the multicast group, of IPv4 or IPv6", { check: isGroupAddress }),
  row("multicast_port", "integer", "UDP port of the multicast group", { min: 1, max: 65_535 }),
  ["multicast_interface", "string", "all", "mgr", "name or address of the server's network interface for multicast; unset: the one to the first mom", { check: (text) => INTERFACE.test(text) }],
  row("multicast_ttl", "integer", "number of networks that a multicast command may pass", { min: 1, max: 255 }),
  row("multicast_repeats", "integer", "how often a multicast command is repeated for moms that have not acknowledged it", { min: 0, max: 100 }),
  row("multicast_interval", "integer", "milliseconds until a multicast command is repeated, and after the last time goes over the connection", { min: 10, max: 60_000 }),
  row("multicast_moms_min", "integer", "smallest number of moms for which a command goes to the multicast group", { min: 1 }),
];

/** The settings of the group. interface null: unset */
export type MulticastSettings = {
  readonly address: string;
  readonly port: number;
  readonly interface: string | null;
  readonly ttl: number;
  readonly repeats: number;
  readonly interval_ms: number;
  readonly moms_min: number;
};

type Attrs = { readonly [name: string]: unknown };
type NumberName = { [K in Name]: (typeof DEFAULTS)[K] extends number ? K : never }[Name];

/** Reads the settings from the attributes of the server; null: multicast is switched off, and commands go over connections. */
export function multicastSettings({ server }: { readonly server: Attrs }): MulticastSettings | null {
  if (server["multicast"] !== true) return null;
  const text = (name: string): string | null => {
    const value = server[name];
    return typeof value === "string" ? value : null;
  };
  const number = (name: NumberName): number => {
    const value = server[name];
    return typeof value === "number" ? value : DEFAULTS[name];
  };
  return {
    address: text("multicast_group") ?? DEFAULTS.multicast_group,
    port: number("multicast_port"),
    interface: text("multicast_interface"),
    ttl: number("multicast_ttl"),
    repeats: number("multicast_repeats"),
    interval_ms: number("multicast_interval"),
    moms_min: number("multicast_moms_min"),
  };
}
