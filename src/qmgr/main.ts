// qmgr: the administrator's command (docs/reference/qmgr.md). With `-c` it executes one request. Otherwise requests come
// from standard input. On a terminal this is the admin shell; on a pipe, on a dumb terminal or with --plain it is line mode.

import { accessSync, constants } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Command, CommandIo } from "#cli/command.ts";
import { foreignServer, type Link, realComplex } from "#cli/complex.ts";
import { ctime } from "#cli/dates.ts";
import { optionFault, scanOptions } from "#cli/getopt.ts";
import { collectInto, ServerUnreachable } from "#protocol/client.ts";
import type { ImportHookRequest, ManagerRequest, StatusItem, StatusRequest } from "#protocol/messages.ts";
import { type Conf, ConfError, readConf } from "#support/conf.ts";
import { drawAlways } from "#support/live-screen.ts";
import { PBS_VERSION } from "#support/version.ts";
import { openHistory } from "./history.ts";
import { hookFiles, type Input, inputOfLines, inputOfStream } from "./hook-files.ts";
import { NO_PENDING, takeEnd, takeLine } from "./language/line-reader.ts";
import { type QmgrOptions, type QmgrServer, QmgrSession, type QmgrWorld } from "./session/session.ts";
import type { ShellStatus } from "./shell/app.tsx";

const USAGE = "Usage: qmgr [-a] [-c command] [-e] [-n] [-z] [server...]\n       qmgr --version\n";
/** The number in the first line of output. In PBS it is the size of the library's table of connections minus one. */
const SERVERS_OPEN_MAX = 49;
const SHELL_REFRESH_MS = 2000;

type Arguments = {
  readonly options: QmgrOptions;
  readonly command: string | undefined;
  readonly plain: boolean;
  readonly servers: readonly string[];
};

export const run: Command = async (io) => {
  if (io.argv.length === 1 && io.argv[0]?.toLowerCase() === "--version") {
    io.out(`pbs_version = ${PBS_VERSION}\n`);
    return 0;
  }
  if (io.argv.includes("--help")) {
    io.out(
      `${USAGE}\n  -a  abort at the first error\n  -c  run one command\n  -e  echo each request\n  -n  parse only\n  -z  no messages on standard error\n  --plain  line mode on a terminal, too\n`,
    );
    return 0;
  }
  const args = parseArguments(io.argv);
  if ("bad" in args) {
    // The message about an option comes from getopt and not from qmgr itself, so -z does not suppress it.
    io.err(args.silent ? args.bad : `${args.bad}${USAGE}`);
    return 1;
  }
  let conf: Conf;
  try {
    conf = readConf(io.env);
  } catch (error) {
    if (!(error instanceof ConfError)) throw error;
    io.err(`${error.message}\n`);
    return 1;
  }
  const world = makeWorld(io, conf, args.options.silent);
  try {
    return await runSession(io, conf, args, world);
  } catch (error) {
    if (!(error instanceof ServerUnreachable)) throw error;
    if (!args.options.silent) io.err("qmgr: Protocol error, server disconnected\n");
    return 1;
  } finally {
    world.closeAll();
  }
};

async function runSession(io: CommandIo, conf: Conf, args: Arguments, world: World): Promise<number> {
  const session = new QmgrSession(world, args.options, args.servers);
  if ((await session.connectAll()).length > 0) return 3;
  if (args.command !== undefined) return (await session.run(args.command)).status;
  io.out(`Max open servers: ${SERVERS_OPEN_MAX}\n`);
  const terminal = io.stdin.isTTY === true && io.stdoutIsTty;
  if (!terminal) return await runLines(io, session, args.options, undefined, world);
  const { username, uid } = userInfo();
  const history = openHistory(io.env["HOME"], conf.home, { name: username, uid });
  if (history.fault !== undefined) session.complain(history.fault);
  world.setHistory(history.lines);
  if (args.plain || io.env["TERM"] === "dumb" || io.env["TERM"] === undefined)
    return await runLines(io, session, args.options, history, world);
  drawAlways(process.env);
  const { runShell } = await import("./shell/app.tsx");
  return await runShell({
    run: (line, out, err) => world.withStreams(out, err, () => session.run(line)),
    status: () => shellStatus(world),
    names: async () => ({
      queue: await names(world, "queue"),
      node: await names(world, "node"),
      sched: await names(world, "sched"),
      resource: await names(world, "resource"),
    }),
    history: () => history.lines,
    remember: (line) => history.add(line),
    refresh_ms: SHELL_REFRESH_MS,
  });
}

