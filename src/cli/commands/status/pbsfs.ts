// pbsfs: shows and changes the fairshare tree of a scheduler (docs/reference/commands.md 6). It works on the files of the
// scheduler's sched_priv. When the scheduler finds the file usage.touch there, it reads the usage again.
//
// I1. The usage file is always complete, and its former version is kept as usage.bak. A file that cannot be read is not
//     changed.

import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  compareShares,
  createFairshare,
  decay,
  type Fairshare,
  type ShareNode,
  type StoredUsage,
  setUsage,
  storedOf,
} from "#model/fairshare.ts";
import { parseResourceGroup } from "#model/resource-group.ts";
import { parseUsage, usageText } from "#model/usage-file.ts";
import { ServerUnreachable } from "#protocol/client.ts";
import { codeOf, messageOf } from "#support/caught.ts";
import { writeWholeFile } from "#support/whole-file.ts";
import type { Command, CommandIo } from "../../command.ts";
import { asCommand, type Complex, statusItems } from "../../complex.ts";
import { optionFault, scanOptions } from "../../getopt.ts";
import { entityText, listText, treeText } from "../../pbsfs/render.ts";

/** usage texts, by the option that was used wrongly; "": for any other error */
const USAGES: Readonly<Record<string, string>> = {
  "": "Usage: pbsfs -[ptdgcs] [-I sched_name]\n",
  g: "Usage: pbsfs [-I sched_name] -g <fairshare_entity>\n",
  s: "Usage: pbsfs [-I sched_name] -s <fairshare_entity> <usage>\n",
  c: "Usage: pbsfs [-I sched_name] -c <entity1> <entity2>\n",
};
const OPERANDS: Readonly<Record<string, number>> = { g: 1, s: 2, c: 2 };
const FAILED = 1;

export const run: Command = asCommand("pbsfs", Object.values(USAGES).join(""), pbsfs);

export async function pbsfs(io: CommandIo, complex: Complex): Promise<number> {
  if (!mayRun(complex)) {
    io.err("pbsfs: Must be run by PBS_DAEMON_SERVICE_USER if set or root if not set\n: Success\n");
    return FAILED;
  }
  const scan = scanOptions(io.argv, "ptdegscI:");
  let [what, sched] = ["p", null as string | null];
  for (const event of scan.events) {
    const fault = optionFault("pbsfs", event);
    if (fault !== null) io.err(`${fault}\n`);
    if (event.kind !== "option") what = "p";
    else if (event.letter === "I") sched = event.value;
    else what = event.letter;
  }
  const directory = sched === null ? `${complex.conf().home}/sched_priv` : await schedulerDirectory(io, complex, sched);
  if (directory === null) return FAILED;
  try {
    if (!statSync(directory).isDirectory()) throw Object.assign(new Error(), { code: "ENOTDIR" });
    return await answer(io, what, scan.operands, directory);
  } catch (error) {
    const [code, message] = [codeOf(error), messageOf(error)];
    io.err(`Unable to access fairshare data: ${(code === undefined ? undefined : ERRNO[code]) ?? message}\n`);
    return FAILED;
  }
}

const ERRNO: Readonly<Record<string, string>> = {
  EACCES: "Permission denied",
  ENOENT: "No such file or directory",
  ENOTDIR: "Not a directory",
};

/** Whether the user may run the command. Root may; in user mode, the permissions of the files decide. */
function mayRun(complex: Complex): boolean {
  return complex.conf().mode === "user" || complex.uid() === 0;
}

/** Asks the server for the sched_priv of a scheduler. If that fails, writes the reason to stderr and returns null. */
async function schedulerDirectory(io: CommandIo, complex: Complex, name: string): Promise<string | null> {
  try {
    const link = await complex.connect();
    const { items } = await statusItems(link, { kind: "status", object: "sched", ids: [name], attrs: ["sched_priv"] });
    link.close();
    const [sched] = items;
    if (sched === undefined || !("attrs" in sched)) io.err(`Scheduler ${name} does not exist\n`);
    else if (typeof sched.attrs["sched_priv"] === "string") return sched.attrs["sched_priv"];
    else io.err(`Scheduler ${name} does not have its sched_priv set\n`);
  } catch (error) {
    if (!(error instanceof ServerUnreachable)) throw error;
    io.err("Can't connect to the server\n");
  }
  return null;
}

