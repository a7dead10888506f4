// The command line of pbs_mom (docs/reference/execution.md 8). Pure.

export type MomOptions = {
  /** -r: jobs found at the start are killed and requeued. -p is the default */
  readonly kill_found: boolean;
  /** -N */
  readonly foreground: boolean;
  readonly config: string | null;
  /** -d: directory to use instead of PBS_HOME */
  readonly home: string | null;
  readonly log: string | null;
  readonly port: number | null;
  readonly manager_port: number | null;
  readonly nice: number | null;
  /** -a: the longest time for a program that gives the value of a site's resource */
  readonly alarm_s: number;
  readonly checkpoint: string | null;
  /** -s: the words after it; null: there is no -s */
  readonly vnodes: readonly string[] | null;
  readonly version: boolean;
};

export const USAGE = `usage: pbs_mom [-a alarm][-C checkpoint_dir][-c config][-d home][-L log][-M port][-n nice][-N][-p|-r][-R port][-S server_port]
       pbs_mom -s insert NAME FILE | remove NAME | show NAME | list
       pbs_mom --version
`;

const ALARM_S_DEFAULT = 10;

/** Parses the command line. Returns a string that describes the fault if there is one. */
export function parseMomOptions(argv: readonly string[]): MomOptions | string {
  const options: { -readonly [K in keyof MomOptions]: MomOptions[K] } = {
    kill_found: false,
    foreground: false,
    config: null,
    home: null,
    log: null,
    port: null,
    manager_port: null,
    nice: null,
    alarm_s: ALARM_S_DEFAULT,
    checkpoint: null,
    vnodes: null,
    version: false,
  };
  if (argv.length === 1 && argv[0] === "--version") return { ...options, version: true };
  let kept = false;
  const rest = [...argv];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (!/^-[a-zA-Z]/.test(word)) return `unexpected argument ${word}`;
    const letter = word.charAt(1);
    if (letter === "s") return { ...options, vnodes: word.length > 2 ? [word.slice(2), ...rest] : rest };
    if ("Npr".includes(letter)) {
      if (letter === "N") options.foreground = true;
      if (letter === "r") options.kill_found = true;
      if (letter === "p") kept = true;
      if (word.length > 2) rest.unshift(`-${word.slice(2)}`);
      continue;
    }
    if (!"aCcdLMnRSx".includes(letter)) return `invalid option -- '${letter}'`;
    const value = word.length > 2 ? word.slice(2) : rest.shift();
    if (value === undefined) return `option requires an argument -- '${letter}'`;
    const problem = setValue(options, letter, value);
    if (problem !== "") return problem;
  }
  if (kept && options.kill_found) return "-p and -r exclude one another";
  return options;
}

function setValue(options: { -readonly [K in keyof MomOptions]: MomOptions[K] }, letter: string, value: string): string {
  const whole = /^-?\d+$/.test(value) ? Number(value) : null;
  switch (letter) {
    case "c":
      options.config = value;
      return "";
    case "C":
      options.checkpoint = value;
      return "";
    case "d":
      options.home = value;
      return "";
    case "L":
      if (!value.startsWith("/")) return "-L must be an absolute path";
      options.log = value;
      return "";
    case "n":
      if (whole === null || whole < -20 || whole > 19) return `invalid nice value ${value}`;
      options.nice = whole;
      return "";
    default:
      if (whole === null || whole < 0 || whole > 65535) return `-${letter} must be a number, not ${value}`;
      if (letter === "a" && whole === 0) return "-a must be more than 0";
      if (letter === "a") options.alarm_s = whole;
      if (letter === "M") options.port = whole;
      if (letter === "R") options.manager_port = whole;
      return "";
  }
}
