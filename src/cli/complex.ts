// The complex a command talks to: its configuration, its server, its names, the time. A command gets it as an argument, so that tests give it another
// one. Nothing is read or connected before a command asks: mistakes in the arguments are told first.

import { hostname } from "node:os";
import { type ServerConnection, ServerUnreachable } from "#protocol/client.ts";
import type { StatusItem, StatusRequest } from "#protocol/messages.ts";
import { connectWatched, patienceOf, silentServer } from "#protocol/watched-link.ts";
import type { Reply } from "#protocol/wire/reply.ts";
import { type Conf, ConfError, readConf } from "#support/conf.ts";
import { PBS_VERSION } from "#support/version.ts";
import type { Command, CommandIo } from "./command.ts";
import { PBSE_BADHOST, PBSE_NOSUP } from "./errors.ts";

/** The part of protocol/client.ts that commands use. */
export type Link = Pick<ServerConnection, "request" | "close">;

export type Complex = {
  /** pbs.conf, server being the complex's own name; throws ConfError */
  conf(): Pick<Conf, "server" | "home" | "exec" | "values" | "mode" | "log_highres">;
  /** the server meant where a command names none: PBS_SERVER or PBS_DEFAULT of the environment, else the complex's own */
  serverMeant(): string;
  /** to the server meant; throws ServerUnreachable */
  connect(): Promise<Link>;
  /** Whose name this is: the complex's own server, another host, or nobody. */
  whose(name: string): Promise<"ours" | "foreign" | "nobody">;
  /** who runs the command; the server finds that out for itself */
  uid(): number;
  now_ms(): number;
};

/** A command's body: the world it sees and the complex it talks to. Returns the exit status. */
export type CommandBody = (io: CommandIo, complex: Complex) => Promise<number>;

/** Commands whose questions are given up when the server does not answer. All others wait, also with the questions before what they do. */
const ONLY_ASK: ReadonlySet<string> = new Set(["qstat", "qselect", "pbsnodes", "pbs_rstat", "pbsfs", "printjob", "qmgr"]);

/** The real complex as a command sees it. name: of the command, which says when the server does not answer. */
export function realComplex(io: Pick<CommandIo, "env" | "flow" | "err">, name: string): Complex {
  const { env, flow } = io;
  let conf: (Conf & { readonly meant: string }) | null = null;
  const read = (): Conf & { readonly meant: string } => {
    if (conf === null) {
      const asRead = readConf(env);
      // The old name counts for commands alone: a daemon does not take another name because of what a login shell still exports.
      const meant = env["PBS_SERVER"] || env["PBS_DEFAULT"] || asRead.own_server;
      conf = { ...asRead, server: asRead.own_server, meant };
    }
    return conf;
  };
  const complex: Complex = {
    conf: read,
    serverMeant: () => read().meant,
    connect: async () => {
      const { server, meant } = read();
      if (meant !== server) await mustBeOurs(complex, meant);
      const asked = patienceOf((key) => env[key] ?? read().values[key]);
      const patience = ONLY_ASK.has(name) ? asked : { ...asked, limit_s: 0 };
      return connectWatched(read(), { patience, silent: () => io.err(silentServer(name, meant)) }, flow);
    },
    whose: async (name) => {
      const { server, values } = read();
      const host = name.replace(/:\d+$/, "");
      if (isOwnName(host, [server, values["PBS_SERVER_HOST_NAME"] ?? server, hostname()])) return "ours";
      const { whoseAddress } = await import("./host-names.ts");
      return whoseAddress(host, server);
    },
    uid: () => process.getuid?.() ?? 0,
    now_ms: Date.now,
  };
  return complex;
}

/** By spelling alone: one of the names, `localhost`, or the short form of one of them. */
function isOwnName(name: string, own: readonly string[]): boolean {
  const wanted = name.toLowerCase();
  if (wanted === "localhost") return true;
  return own.some((each) => each.toLowerCase() === wanted || each.toLowerCase().split(".")[0] === wanted);
}

/**
 * The command as bin/ and the admin shell run it: `--version` and `--help` alone are answered here, and so are an unusable configuration and a server
 * that cannot be reached in the middle of the work.
 */
export function asCommand(name: string, usage: string, body: CommandBody): Command {
  return async (io) => {
    const only = io.argv.length === 1 ? io.argv[0]?.toLowerCase() : undefined;
    if (only === "--version") {
      io.out(`pbs_version = ${PBS_VERSION}\n`);
      return 0;
    }
    if (only === "--help") {
      io.out(usage);
      return 0;
    }
    const complex = realComplex(io, name);
    try {
      return await body(io, complex);
    } catch (error) {
      if (error instanceof ConfError) {
        io.err(`${error.message}\n`);
        return 1;
      }
      if (error instanceof ServerUnreachable) return cannotConnect(io, name, complex, error);
      throw error;
    }
  };
}

/** The two lines of a server that cannot be reached; the exit status that goes with them. */
export function cannotConnect(io: CommandIo, command: string, complex: Complex, error: ServerUnreachable): number {
  io.err(`${error.line}\n${command}: cannot connect to server ${complex.serverMeant()} (errno=${error.pbse})\n`);
  return error.pbse % 256;
}

/** Why a server named by the user is not to be reached from this complex; null: it is the complex's own. */
export async function foreignServer(complex: Complex, server: string | null): Promise<ServerUnreachable | null> {
  if (server === null || server === "") return null;
  switch (await complex.whose(server)) {
    case "ours":
      return null;
    case "nobody":
      return new ServerUnreachable("Unknown Host.", PBSE_BADHOST);
    case "foreign":
      return new ServerUnreachable("No support for requested service", PBSE_NOSUP);
  }
}

/** Throws ServerUnreachable when a server named by the user is not the one of this complex. */
export async function mustBeOurs(complex: Complex, server: string | null): Promise<void> {
  const error = await foreignServer(complex, server);
  if (error !== null) throw error;
}

/** All items of a status request at once: for requests with few of them. */
export async function statusItems(
  link: Link,
  request: StatusRequest,
): Promise<{ readonly reply: Reply; readonly items: readonly StatusItem[] }> {
  const items: StatusItem[] = [];
  const reply = await link.request(request, {
    onPart: (part) => {
      for (const item of part) items.push(item as StatusItem);
    },
  });
  return { reply, items };
}