async function answer(io: CommandIo, what: string, operands: readonly string[], directory: string): Promise<number> {
  const config = configOf(join(directory, "sched_config"));
  const groups = textOf(join(directory, "resource_group"));
  const stored = storedUsage(io, directory);
  if (stored === undefined) return FAILED;
  const { tree } = parseResourceGroup(groups, config.unknown_shares);
  const fairshare = createFairshare(tree, stored, now_s());
  const [first = "", second = ""] = operands;
  if ((OPERANDS[what] ?? 0) !== operands.length || (what === "s" && !isUsage(second))) {
    io.err(USAGES[what] ?? (USAGES[""] as string));
    return FAILED;
  }
  const names = what === "s" ? [first] : operands;
  const missing = names.find((name) => !fairshare.nodes.has(name));
  if (missing !== undefined) {
    io.err(`Fairshare Entity ${missing} does not exist.\n`);
    return FAILED;
  }
  // Each use below has as many operands as it needs (OPERANDS).
  const [a, b] = names.map((name) => fairshare.nodes.get(name)) as [ShareNode, ShareNode];
  switch (what) {
    case "p":
      io.out(listText(fairshare, config.units));
      return 0;
    case "t":
      io.out(treeText(fairshare));
      return 0;
    case "g":
      io.out(entityText(fairshare, a, config.units));
      return 0;
    case "c":
      io.out(comparison(a, b));
      return 0;
    case "s":
      // Usage is set only for an entity without children, because only such an entity uses shares itself.
      if (a.children.length === 0) setUsage(fairshare, first, Number(second));
      return save(io, directory, storedOf(fairshare));
    case "d":
      decay(fairshare, config.decay_factor);
      return save(io, directory, { ...storedOf(fairshare), last_decay_s: now_s() });
    default:
      return save(io, directory, withoutStrangers(fairshare, parseResourceGroup(groups, 0).tree));
  }
}

const now_s = (): number => Math.floor(Date.now() / 1000);
const isUsage = (text: string): boolean => /^[0-9]+(\.[0-9]+)?$/.test(text) && Number.isFinite(Number(text));

function comparison(a: ShareNode, b: ShareNode): string {
  const order = compareShares(a, b);
  return order === 0 ? `${a.name} == ${b.name}\n` : `${(order < 0 ? a : b).name}\n`;
}

/** Returns the stored usage without the entities that resource_group does not name (-e). */
function withoutStrangers(fairshare: Fairshare, tree: Parameters<typeof createFairshare>[0]): StoredUsage {
  const known = createFairshare(tree, null, 0).nodes;
  const stored = storedOf(fairshare);
  return { ...stored, usage: Object.fromEntries(Object.entries(stored.usage).filter(([name]) => known.has(name))) };
}

/** Reads the usage file. Returns null if there is none yet. If the file cannot be read, tells the user and returns undefined. */
function storedUsage(io: CommandIo, directory: string): StoredUsage | null | undefined {
  const path = join(directory, "usage");
  if (!existsSync(path)) {
    io.out("Creating usage database for fairshare.\n");
    return null;
  }
  const usage = parseUsage(readFileSync(path, "utf8"));
  if (typeof usage !== "string") return usage;
  io.err(`pbsfs: ${path} cannot be read: ${usage}\n`);
  return undefined;
}

function save(io: CommandIo, directory: string, usage: StoredUsage): number {
  const path = join(directory, "usage");
  if (existsSync(path)) writeWholeFile(`${path}.bak`, readFileSync(path, "utf8"));
  else io.err("Could not backup usage database.: No such file or directory\n");
  writeWholeFile(path, usageText(usage));
  writeWholeFile(`${path}.touch`, "");
  return 0;
}

/** Returns the text of a file; "": the file does not exist. */
const textOf = (path: string): string => (existsSync(path) ? readFileSync(path, "utf8") : "");

/** Reads the settings of sched_config that concern the tree. If a name occurs on several lines, the last one counts. */
function configOf(path: string): { readonly units: string; readonly unknown_shares: number; readonly decay_factor: number } {
  const text = textOf(path);
  const lastValue = (name: string): string | undefined =>
    [...text.matchAll(new RegExp(`^[ \\t]*${name}[ \\t]*:[ \\t]*(?:"([^"]*)"|(\\S+))`, "gm"))].map((match) => match[1] ?? match[2]).at(-1);
  const number = (name: string, otherwise: number): number => {
    const value = Number(lastValue(name) ?? otherwise);
    return Number.isFinite(value) && value >= 0 ? value : otherwise;
  };
  return {
    units: lastValue("fairshare_usage_res") ?? "cput",
    unknown_shares: Math.trunc(number("unknown_shares", 0)),
    decay_factor: Math.min(1, number("fairshare_decay_factor", 0.5)),
  };
}
