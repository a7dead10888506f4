// Converts values between PBS's text and what JavaScript hooks see: numbers, booleans, durations and sizes. Part of the pbs
// module (pbs.ts, J2).

export class HookValues {
  static readonly #SHIFT: { readonly [unit: string]: number } = { "": 0, k: 10, m: 20, g: 30, t: 40, p: 50 };

  /** Makes a pbs.duration from [[HH:]MM:]SS or a number of seconds. Throws a TypeError for anything else. */
  duration(value: unknown = 0): object {
    const seconds = typeof value === "string" ? this.#secondsOf(value) : Math.trunc(Number(value));
    if (!Number.isFinite(seconds)) throw new TypeError(`invalid duration value: ${String(value)}`);
    const two = (number: number): string => String(number).padStart(2, "0");
    const text = `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
    return Object.freeze({ seconds, valueOf: () => seconds, toString: () => text, toJSON: () => text });
  }

  #secondsOf(text: string): number {
    const match = /^\s*(?:(?:(\d+):)?(\d+):)?(\d+)(?:\.\d+)?\s*$/.exec(text);
    if (match === null) throw new TypeError(`invalid duration value: ${text}`);
    return Number(match[1] ?? 0) * 3600 + Number(match[2] ?? 0) * 60 + Number(match[3]);
  }

  /** Makes a pbs.size from a number with a unit (kb, mw, ...). Throws a TypeError for anything else. */
  size(value: unknown = 0): object {
    const match = /^\s*([+-]?\d+)\s*([kmgtp]?)([bw]?)\s*$/i.exec(String(value));
    if (match === null) throw new TypeError(`invalid size value: ${String(value)}`);
    const [, number, prefix = "", suffix = ""] = match;
    const unit = prefix.toLowerCase();
    const count = Number(number) * (suffix.toLowerCase() === "w" ? 8 : 1);
    const bytes = count * 2 ** (HookValues.#SHIFT[unit] ?? 0);
    const text = `${count}${unit}b`;
    return Object.freeze({ bytes, valueOf: () => bytes, toString: () => text, toJSON: () => text });
  }

  /** Returns the boolean that a value means, or null if it means neither true nor false. */
  #truth(value: unknown): boolean | null {
    const word = String(value).toLowerCase();
    return ["true", "t", "y", "1"].includes(word) ? true : ["false", "f", "n", "0"].includes(word) ? false : null;
  }

  /** Converts PBS's text to the value that a hook sees. kind: type of the attribute or resource. */
  fromText(kind: string, text: string): unknown {
    switch (kind) {
      case "boolean":
        return this.#truth(text);
      case "interactive":
        return this.#truth(text) === true;
      case "integer":
      case "long":
      case "long64":
      case "time":
      case "float":
        return Number(text);
      case "duration":
        return this.duration(text);
      case "size":
        return this.size(text);
      default:
        return text;
    }
  }

  /** Converts a value that a hook sets to PBS's text. Throws a TypeError if the value is unsuitable. what: the attribute or resource, which the error names. */
  toText(what: string, kind: string, value: unknown): string {
    const text = this.#textOf(kind, value);
    if (text === null) throw new TypeError(`${what}: not a value for it: ${String(value)}`);
    return text;
  }

  #textOf(kind: string, value: unknown): string | null {
    switch (kind) {
      case "boolean": {
        const flag = this.#truth(value);
        return flag === null ? null : flag ? "True" : "False";
      }
      case "integer":
      case "long":
      case "long64":
      case "time":
        return /^[+-]?\d+$/.test(String(value).trim()) ? String(value).trim() : null;
      case "float":
        return Number.isFinite(Number(value)) && String(value).trim() !== "" ? String(Number(value)) : null;
      case "duration":
        return String(this.duration(typeof value === "object" ? String(value) : value));
      case "size":
        return String(this.size(value));
      default:
        return Array.isArray(value) ? value.join(",") : String(value);
    }
  }
}
