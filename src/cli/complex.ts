// The complex to which a command talks: its configuration, its server, its names, the time. A command receives its complex
// as an argument, so that tests can replace it. Files are read and the server is connected only when the command needs that,
// so faults in the arguments are reported first.

import { hostname } from "node:os";
import { collectInto, type ServerConnection, ServerUnreachable } from "#protocol/client.ts";
import type { StatusItem, StatusRequest } from "#protocol/messages.ts";
import { isServerElsewhere } from "#protocol/server-place.ts";
import { connectWatched, patienceOf, silentServer } from "#protocol/watched-link.ts";
import type { Reply } from "#protocol/wire/reply.ts";
import { type Conf, ConfError, readConf } from "#support/conf.ts";
import { PBS_VERSION } from "#support/version.ts";
import type { Command, CommandIo } from "./command.ts";
import { PBSE_BADHOST, PBSE_NOSUP } from "./errors.ts";

/** The part of a connection (protocol/client.ts) that commands use. */
export type Link = Pick<ServerConnection, "request" | "close">;

export type Complex = {
  /** returns pbs.conf, with the complex's own name as `server`. Throws ConfError */
  conf(): Pick<Conf, "server" | "home" | "exec" | "values" | "mode" | "log_highres" | "pair">;
  /** returns the server to use if a command names none: PBS_SERVER or PBS_DEFAULT of the environment, otherwise the complex's own server */
  serverMeant(): string;
  /** connects to the server that serverMeant() returns. Throws ServerUnreachable */
  connect(): Promise<Link>;
  /** Returns what a name belongs to: the complex's own server ("ours"), another host ("foreign"), or no host ("nobody"). */
  whose(name: string): Promise<"ours" | "foreign" | "nobody">;
  /** returns the uid of the caller. The server does not rely on it */
  uid(): number;
  now_ms(): number;
};

/** What a command does. Resolves with the exit status. */
export type CommandBody = (io: CommandIo, complex: Complex) => Promise<number>;

/**
 * Commands that give up when the server does not answer a request for information. All other commands wait, even while they only request information that they
 * need for a change.
 */
const ONLY_ASK: ReadonlySet<string> = new Set(["qstat", "qselect", "pbsnodes", "pbs_rstat", "pbsfs", "printjob", "qmgr"]);

/** Makes the complex of a command that is not under test. name: the command's name, for the message that the server does not answer. */
export function realComplex(io: Pick<CommandIo, "env" | "flow" | "err">, name: string): Complex {
  const { env, flow } = io;
  let conf: (Conf & { readonly meant: string }) | null = null;
  const read = (): Conf & { readonly meant: string } => {
    if (conf === null) {
      const asRead = readConf(env);
      // PBS_DEFAULT in the environment applies only to commands: a daemon must not change its name because a login shell still exports the variable.
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
      const server_host = values["PBS_SERVER_HOST_NAME"] ?? server;
      const is_here = !isServerElsewhere(read());
      if (isOwnName(host, [server, server_host, ...(is_here ? [hostname(), "localhost"] : [])])) return "ours";
      const { whoseAddress } = await import("./host-names.ts");
      return whoseAddress(host, is_here ? server : server_host, is_here);
    },
    uid: () => process.getuid?.() ?? 0,
    now_ms: Date.now,
  };
  return complex;
}

/** Whether a name is one of the server's names, or the short form of one. Only the spelling is compared. */
function isOwnName(name: string, own: readonly string[]): boolean {
  const wanted = name.toLowerCase();
  return own.some((each) => each.toLowerCase() === wanted || each.toLowerCase().split(".")[0] === wanted);
}

/**
 * Makes a command from the function that does its work (body), for bin/ and the admin shell. The command handles `--version` and `--help` if they are its
 * only argument. It reports a configuration that cannot be used, and a server that becomes unreachable.
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

/** Prints the two lines about a server that cannot be reached. Returns the exit status. */
export function cannotConnect(io: CommandIo, command: string, complex: Complex, error: ServerUnreachable): number {
  io.err(`${error.line}\n${command}: cannot connect to server ${complex.serverMeant()} (errno=${error.pbse})\n`);
  return error.pbse % 256;
}

/** Returns why a server that the user named cannot be reached from this complex, or null if it is the complex's own server. */
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

/** Throws ServerUnreachable if the user named another server than the server of this complex. */
export async function mustBeOurs(complex: Complex, server: string | null): Promise<void> {
  const error = await foreignServer(complex, server);
  if (error !== null) throw error;
}

/** Makes a status request and collects all items of its answer. Meant for requests with few items. */
export async function statusItems(
  link: Link,
  request: StatusRequest,
): Promise<{ readonly reply: Reply; readonly items: readonly StatusItem[] }> {
  const items: StatusItem[] = [];
  const reply = await link.request(request, { onPart: collectInto(items) });
  return { reply, items };
}
