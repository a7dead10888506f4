// Counters of datagrams that have arrived, so that none counts twice (as in RFC 4303, 3.4.3). Datagrams may overtake one another by up to WINDOW counters.

const WINDOW = 64;

export type ReplayWindow = {
  /** "new": not seen; "replayed": seen; "late": so old that it is not known whether it was seen */
  look(counter: number): "new" | "replayed" | "late";
  /** Notes a counter that look() found new. Called only when the datagram has been proved. */
  note(counter: number): void;
};

export function replayWindow(): ReplayWindow {
  let newest = -1;
  /** bit n is set if the counter `newest - n` was seen */
  let seen = 0n;
  return {
    look(counter) {
      if (counter > newest) return "new";
      if (newest - counter >= WINDOW) return "late";
      return ((seen >> BigInt(newest - counter)) & 1n) === 1n ? "replayed" : "new";
    },
    note(counter) {
      if (counter > newest) {
        const ahead = Math.min(counter - newest, WINDOW);
        seen = BigInt.asUintN(WINDOW, seen << BigInt(ahead)) | 1n;
        newest = counter;
      } else seen |= 1n << BigInt(newest - counter);
    },
  };
}
