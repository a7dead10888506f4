// How a JavaScript hook ended: it called accept or reject, threw an error, or reached the end of its script, which accepts.
// Part of the pbs module (pbs.ts, J2).

export class HookVerdict {
  verdict: "accept" | "reject" = "accept";
  message: string | null = null;
  code: number | null = null;
  /** Thrown to end the script after the hook has called accept or reject. */
  readonly #stop = Object.freeze({ stop: "the hook has answered" });

  accept(): never {
    this.verdict = "accept";
    this.message = null;
    this.code = null;
    throw this.#stop;
  }

  reject(message: unknown, code: unknown): never {
    this.verdict = "reject";
    this.message = message === undefined || message === null ? null : String(message);
    this.code = typeof code === "number" ? code : null;
    throw this.#stop;
  }

  /** Ends the script without changing the verdict. */
  end(): never {
    throw this.#stop;
  }

  /** Whether a thrown value is the one that ends the script. Any other thrown value is an error of the hook. */
  isEnd(thrown: unknown): boolean {
    return thrown === this.#stop;
  }
}
