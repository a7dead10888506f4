// The command line of pbs_server (docs/reference/files.md 10). Pure.

export type ServerOptions = {
  /** -a: the value of scheduling; absent: the stored value stays */
  readonly scheduling?: boolean;
  /** -A: the accounting file, and -L: the log file; absolute paths */
  readonly accounting_file?: string;
  readonly log_file?: string;
  /** -d: the directory to use in place of PBS_HOME */
  readonly home?: string;
  /** -e: the log mask, which is used until log_events is set again */
  readonly log_events?: number;
  /** -N: stay in the foreground */
  readonly foreground: boolean;
  /** -t: the type of start */
  readonly start: "hot" | "warm" | "cold" | "create" | "updatedb";
};

export const USAGE = `Usage: pbs_server [-a true|false] [-A acctfile] [-d config_path] [-e mask] [-L logfile]
                  [-N] [-t cold|create|hot|updatedb|warm]
       pbs_server --version
`;

/** The options, or the error message, which is written to stderr before the usage. */
export type ParsedOptions = { readonly ok: true; readonly options: ServerOptions } | { readonly ok: false; readonly message: string };

const STARTS = ["hot", "warm", "cold", "create", "updatedb"] as const;
/** Options of PBS for ports and failover. This server refuses them, because pbs.conf has these settings. */
const IN_CONF = "FMpRS";

export function parseOptions(argv: readonly string[]): ParsedOptions {
  const found: { -readonly [K in keyof ServerOptions]: ServerOptions[K] } = { foreground: false, start: "warm" };
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? "";
    if (!/^-[A-Za-z]/.test(word)) return { ok: false, message: `pbs_server: unexpected argument ${word}` };
    const letter = word.charAt(1);
    if (letter === "N" && word.length === 2) {
      found.foreground = true;
      continue;
    }
    if (!`aAdeLt${IN_CONF}`.includes(letter)) return { ok: false, message: `pbs_server: invalid option -- '${letter}'` };
    const value = word.length > 2 ? word.slice(2) : argv[++at];
    if (value === undefined) return { ok: false, message: `pbs_server: option requires an argument -- '${letter}'` };
    const fault = setOption(found, letter, value);
    if (fault !== null) return { ok: false, message: `pbs_server: ${fault}` };
  }
  return { ok: true, options: found };
}

function setOption(found: { -readonly [K in keyof ServerOptions]: ServerOptions[K] }, letter: string, value: string): string | null {
  const absolute = value.startsWith("/");
  switch (letter) {
    case "a":
      if (!/^(t|true|y|1|f|false|n|0)$/i.test(value)) return `-a ${value}: must be true or false`;
      found.scheduling = /^(t|true|y|1)$/i.test(value);
      return null;
    case "A":
      if (!absolute) return `-A ${value}: must be an absolute path`;
      found.accounting_file = value;
      return null;
    case "L":
      if (!absolute) return `-L ${value}: must be an absolute path`;
      found.log_file = value;
      return null;
    case "d":
      if (!absolute) return `-d ${value}: must be an absolute path`;
      found.home = value;
      return null;
    case "e":
      if (!/^(0x[0-9a-f]{1,8}|[0-9]{1,9})$/i.test(value)) return `-e ${value}: must be a number`;
      found.log_events = Number(value);
      return null;
    case "t":
      if (!(STARTS as readonly string[]).includes(value)) return `-t ${value}: must be one of ${STARTS.join(", ")}`;
      found.start = value as ServerOptions["start"];
      return null;
    default:
      return `-${letter} is not supported: ports and failover are set in pbs.conf`;
  }
}
