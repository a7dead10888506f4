// The complex to which a command talks: its configuration, its server, its names, the time. A command receives it as an
// argument, so that tests can replace it. It reads files and connects only when the command asks. Faults in the arguments are
// therefore reported first.

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
  /** pbs.conf, where server is the complex's own name; throws ConfError */
  conf(): Pick<Conf, "server" | "home" | "exec" | "values" | "mode" | "log_highres">;
  /** the server used if a command names none: PBS_SERVER or PBS_DEFAULT of the environment, otherwise the complex's own */
  serverMeant(): string;
  /** connects to serverMeant(); throws ServerUnreachable */
  connect(): Promise<Link>;
  /** Whether a name belongs to the complex's own server, to another host, or to no host. */
  whose(name: string): Promise<"ours" | "foreign" | "nobody">;
  /** uid of the caller; the server determines the caller by itself */
  uid(): number;
  now_ms(): number;
};

/** The body of a command. Returns the exit status. */
export type CommandBody = (io: CommandIo, complex: Complex) => Promise<number>;

/**
 * Commands whose questions are given up if the server does not answer. All other commands wait, even with questions that
 * precede a change.
 */
const ONLY_ASK: ReadonlySet<string> = new Set(["qstat", "qselect", "pbsnodes", "pbs_rstat", "pbsfs", "printjob", "qmgr"]);

/** The real complex. name: name of the command, for the message that the server does not answer. */
export function realComplex(io: Pick<CommandIo, "env" | "flow" | "err">, name: string): Complex {
  const { env, flow } = io;
  let conf: (Conf & { readonly meant: string }) | null = null;
  const read = (): Conf & { readonly meant: string } => {
    if (conf === null) {
      const asRead = readConf(env);
      // PBS_DEFAULT of the environment applies to commands only: a daemon must not change its name because a login shell still
      // exports the variable.
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

/** Compares the spelling only: one of the names, `localhost`, or the short form of one of them. */
function isOwnName(name: string, own: readonly string[]): boolean {
  const wanted = name.toLowerCase();
  if (wanted === "localhost") return true;
  return own.some((each) => each.toLowerCase() === wanted || each.toLowerCase().split(".")[0] === wanted);
}

/**
 * Wraps a body as a command for bin/ and the admin shell. It handles `--version` and `--help` as only arguments, an unusable
 * configuration, and a server that becomes unreachable during the work.
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

/** Prints the two lines for a server that cannot be reached. Returns the exit status. */
export function cannotConnect(io: CommandIo, command: string, complex: Complex, error: ServerUnreachable): number {
  io.err(`${error.line}\n${command}: cannot connect to server ${complex.serverMeant()} (errno=${error.pbse})\n`);
  return error.pbse % 256;
}

/** The reason why a server named by the user cannot be reached from this complex, or null if it is the complex's own. */
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

/** Throws ServerUnreachable if a server named by the user is not the one of this complex. */
export async function mustBeOurs(complex: Complex, server: string | null): Promise<void> {
  const error = await foreignServer(complex, server);
  if (error !== null) throw error;
}

/** Collects all items of a status request, for requests with few items. */
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
