// The amount by which a clock was set, in words. Pure.

/** `172800 seconds forward`, for a log. */
export function jumpText(by_ms: number): string {
  const seconds = Math.round(Math.abs(by_ms) / 1000);
  return `${seconds} seconds ${by_ms < 0 ? "back" : "forward"}`;
}
