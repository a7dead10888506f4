// Whether a host is too busy for jobs (`$ideal_load`, `$max_load`, `$kbd_idle` of mom_priv/config, docs/reference/execution.md 7 and 10). Pure.
//
// B1. While the load is between $ideal_load and $max_load, the state does not change, so that it does not alternate all the time.

/**
 * $ideal_load and $max_load. Without a maximum, a host is never busy because of its load. Without an ideal, it is free again as soon as the load is below the
 * maximum.
 */
export type LoadLimits = { readonly ideal: number | null; readonly max: number | null };
/** idle_wait_s: time without input after which the host is free for jobs. min_use_s: time with input after which it is busy. poll_s: interval of checks. */
export type KeyboardLimits = { readonly idle_wait_s: number; readonly min_use_s: number; readonly poll_s: number };

/** Why a host is busy. in_use_since_ms: when the present typing began; null: nobody types. */
export type Busyness = { readonly load: boolean; readonly keyboard: boolean; readonly in_use_since_ms: number | null };
export const NOT_BUSY: Busyness = { load: false, keyboard: false, in_use_since_ms: null };

/** A measurement of the host. load: average over a minute. idle_s: time since the last input; null: unknown. */
export type Measure = { readonly load: number; readonly idle_s: number | null };

export function nextBusyness(
  before: Busyness,
  { load, idle_s }: Measure,
  limits: { readonly load: LoadLimits; readonly keyboard: KeyboardLimits | null },
  now_ms: number,
): Busyness {
  const { keyboard } = limits;
  const typed = keyboard === null || idle_s === null ? NOBODY : typing(before, idle_s, keyboard, now_ms);
  return { load: tooLoaded(before.load, load, limits.load), ...typed };
}

type Typing = Pick<Busyness, "keyboard" | "in_use_since_ms">;
const NOBODY: Typing = { keyboard: false, in_use_since_ms: null };

function tooLoaded(before: boolean, load: number, { ideal, max }: LoadLimits): boolean {
  if (max === null) return false;
  if (load > max) return true;
  return before && load >= (ideal ?? max);
}

function typing(before: Typing, idle_s: number, { idle_wait_s, min_use_s, poll_s }: KeyboardLimits, now_ms: number): Typing {
  if (before.keyboard) return idle_s >= idle_wait_s ? NOBODY : { keyboard: true, in_use_since_ms: before.in_use_since_ms };
  // There was input since the last check. Unless the host was already in use, its use began with that input.
  if (idle_s > poll_s) return NOBODY;
  const in_use_since_ms = before.in_use_since_ms ?? now_ms - idle_s * 1000;
  return { keyboard: now_ms - in_use_since_ms >= min_use_s * 1000, in_use_since_ms };
}

export const isBusy = ({ load, keyboard }: Busyness): boolean => load || keyboard;