/**
 * Line mode: reads requests line by line until EOF, quit or, with -a, the first error. If a history is given (both streams are terminals), prompts are shown.
 */
async function runLines(
  io: CommandIo,
  session: QmgrSession,
  options: QmgrOptions,
  history: ReturnType<typeof openHistory> | undefined,
  world: World,
): Promise<number> {
  const prompting = history !== undefined;
  const lines = createInterface({
    input: io.stdin,
    ...(prompting
      ? { output: process.stdout, prompt: "Qmgr: ", history: [...history.lines].reverse(), historySize: 500 }
      : { terminal: false }),
  });
  let pending = NO_PENDING;
  let status = 0;
  const prompt = (): void => {
    if (!prompting) return;
    lines.setPrompt(pending.continued ? "Qmgr< " : "Qmgr: ");
    // Text that the user typed before the prompt was shown stays in the line, and the cursor stays behind this text.
    lines.prompt(true);
  };
  const runAll = async (requests: readonly string[]): Promise<boolean> => {
    for (const request of requests) {
      const outcome = await session.run(request);
      if (outcome.kind === "quit") {
        status = outcome.status;
        return false;
      }
      status = outcome.status;
      if (options.abort && outcome.kind !== "ok") return false;
    }
    return true;
  };
  prompt();
  const input = inputOfLines(lines[Symbol.asyncIterator]());
  world.readFrom(input);
  for (let typed = await input.line(); typed !== undefined; typed = await input.line()) {
    const again = prompting ? /^!(\d+)\s*$/.exec(typed) : null;
    const line = again === null ? typed : history?.lines[Number(again[1]) - 1];
    if (line === undefined) {
      session.complain(`No item ${again?.[1]} in history`);
      prompt();
      continue;
    }
    if (prompting && line.trim() !== "") history.add(line);
    const taken = takeLine(pending, line);
    pending = taken.pending;
    if (!(await runAll(taken.requests))) {
      lines.close();
      return status;
    }
    prompt();
  }
  if (prompting) io.out("\n");
  await runAll(takeEnd(pending));
  return status;
}

type World = QmgrWorld & {
  closeAll(): void;
  setHistory(lines: readonly string[]): void;
  /** makes import from `-` read from this input, from which the requests come, too */
  readFrom(input: Input): void;
  withStreams<T>(out: (text: string) => void, err: (text: string) => void, action: () => Promise<T>): Promise<T>;
};

function makeWorld(io: CommandIo, conf: Conf, silent: boolean): World {
  let streams = { out: io.out, err: io.err };
  let history: readonly string[] = [];
  let connection: Link | undefined;
  let input = inputOfStream(io.stdin);
  const complex = realComplex({ ...io, err: (text) => streams.err(text) }, "qmgr");
  return {
    out: (text) => streams.out(text),
    err: (text) => streams.err(text),
    ctime,
    stdinIsTty: io.stdin.isTTY === true,
    closedFormulaFile: () => closedFormulaFile(conf.home),
    history: () => history,
    setHistory: (lines) => {
      history = lines;
    },
    async connect(server) {
      try {
        const foreign = await foreignServer(complex, server === "default" ? "" : server);
        if (foreign !== null) throw foreign;
        connection ??= await complex.connect();
      } catch (error) {
        if (!(error instanceof ServerUnreachable)) throw error;
        if (!silent) streams.err(`${error.line}\n`);
        return undefined;
      }
      return asQmgrServer(connection);
    },
    hookFiles: hookFiles(
      io.cwd,
      (text) => streams.out(text),
      () => input,
    ),
    readFrom: (lines) => {
      input = lines;
    },
    closeAll: () => connection?.close(),
    async withStreams(out, err, action) {
      const before = streams;
      streams = { out, err };
      try {
        return await action();
      } finally {
        streams = before;
      }
    },
  };
}

