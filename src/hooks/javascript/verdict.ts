// The verdict of a JavaScript hook: by accept, by reject, by an error, or by the end of its script, which accepts. Part of the
// pbs module (pbs.ts, J2).

export class HookVerdict {
  verdict: "accept" | "reject" = "accept";
  message: string | null = null;
  code: number | null = null;
  /** Thrown to end the script. */
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

  /** Ends the script; the verdict stays. */
  end(): never {
    throw this.#stop;
  }

  /** Whether a thrown value means that the script has answered. Any other value is an error. */
  isEnd(thrown: unknown): boolean {
    return thrown === this.#stop;
  }
}
