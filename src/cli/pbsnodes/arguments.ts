// The arguments of pbsnodes (docs/reference/commands.md 4). Pure.

import { optionFault, scanOptions } from "../getopt.ts";

export const PBSNODES_USAGE = `usage:	pbsnodes [-{o|r}][-C comment][-s server] host host ...
	pbsnodes -l [-s server]
	pbsnodes [-s server] -v vnode vnode ...
	pbsnodes -a[v][S[j][L]][-F format][-D delim][-s server]
	pbsnodes -[H][S[j][L]][-F format][-D delim] host host ...
	pbsnodes --version

`;

const LETTERS = "aC:cD:F:HjLlors:Sv";
const COMMENT_MAX = 79;

export type NodeFormat = "text" | "dsv" | "json";

export type PbsnodesOptions = {
  /** all: -a. named: the nodes of the operands. list: -l. mark: -o, -r or -c, or only a comment */
  readonly mode: "all" | "named" | "list" | "mark";
  /** vnodes are shown, not hosts */
  readonly vnodes: boolean;
  readonly layout: "long" | "summary" | "jobs";
  /** values that are wider than their columns are not cut */
  readonly uncut: boolean;
  readonly format: NodeFormat;
  readonly delimiter: string;
  readonly mark: "offline" | "online" | "clear" | null;
  readonly comment: string | null;
  readonly server: string | null;
  readonly operands: readonly string[];
};

/** Parses the arguments. If they are wrong, returns the lines to print as `errors`. */
export function parsePbsnodesArguments(argv: readonly string[]): PbsnodesOptions | { readonly errors: string } {
  const scan = scanOptions(argv, LETTERS);
  const given = new Map<string, string>();
  let faults = "";
  for (const event of scan.events) {
    const fault = optionFault("pbsnodes", event);
    if (fault !== null) faults += `${fault}\n`;
    else if (event.kind === "option") given.set(event.letter, event.value);
  }
  const has = (letter: string): boolean => given.has(letter);
  const format = (given.get("F") ?? "text").toLowerCase();
  const marks = ["o", "r", "c"].filter(has);
  const marking = marks.length > 0 || (has("C") && !has("a") && !has("l"));
  const mode = has("l") ? "list" : marking ? "mark" : has("a") ? "all" : "named";
  const wrong =
    faults !== "" ||
    marks.length > 1 ||
    ((mode === "mark" || mode === "named") && scan.operands.length === 0) ||
    ((has("j") || has("L")) && !has("S")) ||
    (has("F") && format !== "json" && format !== "dsv") ||
    (has("D") && (format !== "dsv" || given.get("D") === ""));
  if (wrong) return { errors: faults + PBSNODES_USAGE };
  return {
    mode,
    vnodes: has("v"),
    layout: !has("S") ? "long" : has("j") ? "jobs" : "summary",
    uncut: has("L"),
    format: format as NodeFormat,
    delimiter: given.get("D") ?? "|",
    mark: has("o") ? "offline" : has("r") ? "online" : has("c") ? "clear" : null,
    comment: given.get("C")?.slice(0, COMMENT_MAX) ?? null,
    server: given.get("s") ?? null,
    operands: scan.operands,
  };
}
