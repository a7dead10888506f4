// Writes server_priv/resourcedef (docs/reference/files.md 1), a list of the custom resources for site tools: lines `NAME
// type=T flag=F`. Only the store is authoritative: the file is written after its commits and again at the start of the
// server, which never reads it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type ResourceDef, resourceTypeText } from "#model/resource-table.ts";
import { messageOf } from "#support/caught.ts";
import { writeWholeFile } from "#support/whole-file.ts";

const MODE = 0o644;

/** Writes the file. directory: server_priv. Returns the fault; null: none. */
export function keepResourceFile(directory: string, resources: Iterable<ResourceDef>): string | null {
  const path = join(directory, "resourcedef");
  const text = resourceLines(resources);
  try {
    if (textOf(path) !== text) writeWholeFile(path, text, MODE);
    return null;
  } catch (error) {
    return `resourcedef cannot be kept: ${messageOf(error)}`;
  }
}

function resourceLines(resources: Iterable<ResourceDef>): string {
  return [...resources]
    .filter(({ builtin }) => builtin !== true)
    .map(({ name, type, flags }) => `${name} type=${resourceTypeText(type)}${flags === "" ? "" : ` flag=${flags}`}\n`)
    .join("");
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
