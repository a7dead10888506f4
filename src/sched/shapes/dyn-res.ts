// server_dyn_res (docs/reference/scheduler.md 12): `RESOURCE !PROGRAM [ARGUMENT...]`. The first line that the program prints is the server's amount of the
// resource in that cycle. The code in shell/dyn-programs.ts runs the program; this file reads the line of sched_config and the program's output.

import { isNumeric } from "#model/resource-table.ts";
import { parseBoolean } from "#model/values/boolean.ts";
import { parseSize } from "#model/values/size.ts";
import { amountOf, matchedOf, type Resource } from "./resource-space.ts";

export type DynProgram = { readonly resource: string; readonly program: string; readonly args: readonly string[] };

/** Characters that only a shell interprets. The program is started without a shell, so a line with them would not do what it says. */
const FOR_A_SHELL = /[|&;<>()$`\\"'*?[\]{}~#\n]/;

/** Parses a line. Returns a text that names the mistake if there is one. */
export function parseDynRes(value: string): DynProgram | string {
  const match = /^\s*([A-Za-z][A-Za-z0-9_-]*)\s*!\s*(.*?)\s*$/.exec(value);
  const [, resource = "", command = ""] = match ?? [];
  if (match === null || command === "") return `Invalid server_dyn_res ${value}: RESOURCE !PROGRAM [ARGUMENT...]`;
  if (FOR_A_SHELL.test(command)) return `Invalid server_dyn_res ${value}: it is not given to a shell; put what needs one into a script`;
  const [program = "", ...args] = command.split(/\s+/);
  return program.startsWith("/")
    ? { resource, program, args }
    : `Invalid server_dyn_res ${value}: the program must be named by its whole path`;
}

/** Returns the value that a program's output gives for its resource; null: it does not fit the type of the resource. */
export function dynValue(resource: Resource | undefined, output: string): number | string | boolean | null {
  const [line = ""] = output.split("\n", 1);
  const text = line.trim();
  if (text === "" || resource === undefined) return null;
  if (resource.type === "boolean") return parseBoolean(text);
  if (!isNumeric(resource.type)) return matchedOf(resource, text);
  if (resource.type === "size" && parseSize(text) === null) return null;
  const amount = amountOf(resource, text);
  return amount !== null && Number.isFinite(amount) && amount >= 0 ? amount : null;
}

/** Returns the value of a resource about which nothing is known. */
export function nothingOf(resource: Resource | undefined): number | string | boolean {
  if (resource?.type === "boolean") return false;
  return resource === undefined || isNumeric(resource.type) ? 0 : "";
}
