// Writes a copy of every hook into server_priv/hooks, for people and site tools: `NAME.HK` attributes, `NAME.PY` or
// `NAME.JS` script, `NAME.CF` configuration (docs/reference/files.md 1). Only the store is authoritative: the files are
// written after its commits and again at the start of the server, which never reads them.

import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Hook, hookAttrTexts } from "#model/tables/hook.ts";
import { messageOf } from "#support/caught.ts";

const SCRIPT_SUFFIX = { python: "PY", javascript: "JS" } as const;
const SUFFIXES = ["HK", "PY", "JS", "CF"] as const;

export type HookFiles = {
  /** makes the directories and the files of these hooks, and removes files of other hooks */
  prepare(hooks: Iterable<Hook>): void;
  /** writes the files of a hook. hook undefined: the hook was deleted, so its files are removed */
  write(name: string, hook: Hook | undefined): void;
};

/** directory: server_priv/hooks. complain: called about files that cannot be written. The server works without these files. */
export function hookFiles(directory: string, complain: (text: string) => void): HookFiles {
  const attempt = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      complain(`${directory}: ${messageOf(error)}`);
    }
  };
  const write = (name: string, hook: Hook | undefined): void => {
    const contents = hook === undefined ? new Map<string, string | Buffer>() : contentsOf(hook);
    for (const suffix of SUFFIXES) {
      const path = join(directory, `${name}.${suffix}`);
      const text = contents.get(suffix);
      if (text === undefined) rmSync(path, { force: true });
      else replace(path, text);
    }
  };
  return {
    prepare(hooks) {
      attempt(() => {
        for (const path of [directory, join(directory, "tmp"), join(directory, "tracking")])
          mkdirSync(path, { recursive: true, mode: 0o750 });
        const known = new Map([...hooks].map((hook) => [hook.name, hook]));
        for (const file of readdirSync(directory)) {
          const name = /^(.+)\.(?:HK|PY|JS|CF)$/.exec(file)?.[1];
          if (name !== undefined && !known.has(name)) rmSync(join(directory, file), { force: true });
        }
        for (const [name, hook] of known) write(name, hook);
      });
    },
    write: (name, hook) => attempt(() => write(name, hook)),
  };
}

function contentsOf(hook: Hook): Map<string, string | Buffer> {
  const lines = Object.entries({ hook_name: hook.name, ...hookAttrTexts(hook.attrs) }).map(([name, value]) => `${name}=${value}\n`);
  const contents = new Map<string, string | Buffer>([["HK", lines.join("")]]);
  if (hook.script !== null) contents.set(SCRIPT_SUFFIX[hook.script.language], Buffer.from(hook.script.content, "base64"));
  if (hook.config !== null) contents.set("CF", Buffer.from(hook.config.content, "base64"));
  return contents;
}

function replace(path: string, text: string | Buffer): void {
  const half = `${path}.new`;
  writeFileSync(half, text, { mode: 0o600 });
  chmodSync(half, 0o600);
  renameSync(half, path);
}
