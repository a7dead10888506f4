// The weather of a link between hosts of a test: which frames are lost or delayed. Pure; switch.ts carries it out.

/**
 * What happens to the frames of one host's cable that fit: way: from the host (out), to it (in); default: both. peer: only frames from and to this address.
 * protocol, port: only those of IPv4 with this protocol, and with this port at one of the ends. lost: the part that is lost, from 0 to 1. delay_ms: of the others.
 * The first rule that fits counts.
 */
export type Rule = {
  readonly way?: "out" | "in";
  readonly peer?: string;
  readonly protocol?: "tcp" | "udp";
  readonly port?: number;
  readonly lost?: number;
  readonly delay_ms?: number;
};
/** rules: all that the cable of that name has from now on. */
export type SwitchOrder = { readonly cable: string; readonly rules: readonly Rule[] };
/** Frames of that cable so far. */
export type SwitchCounts = { passed: number; lost: number };

export type Way = "out" | "in";
/** source, target: addresses of IPv4. protocol: the number in the header. ports: those of TCP and UDP */
export type Packet = { readonly source: string; readonly target: string; readonly protocol: number; readonly ports: readonly number[] };

const PROTOCOLS = { tcp: 6, udp: 17 } as const;

/** The addresses and ports of a frame with IPv4; null: another one. */
export function packetOf(frame: Buffer): Packet | null {
  if (frame.length < 34 || frame.readUInt16BE(12) !== 0x0800) return null;
  const address = (at: number): string => [...frame.subarray(at, at + 4)].join(".");
  const protocol = frame[23] ?? 0;
  const begin = 14 + 4 * ((frame[14] ?? 0) & 15);
  const has_ports = (protocol === PROTOCOLS.tcp || protocol === PROTOCOLS.udp) && frame.length >= begin + 4;
  return {
    source: address(26),
    target: address(30),
    protocol,
    ports: has_ports ? [frame.readUInt16BE(begin), frame.readUInt16BE(begin + 2)] : [],
  };
}

const fits = (rule: Rule, way: Way, packet: Packet | null): boolean =>
  (rule.way === undefined || rule.way === way) &&
  (rule.peer === undefined || (packet !== null && rule.peer === (way === "out" ? packet.target : packet.source))) &&
  (rule.protocol === undefined || packet?.protocol === PROTOCOLS[rule.protocol]) &&
  (rule.port === undefined || packet?.ports.includes(rule.port) === true);

/** What the rules do to a frame: lost, or the delay in ms. chance: from 0 to 1. */
export function fate(rules: readonly Rule[], way: Way, packet: Packet | null, chance: number): "lost" | number {
  const rule = rules.find((each) => fits(each, way, packet));
  if (rule === undefined) return 0;
  return chance < (rule.lost ?? 0) ? "lost" : (rule.delay_ms ?? 0);
}
