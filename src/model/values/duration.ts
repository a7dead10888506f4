// Durations: [[HH:]MM:]SS[.fraction] or seconds. In memory a duration is a number of whole seconds. It is shown as HH:MM:SS
// with as many digits of hours as it needs (docs/reference/attributes.md 1).

const PART = /^[0-9]{1,15}$/;
const SECONDS = /^[0-9]{1,15}(\.[0-9]{1,9})?$/;

/** The longest duration, about 3,000 years. A period of this length that begins now still ends at a valid date. */
export const DURATION_S_MAX = 99_999_999_999;

/**
 * Parses a duration. Returns whole seconds (a fraction is rounded), or null if the text is not a duration or is longer than
 * DURATION_S_MAX. Minutes and seconds may be above 59: 1:90 is 150 s.
 */
export function parseDuration(text: string): number | null {
  const parts = text.split(":");
  const last = parts.pop() ?? "";
  if (parts.length > 2 || !SECONDS.test(last)) return null;
  let seconds = 0;
  for (const part of parts) {
    if (!PART.test(part)) return null;
    seconds = (seconds + Number(part)) * 60;
  }
  seconds = Math.round(seconds + Number(last));
  return seconds <= DURATION_S_MAX ? seconds : null;
}

export function renderDuration(seconds_total: number): string {
  const seconds = seconds_total % 60;
  const minutes = Math.floor(seconds_total / 60) % 60;
  const hours = Math.floor(seconds_total / 3600);
  return `${two(hours)}:${two(minutes)}:${two(seconds)}`;
}

function two(n: number): string {
  return n < 10 ? `0${n}` : String(n);
}
