// Splits the lines of standard input into requests. Handles comments, continuation lines and `;` (docs/reference/qmgr.md 2).
// Pure.
//
// I1. A `;` or `#` inside quotes is text. I2. A comment line between a line that is continued and its continuation is
//     dropped.

/** The state between two lines. text: what has been collected of a request. continued: whether the last line ended in a backslash. */
export type PendingLine = { readonly text: string; readonly continued: boolean };
export const NO_PENDING: PendingLine = { text: "", continued: false };

/**
 * Takes one line (without its newline). Returns the requests that the line completes, and the state after it. Requests are as typed: blanks are kept, for -e.
 */
export function takeLine(pending: PendingLine, line: string): { readonly requests: readonly string[]; readonly pending: PendingLine } {
  if (/^\s*#/.test(line) || (line.trim() === "" && !pending.continued)) return { requests: [], pending };
  if (line.endsWith("\\")) return { requests: [], pending: { text: `${pending.text}${line.slice(0, -1)} `, continued: true } };
  return { requests: splitRequests(pending.text + line), pending: NO_PENDING };
}

/** Returns the requests that remain if the input ends after a line that should be continued. */
export function takeEnd(pending: PendingLine): readonly string[] {
  return pending.continued ? splitRequests(pending.text) : [];
}

/** Splits a line at each `;` outside of quotes. Drops empty requests, and comments that begin the line or follow white space. */
export function splitRequests(line: string): readonly string[] {
  const requests: string[] = [];
  let quote = "";
  let start = 0;
  let end = line.length;
  for (let at = 0; at < line.length; at++) {
    const char = line.charAt(at);
    if (quote !== "") {
      if (char === quote) quote = "";
    } else if (char === '"' || char === "'") {
      quote = char;
    } else if (char === ";") {
      requests.push(line.slice(start, at));
      start = at + 1;
    } else if (char === "#" && (at === 0 || /\s/.test(line.charAt(at - 1)))) {
      end = at;
      break;
    }
  }
  requests.push(line.slice(start, end));
  return requests.map((request, index) => (index === 0 ? request : request.trimStart())).filter((request) => request.trim() !== "");
}
