// The request of a launcher. It consists of texts, each ended by a zero byte; the number of texts in a list comes before the
// list (send_request in native/conversation.c).

export type CommandRequest = {
  /** the circumstances of the launcher, which must be the same as those of the resident */
  readonly circumstances: string;
  readonly stdin_is_tty: boolean;
  readonly stdout_is_tty: boolean;
  readonly stderr_is_tty: boolean;
  /** the name of the command, such as qsub */
  readonly program: string;
  readonly cwd: string;
  readonly argv: readonly string[];
  /** the environment. If a variable occurs twice, the first one counts, as in getenv(3) */
  readonly env: Readonly<Record<string, string>>;
};

/** Parses a request. Returns null if the bytes are not a request. Bytes that are not UTF-8 are replaced, as Node.js does with its own arguments. */
export function parseRequest(payload: Buffer): CommandRequest | null {
  if (payload.length === 0 || payload[payload.length - 1] !== 0) return null;
  const texts = payload.toString("utf8", 0, payload.length - 1).split("\0");
  const [circumstances = "", terminals = "", program = "", cwd = "", argc = ""] = texts;
  if (!/^[0-7]$/.test(terminals) || !/^[\w-]{1,63}$/.test(program) || !cwd.startsWith("/")) return null;
  const variables_at = 5 + count(argc);
  const argv = texts.slice(5, variables_at);
  const variables = texts.slice(variables_at + 1);
  if (argv.length !== count(argc) || variables.length !== count(texts[variables_at] ?? "")) return null;
  const bits = Number(terminals);
  return {
    circumstances,
    stdin_is_tty: (bits & 1) !== 0,
    stdout_is_tty: (bits & 2) !== 0,
    stderr_is_tty: (bits & 4) !== 0,
    program,
    cwd,
    argv,
    env: environment(variables),
  };
}

/** Returns the count in a text. If the text is not a count, returns NaN, which equals no number. */
const count = (text: string): number => (/^\d{1,7}$/.test(text) ? Number(text) : Number.NaN);

/** Returns the variables by name. The record has no prototype, because a variable may be called `__proto__`. */
function environment(variables: readonly string[]): Record<string, string> {
  const env = Object.create(null) as Record<string, string>;
  for (const variable of variables) {
    const equals = variable.indexOf("=", 1);
    if (equals < 0) continue;
    const name = variable.slice(0, equals);
    if (!(name in env)) env[name] = variable.slice(equals + 1);
  }
  return env;
}
