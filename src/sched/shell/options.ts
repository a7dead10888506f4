// The command line of pbs_sched (docs/reference/files.md 10). Pure: converts arguments to options or a message.

import { nth } from "#support/assert.ts";

export const USAGE = `usage: pbs_sched [-d home][-L logfile][-p file][-I schedname][-n][-N][-c clientsfile][-t num threads]
       pbs_sched --version
`;

export type SchedOptions = {
  /** -d: the home directory instead of PBS_HOME */
  readonly home: string | undefined;
  /** -L: the log file instead of daily logs */
  readonly log_file: string | undefined;
  /** -p: the file for output instead of sched_priv/sched_out */
  readonly out_file: string | undefined;
  /** -I: the name of the scheduler */
  readonly name: string;
  /** -N: the scheduler stays in the foreground */
  readonly foreground: boolean;
  /** -n: a scheduler on another host than the server is not started again after a crash */
  readonly no_restart: boolean;
  /** -t: number of threads; accepted without effect, because a cycle here runs in one thread */
  readonly threads: number | undefined;
  /** -S: the TCP port on which a scheduler on another host than the server listens */
  readonly port: number | undefined;
  /** -U: the user as whom a scheduler on another host than the server runs (sched_user) */
  readonly user: string | undefined;
};

export type ParsedOptions =
  | {
      readonly kind: "run";
      readonly options: SchedOptions;
      /** text that is printed before the scheduler continues */
      readonly notes: readonly string[];
    }
  | { readonly kind: "version" }
  | { readonly kind: "help" }
  | { readonly kind: "wrong"; readonly text: string };

const WITH_VALUE = "cdILpStU";
const WITHOUT_VALUE = "lnN";
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$/;

/**
 * Parses options as POSIX does: `-Isched1`, `-nN`. -c (clients file) and -l (lock in memory) are accepted without effect. So is
 * -n (no restart of its own) on the server's host, where the server restarts schedulers.
 */
export function parseOptions(argv: readonly string[], cores: number): ParsedOptions {
  if (argv[0] === "--version") return argv.length === 1 ? { kind: "version" } : wrong();
  if (argv[0] === "--help") return { kind: "help" };
  const values = new Map<string, string>();
  for (let at = 0; at < argv.length; at++) {
    const word = nth(argv, at);
    if (word.length < 2 || !word.startsWith("-")) return wrong();
    for (let letter = 1; letter < word.length; letter++) {
      const option = nth(word, letter);
      if (WITHOUT_VALUE.includes(option)) values.set(option, "");
      else if (WITH_VALUE.includes(option)) {
        const value = word.length > letter + 1 ? word.slice(letter + 1) : argv[++at];
        if (value === undefined) return wrong();
        values.set(option, value);
        break;
      } else return wrong();
    }
  }
  return optionsOf(values, cores);
}

function optionsOf(values: ReadonlyMap<string, string>, cores: number): ParsedOptions {
  const name = values.get("I") ?? "default";
  if (!NAME.test(name)) return { kind: "wrong", text: `pbs_sched: bad scheduler name ${name}\n` };
  const notes: string[] = [];
  const text = values.get("t");
  let threads: number | undefined;
  if (text !== undefined) {
    if (!/^[0-9]+$/.test(text)) return { kind: "wrong", text: `${text}: bad num threads value\n` };
    if (Number(text) < 1 || Number(text) > 99_999)
      return { kind: "wrong", text: `${text}: bad num threads value (should be in range 1-99999)\n` };
    if (Number(text) > cores) notes.push(`${text}: cannot be larger than number of cores ${cores}, using number of cores instead\n`);
    threads = Math.min(Number(text), cores);
  }
  const port = values.get("S");
  if (port !== undefined && !isPort(port)) return { kind: "wrong", text: `${port}: bad port value (should be in range 1-65535)\n` };
  const options = {
    home: values.get("d"),
    log_file: values.get("L"),
    out_file: values.get("p"),
    name,
    foreground: values.has("N"),
    no_restart: values.has("n"),
    threads,
    port: port === undefined ? undefined : Number(port),
    user: values.get("U"),
  };
  return { kind: "run", options, notes };
}

const isPort = (text: string): boolean => /^[0-9]{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;

function wrong(): ParsedOptions {
  return { kind: "wrong", text: USAGE };
}
