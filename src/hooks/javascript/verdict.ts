// How a hook in JavaScript ends: by accept, by reject, by an error, or at the end of its script, which accepts. A part of the pbs module (pbs.ts, J2).

export class HookVerdict {
  verdict: "accept" | "reject" = "accept";
  message: string | null = null;
  code: number | null = null;
  /** Thrown where the script is to go no further. */
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

  /** Whether a script that threw this has answered; anything else is an error. */
  isEnd(thrown: unknown): boolean {
    return thrown === this.#stop;
  }
}
