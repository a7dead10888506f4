// gridsub: submits a campaign, or adds jobs to one (docs/campaigns.md).

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { messageOf } from "#support/caught.ts";
import type { Command, CommandIo } from "../../command.ts";
import {
  type Given,
  type Grid,
  GridRefusal,
  gridCommand,
  jsonText,
  Misuse,
  numberOf,
  textOption,
  wantsJson,
} from "../../grid/grid-command.ts";

const USAGE = `Usage: gridsub [-t test|default] [-F json] FILE
       gridsub [-t test|default] [-F json] -f FILE
       gridsub [-t test|default] [-F json] -j JSON
       gridsub [-F json] -c CAMPAIGN [-f FILE | -j JSON]
       gridsub --help | --version
Submits the campaign in FILE (-: standard input) or in the text JSON, and prints its number.
  -t TYPE      test: one job on each cluster, before all other campaigns
  -c CAMPAIGN  adds jobs to a campaign: FILE has a parameter in each line; JSON is a list of parameters
`;

export const run: Command = gridCommand(
  "gridsub",
  USAGE,
  {
    f: { type: "string", short: "f" },
    j: { type: "string", short: "j" },
    c: { type: "string", short: "c" },
    t: { type: "string", short: "t" },
    F: { type: "string", short: "F" },
  },
  gridsub,
);

async function gridsub(io: CommandIo, given: Given, grid: Grid): Promise<number> {
  const json = wantsJson(given);
  const [file = textOption(given, "f"), ...more] = given.operands;
  if (more.length > 0 || (given.operands.length > 0 && textOption(given, "f") !== undefined))
    throw new Misuse("only one file may be given");
  const inline = textOption(given, "j");
  if ((file === undefined) === (inline === undefined)) throw new Misuse("either a file or -j must be given");
  const campaign = textOption(given, "c");
  const answer =
    campaign === undefined
      ? await submit(io, given, grid, file, inline)
      : await add(io, grid, numberOf(campaign, "a campaign"), file, inline);
  const id = typeof answer === "object" && answer !== null && "id" in answer ? answer.id : "";
  io.out(json ? jsonText(answer) : `${String(id)}\n`);
  return 0;
}

async function submit(io: CommandIo, given: Given, grid: Grid, file: string | undefined, inline: string | undefined): Promise<unknown> {
  const type = textOption(given, "t");
  if (type !== undefined && type !== "test" && type !== "default") throw new Misuse(`-t ${type}: one of test, default`);
  const jdl = inline ?? (await readText(io, file ?? "-"));
  const parameters = parameterFile(jdl);
  try {
    return await grid.ask({
      kind: "grid-submit",
      jdl,
      ...(type === undefined ? {} : { type }),
      ...(parameters === null ? {} : { parameters: await readText(io, parameters) }),
    });
  } catch (error) {
    // The grid does not know the name of the file.
    if (error instanceof GridRefusal) throw new GridRefusal(error.message.replaceAll(/^JDL:/gm, `${file ?? "-j"}:`));
    throw error;
  }
}

async function add(io: CommandIo, grid: Grid, campaign: number, file: string | undefined, inline: string | undefined): Promise<unknown> {
  const parameters = inline === undefined ? await readText(io, file ?? "-") : parametersIn(inline);
  return grid.ask({ kind: "grid-add-jobs", campaign, parameters });
}

/** Returns the path in param_file of a JDL; null: there is none. A JDL that is no JSON is sent as it is, because the grid tells the place of the fault. */
function parameterFile(jdl: string): string | null {
  try {
    const read: unknown = JSON.parse(jdl);
    const path = typeof read === "object" && read !== null && "param_file" in read ? read.param_file : null;
    return typeof path === "string" ? path : null;
  } catch {
    return null;
  }
}

function parametersIn(text: string): string {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch (error) {
    throw new Misuse(`-j: ${messageOf(error)}`);
  }
  if (typeof read === "number") return String(read);
  if (Array.isArray(read) && read.every((each) => typeof each === "string")) return read.join("\n");
  throw new Misuse("-j: a list of texts is expected, or a number");
}

/** Reads a file of the user; `-` is standard input. */
async function readText({ cwd, stdin, env }: CommandIo, path: string): Promise<string> {
  if (path === "-") {
    const parts: Buffer[] = [];
    for await (const part of stdin) parts.push(Buffer.from(part));
    return Buffer.concat(parts).toString("utf8");
  }
  const home = env["HOME"] ?? "";
  const whole = resolve(
    cwd,
    path.replace(/^~(?=\/)/, () => home).replaceAll("{HOME}", () => home),
  );
  try {
    return readFileSync(whole, "utf8");
  } catch (error) {
    throw new GridRefusal(`${path}: ${messageOf(error)}`);
  }
}
