// One line of the benchmark's table (docs/bench.md).

export type Row = {
  readonly work: string;
  /** median where repeated */
  readonly value: number;
  readonly unit: "s" | "ms" | "/s" | "kB";
  /** upper bound (s, ms, kB) or lower bound (/s); null: the row is for information only */
  readonly limit: number | null;
  /** results of other systems in the same run: name -> value in the same unit */
  readonly peers?: { readonly [peer: string]: number };
};

export function isWithin({ value, unit, limit }: Row): boolean | null {
  if (limit === null) return null;
  return unit === "/s" ? value >= limit : value <= limit;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
