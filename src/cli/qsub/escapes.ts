// Escapes in the input of an interactive job, which qsub itself interprets: a tilde at the beginning of a line, followed by
// a dot (which ends the job) or by the suspend character (docs/reference/commands.md 1). Pure.

export type Typed = { readonly kind: "send"; readonly bytes: Uint8Array } | { readonly kind: "terminate" } | { readonly kind: "suspend" };

const TILDE = 0x7e;
const DOT = 0x2e;
const NEWLINE = 0x0a;
const RETURN = 0x0d;

/**
 * Returns a function that takes input as it arrives. It keeps a tilde back until the next character has arrived. controls: the codes of interrupt, quit, erase,
 * kill, end of file and suspend.
 */
export function escapeReader(controls: readonly number[]): (bytes: Uint8Array) => Typed[] {
  const [interrupt, , , kill, , suspend] = controls;
  const ends_line: ReadonlySet<number | undefined> = new Set([NEWLINE, RETURN, interrupt, kill]);
  let at_start = true;
  let after_tilde = false;
  return (bytes) => {
    const typed: Typed[] = [];
    let sent: number[] = [];
    const flush = (): void => {
      if (sent.length > 0) typed.push({ kind: "send", bytes: Uint8Array.from(sent) });
      sent = [];
    };
    for (const byte of bytes) {
      if (after_tilde) {
        after_tilde = false;
        if (byte === DOT || byte === suspend) {
          flush();
          typed.push({ kind: byte === DOT ? "terminate" : "suspend" });
          if (byte === DOT) return typed;
          continue;
        }
        sent.push(TILDE, byte);
        at_start = ends_line.has(byte);
      } else if (at_start && byte === TILDE) {
        after_tilde = true;
      } else {
        sent.push(byte);
        at_start = ends_line.has(byte);
      }
    }
    flush();
    return typed;
  };
}
