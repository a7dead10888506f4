// Durations: [[HH:]MM:]SS[.fraction] or seconds. In memory whole seconds, shown HH:MM:SS with as many hours as it takes (docs/reference/attributes.md 1).

const PART = /^[0-9]{1,15}$/;
const SECONDS = /^[0-9]{1,15}(\.[0-9]{1,9})?$/;

/** Some 3,000 years: what begins now and lasts so long still ends at a date. */
export const DURATION_S_MAX = 99_999_999_999;

/** Whole seconds (a fraction is rounded); null: not a duration, or longer than DURATION_S_MAX. Minutes and seconds beyond 59 are carried over: 1:90 is 150 s. */
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
