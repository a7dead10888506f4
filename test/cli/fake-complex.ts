// A complex without a server, for tests of commands. A function answers requests; output is collected in one text in which
// lines of stderr are marked.

import { Readable } from "node:stream";
import type { Command, CommandIo } from "#cli/command.ts";
import type { CommandBody, Complex, Link } from "#cli/complex.ts";
import type { ServerUnreachable } from "#protocol/client.ts";
import type { Request, StatusItem } from "#protocol/messages.ts";
import type { Reply } from "#protocol/wire/reply.ts";

/** An answer of the fake server: items of a status request, a value, or a refusal. */
export type Answer =
  | { readonly items: readonly StatusItem[] }
  | { readonly value?: unknown; readonly text?: string }
  | { readonly code: number; readonly text: string | null };

export type FakeComplex = {
  readonly complex: Complex;
  /** every request in order */
  readonly requests: Request[];
};

export type FakeOptions = {
  readonly answer?: (request: Request) => Answer | undefined;
  readonly down?: ServerUnreachable;
  readonly now_ms?: number;
  readonly hosts?: readonly string[];
  readonly values?: Readonly<Record<string, string>>;
  readonly home?: string;
  readonly mode?: "user" | "system";
  readonly uid?: number;
};

export const SERVER = "HOST";

export function fakeComplex(options: FakeOptions = {}): FakeComplex {
  const requests: Request[] = [];
  const link: Link = {
    async request(request, { onPart } = {}) {
      requests.push(request);
      const answer = options.answer?.(request) ?? {};
      if ("items" in answer) onPart?.(answer.items);
      if ("code" in answer) return { id: 1, ok: false, code: answer.code, text: answer.text } satisfies Reply;
      return { id: 1, ok: true, ...answer } as Reply;
    },
    close() {},
  };
  const complex: Complex = {
    conf: () => ({
      pair: null,
      server: SERVER,
      home: options.home ?? "/nonexistent",
      exec: "/opt/pbs",
      values: options.values ?? {},
      mode: options.mode ?? "user",
      log_highres: false,
    }),
    serverMeant: () => SERVER,
    async connect() {
      if (options.down) throw options.down;
      return link;
    },
    whose: async (name) => (name === SERVER ? "ours" : options.hosts?.includes(name) ? "foreign" : "nobody"),
    uid: () => options.uid ?? 1000,
    now_ms: () => options.now_ms ?? 1_795_166_788_000,
  };
  return { complex, requests };
}

export type Ran = {
  readonly status: number;
  readonly out: string;
  readonly err: string /** both in the order of printing */;
  readonly text: string;
};

export type RunOptions = {
  readonly env?: CommandIo["env"];
  readonly cwd?: string;
  readonly stdin?: string;
  readonly tty?: boolean /** stderr alone is a terminal */;
  readonly errTty?: boolean;
};

/** Runs a command's body with words as a user types them. */
export async function runBody(body: CommandBody, argv: readonly string[], complex: Complex, options: RunOptions = {}): Promise<Ran> {
  return gather((io) => body(io, complex), argv, options);
}

/** Runs a whole command, --version and --help included. */
export async function runCommand(command: Command, argv: readonly string[], options: RunOptions = {}): Promise<Ran> {
  return gather(command, argv, options);
}

async function gather(run: (io: CommandIo) => Promise<number>, argv: readonly string[], options: RunOptions): Promise<Ran> {
  const seen = { out: "", err: "", text: "" };
  const stdin = Readable.from(options.stdin === undefined ? [] : [Buffer.from(options.stdin)]) as unknown as CommandIo["stdin"];
  const status = await run({
    argv,
    env: options.env ?? {},
    cwd: options.cwd ?? "/home/pbsuser1",
    out: (text) => {
      seen.out += text;
      seen.text += text;
    },
    err: (text) => {
      seen.err += text;
      seen.text += text;
    },
    stdin,
    stdoutIsTty: options.tty ?? false,
    stderrIsTty: (options.errTty === true || options.tty) ?? false,
  });
  return { status, ...seen };
}