function closedFormulaFile(home: string): string | null {
  try {
    accessSync(join(home, "server_priv"), constants.W_OK);
    return null;
  } catch {
    return join(home, "server_priv", "sched_formula");
  }
}

function asQmgrServer(connection: Link): QmgrServer {
  const manage = async (request: ManagerRequest | ImportHookRequest) => {
    const reply = await connection.request(request);
    return reply.ok
      ? { ok: true as const, ...(reply.text === undefined ? {} : { text: reply.text }) }
      : { ok: false as const, code: reply.code, text: reply.text };
  };
  return {
    manage,
    importHook: manage,
    async exportHook(request) {
      const reply = await connection.request(request);
      return reply.ok
        ? { ok: true, content: (reply.value as { readonly content: string }).content }
        : { ok: false, code: reply.code, text: reply.text };
    },
    async status(request: StatusRequest) {
      const items: StatusItem[] = [];
      const reply = await connection.request(request, { onPart: collectInto(items) });
      return reply.ok ? { ok: true, items } : { ok: false, code: reply.code, text: reply.text };
    },
  };
}

async function names(world: QmgrWorld, object: "queue" | "node" | "sched" | "resource"): Promise<readonly string[]> {
  const server = await world.connect("");
  const reply = await server?.status({ kind: "status", object, ids: [], attrs: object === "resource" ? ["type"] : ["comment"] });
  return reply?.ok === true ? reply.items.map((item) => item.id) : [];
}

async function shellStatus(world: QmgrWorld): Promise<ShellStatus | undefined> {
  const server = await world.connect("");
  const head = await server?.status({ kind: "status", object: "server", ids: [], attrs: ["server_state"] });
  const scheds = await server?.status({ kind: "status", object: "sched", ids: [], attrs: ["state", "partition", "scheduling", "comment"] });
  const item = head?.ok === true ? head.items[0] : undefined;
  if (item === undefined || scheds?.ok !== true) return undefined;
  const text = (attrs: { readonly [name: string]: unknown }, name: string): string => String(attrs[name] ?? "");
  return {
    server: item.id,
    server_state: "attrs" in item ? text(item.attrs, "server_state") : "",
    scheds: scheds.items.flatMap((sched) =>
      "attrs" in sched
        ? [
            {
              name: sched.id,
              state: text(sched.attrs, "state"),
              partition: text(sched.attrs, "partition"),
              scheduling: sched.attrs["scheduling"] === "True",
              comment: text(sched.attrs, "comment"),
            },
          ]
        : [],
    ),
  };
}

function parseArguments(argv: readonly string[]): Arguments | { readonly bad: string; readonly silent: boolean } {
  const words = argv.filter((word) => word !== "--plain");
  const { events, operands } = scanOptions(words, "ac:enz");
  const given = new Set(events.flatMap((event) => (event.kind === "option" ? [event.letter] : [])));
  const faults = events.flatMap((event) => optionFault("qmgr", event) ?? []);
  if (faults.length > 0) return { bad: faults.map((fault) => `${fault}\n`).join(""), silent: given.has("z") };
  const command = events.findLast((event) => event.kind === "option" && event.letter === "c");
  return {
    options: { abort: given.has("a"), echo: given.has("e"), parseOnly: given.has("n"), silent: given.has("z") },
    command: command?.kind === "option" ? command.value : undefined,
    plain: words.length < argv.length,
    servers: operands,
  };
}
