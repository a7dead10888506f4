// The form of the grid's commands: options, the connection to pbs_grid, refusals. The daemon is found by PBS_CONF_FILE, else by PARTITA_HOME, else by /etc/pbs.conf.

import { type ParseArgsConfig, parseArgs } from "node:util";
import { connectGrid, type OpenConnection, ServerUnreachable } from "#protocol/client.ts";
import type { GridRequest } from "#protocol/grid-messages.ts";
import { messageOf } from "#support/caught.ts";
import { ConfError, readConf } from "#support/conf.ts";
import { PBS_VERSION } from "#support/version.ts";
import type { Command, CommandIo } from "../command.ts";

/** Statuses of the commands: the grid has refused, the command line is wrong. */
const REFUSED = 1;
const MISUSED = 2;

/** Thrown for a mistake in the command line. */
export class Misuse extends Error {
  override readonly name = "Misuse";
}
/** Thrown when the grid refuses, or cannot be reached. */
export class GridRefusal extends Error {
  override readonly name = "GridRefusal";
}

export type Grid = {
  /** Sends a request. Returns its answer; throws GridRefusal. */
  ask(request: GridRequest): Promise<unknown>;
};

export type Given = { readonly values: Readonly<Record<string, string | boolean | undefined>>; readonly operands: readonly string[] };

type Options = NonNullable<ParseArgsConfig["options"]>;
/** What a command does with its options and operands. Resolves with the exit status. */
type Body = (io: CommandIo, given: Given, grid: Grid) => Promise<number>;

export function gridCommand(name: string, usage: string, options: Options, body: Body): Command {
  return async (io) => {
    const [only] = io.argv;
    if (io.argv.length === 1 && only === "--version") {
      io.out(`pbs_version = ${PBS_VERSION}\n`);
      return 0;
    }
    if (io.argv.length === 1 && (only === "--help" || only === "-h")) {
      io.out(usage);
      return 0;
    }
    const link: { made: OpenConnection | null } = { made: null };
    const grid: Grid = { ask: async (request) => answerIn(await (link.made ??= await connect(io)).request(request)) };
    try {
      return await body(io, givenIn(io.argv, options), grid);
    } catch (error) {
      if (error instanceof Misuse) {
        io.err(`${name}: ${error.message}\n${usage}`);
        return MISUSED;
      }
      if (!(error instanceof GridRefusal || error instanceof ConfError || error instanceof ServerUnreachable)) throw error;
      for (const line of messageOf(error).split("\n")) io.err(`${name}: ${line}\n`);
      return REFUSED;
    } finally {
      link.made?.close();
    }
  };
}

function givenIn(argv: readonly string[], options: Options): Given {
  try {
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
    const flat: Record<string, string | boolean | undefined> = {};
    for (const [key, value] of Object.entries(values)) if (!Array.isArray(value)) flat[key] = value;
    return { values: flat, operands: positionals };
  } catch (error) {
    throw new Misuse(messageOf(error));
  }
}

async function connect({ env, flow }: CommandIo): Promise<OpenConnection> {
  const home = env["PARTITA_HOME"];
  const conf = readConf(env["PBS_CONF_FILE"] || !home ? env : { ...env, PBS_CONF_FILE: `${home}/pbs.conf` });
  try {
    return await connectGrid(conf, { flow });
  } catch (error) {
    throw new GridRefusal(`cannot connect to pbs_grid of ${conf.file}: ${messageOf(error)}; consider: partita grid start`);
  }
}

function answerIn(reply: Awaited<ReturnType<OpenConnection["request"]>>): unknown {
  if (reply.ok) return reply.value;
  throw new GridRefusal(reply.text ?? `the grid returned error ${reply.code}`);
}

/** Returns the text of an option; undefined: it is not given. */
export function textOption({ values }: Given, name: string): string | undefined {
  const value = values[name];
  return typeof value === "string" ? value : undefined;
}

/** Whether the output is wanted as JSON (-F json). */
export function wantsJson(given: Given): boolean {
  const format = textOption(given, "F");
  if (format === undefined) return false;
  if (format === "json") return true;
  throw new Misuse(`-F ${format}: only json is known`);
}

/** Reads the number of a campaign, an event or a job. */
export function numberOf(text: string, what: string): number {
  if (!/^[1-9][0-9]{0,14}$/.test(text)) throw new Misuse(`${JSON.stringify(text)} is not the number of ${what}`);
  return Number(text);
}

export const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
