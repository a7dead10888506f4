// `pbs_mom -s insert|remove|show|list` (docs/reference/execution.md 7): the vnode definition files in mom_priv/config.d. Read at the start and at SIGHUP.
//
// F1. Names that begin with PBS are reserved for files of other programs. Such files are read first, and this command neither inserts nor removes them.

import { mkdirSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { codeOf, messageOf } from "#support/caught.ts";
import { trustedFile } from "#support/trusted-file.ts";
import { mergeVnodeDefs, parseVnodeDefs, type VnodeDef, type VnodeDefs } from "../config/vnode-def.ts";

const NAME = /^[\w.@+-]{1,255}$/;
const isReserved = (name: string): boolean => name.startsWith("PBS");

export type ScriptIo = { readonly out: (text: string) => void; readonly err: (text: string) => void };

/** Carries out `pbs_mom -s`. Returns the exit status: 0 if it succeeded, 1 if it could not be done, 2 for wrong usage. directory: mom_priv/config.d. */
export function vnodeFileCommand(directory: string, args: readonly string[], io: ScriptIo): number {
  const [verb, name, file] = args;
  const refuse = (text: string): number => {
    io.err(`pbs_mom: ${text}\n`);
    return 1;
  };
  if (verb === "list" && args.length === 1) {
    io.out(
      definitionNames(directory)
        .map((each) => `${each}\n`)
        .join(""),
    );
    return 0;
  }
  const wanted = { insert: 3, show: 2, remove: 2 }[verb ?? ""];
  if (wanted === undefined || args.length !== wanted || name === undefined) {
    io.err("usage: pbs_mom -s insert NAME FILE | remove NAME | show NAME | list\n");
    return 2;
  }
  if (!NAME.test(name) || name.startsWith(".")) return refuse(`${name}: not a name for a vnode definition file`);
  const path = `${directory}/${name}`;
  try {
    if (verb === "show") {
      io.out(readFileSync(path, "utf8"));
      return 0;
    }
    if (isReserved(name)) return refuse(`${name}: names that begin with PBS are reserved`);
    if (verb === "remove") unlinkSync(path);
    else insert(directory, path, readFileSync(file as string, "utf8"));
    return 0;
  } catch (error) {
    const [code, message] = [codeOf(error), messageOf(error)];
    if (code === "EEXIST") return refuse(`${name}: exists already`);
    if (code === "ENOENT") return refuse(`${verb === "insert" ? file : name}: No such file or directory`);
    return refuse(`${name}: ${message}`);
  }
}

function insert(directory: string, path: string, text: string): void {
  parseVnodeDefs(text);
  mkdirSync(directory, { recursive: true, mode: 0o751 });
  writeFileSync(path, text, { flag: "wx", mode: 0o600 });
}

/** Returns the names of the definition files: those that begin with PBS first, then the site's, both in alphabetical order. */
function definitionNames(directory: string): string[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch {
    return [];
  }
  const usable = names.filter((name) => NAME.test(name) && !name.startsWith(".")).sort();
  return [...usable.filter(isReserved), ...usable.filter((name) => !isReserved(name))];
}

/** Reads all definition files. A file that is not valid is left out and reported. In system mode, so is a file that others than root can change. */
export function readDefinitions(
  directory: string,
  system: boolean,
): { readonly defs: Map<string, VnodeDef>; readonly problems: readonly string[] } {
  const files: VnodeDefs[] = [];
  const problems: string[] = [];
  for (const name of definitionNames(directory)) {
    try {
      if (system) trustedFile(`${directory}/${name}`, [0]);
      files.push(parseVnodeDefs(readFileSync(`${directory}/${name}`, "utf8")));
    } catch (error) {
      problems.push(`vnode definition file ${name}: ${messageOf(error)}`);
    }
  }
  return { defs: mergeVnodeDefs(files), problems };
}
