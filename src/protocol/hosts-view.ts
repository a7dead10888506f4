// The answer to the request `view-hosts` (`partita hosts`).

/** A host of the complex: one with vnodes, or one whose mom is connected. */
export type HostView = {
  readonly host: string;
  /** since when its mom is connected, epoch seconds; null: it is not */
  readonly connected_s: number | null;
  /** time between the latest question of the server and the mom's answer, rounded up to whole milliseconds; null: there is none yet */
  readonly latency_ms: number | null;
  /** the version of Partita that its mom runs; null: unknown */
  readonly version: string | null;
  /** states of its vnodes, each once, as pbsnodes shows them; "": it has none */
  readonly state: string;
};
