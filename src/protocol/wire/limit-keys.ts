// Keys of the server's pbs.conf that set limits of connections (docs/limits.md). Limits that a manager sets while the server runs are attributes of the server
// (src/model/limits/server-limits.ts); these are needed before the server has read its attributes, or limit peers that have not proved themselves yet. Pure.

import { LIMITS, type Limits } from "./limits.ts";

/** unit: `s` for a limit in milliseconds that the key gives in seconds; `kb` for a limit in characters that the key gives in Ki characters. */
type LimitKey = {
  readonly key: string;
  readonly limit: keyof Limits;
  readonly unit: "" | "s" | "kb";
  readonly min: number;
  readonly max: number;
};

const row = (key: string, limit: keyof Limits, unit: LimitKey["unit"], min: number, max: number): LimitKey => ({
  key,
  limit,
  unit,
  min,
  max,
});

/** The smallest limit that may be set for connections: it leaves room beside the reserved ones. */
const CONNECTIONS_MIN = 2 * LIMITS.reserved_connections;

// biome-ignore format: one row per key
export const LIMIT_KEYS: readonly LimitKey[] = [
  row("PARTITA_MAX_CONNECTIONS", "connections_max", "", CONNECTIONS_MIN, 1_000_000),
  row("PARTITA_MAX_REMOTE_CONNECTIONS", "hosts_users_connections_max", "", 1, 1_000_000),
  row("PARTITA_MAX_HOST_LINKS", "host_connections_max", "", 4, 10_000),
  row("PARTITA_MAX_HOST_QUESTIONS", "host_questions_max", "", 1, 1000),
  row("PARTITA_MAX_UNPROVED", "unproved_connections_max", "", 16, 100_000),
  row("PARTITA_MAX_UNPROVED_ENDS", "unproved_ends_max", "", 1, 1_000_000),
  row("PARTITA_UNPROVED_ENDS_PERIOD", "unproved_ends_ms", "s", 1, 3600),
  row("PARTITA_MAX_UNPROVED_USERS", "unproved_users_max", "", 16, 100_000),
  row("PARTITA_HANDSHAKE_TIMEOUT", "handshake_ms_max", "s", 1, 300),
  row("PARTITA_PROOF_TIMEOUT", "proof_ms_max", "s", 1, 300),
  row("PARTITA_QUESTION_TIMEOUT", "question_ms_max", "s", 1, 300),
  row("PARTITA_MAX_REPLY_QUEUE", "client_queue_chars_max", "kb", 1024, 4 * 1024 * 1024),
  row("PARTITA_MUNGE_CALLS", "munge_calls_max", "", 1, 64),
  row("PARTITA_MAX_MUNGE_WAITING", "munge_waiting_max", "", 1, 100_000),
];

const PER_UNIT = { "": 1, s: 1000, kb: 1024 } as const;

/** Returns the limits that pbs.conf sets. values: its keys and values. fault: names the first value that cannot be used, and its allowed range. */
export function confLimits(
  values: Readonly<Record<string, string>>,
): { readonly ok: true; readonly limits: Partial<Limits> } | { readonly ok: false; readonly fault: string } {
  const limits: { -readonly [name in keyof Limits]?: number } = {};
  for (const { key, limit, unit, min, max } of LIMIT_KEYS) {
    const text = values[key];
    if (text === undefined) continue;
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) return { ok: false, fault: `${key}=${text}: it must be a number from ${min} to ${max}` };
    limits[limit] = value * PER_UNIT[unit];
  }
  return { ok: true, limits };
}

/** Returns the value of a key that is not set, in its unit. */
export const defaultOf = ({ limit, unit }: LimitKey): number => LIMITS[limit] / PER_UNIT[unit];
