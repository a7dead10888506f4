// Commands are functions of their io (src/cli/command.ts): a resident runs many of them in one process, one after another and
// at the same time, for different directories, environments and streams. The files of commands may therefore not read these
// from the process, nor keep state from one command to the next.

import assert from "node:assert/strict";
import { test } from "node:test";
import { codeOf, importsOf, resolveImport, type SourceFile, sources } from "./tree.ts";

/** Files that mention the process, and why this is correct in a resident. */
const MENTIONS: Readonly<Record<string, { readonly count: number; readonly why: string }>> = {
  "src/cli/complex.ts": { count: 1, why: "uid: a resident has the ids of its launchers" },
  "src/support/conf.ts": { count: 2, why: "uid, and the environment for daemons: commands give their own" },
  "src/identity/files/user-credentials.ts": { count: 2, why: "uid: a resident has the ids of its launchers" },
  "src/qmgr/main.ts": { count: 2, why: "on a terminal only: a process of its own" },
};

/** A resident never loads these: its io has no terminal for interactive work or screens. */
const NOT_LOADED = [
  "src/cli/qsub/interactive.ts",
  "src/cli/run-process.ts",
  "src/cli/own-terminal.ts",
  "src/support/libc/libc.ts",
  "src/support/live-screen.ts",
];

/** State of a module that outlives a command, and why it does no harm. */
const KEPT: Readonly<Record<string, string>> = {
  "src/cli/dates.ts last": "a function of the time alone: the time zone is one of the process",
  "src/cli/json.ts keys": "texts of names, so many and no more",
  "src/cli/long-format.ts lastVariables": "a function of its arguments",
  "src/protocol/proof/munge.ts loaded": "functions of a library",
  "src/protocol/proof/user-client.ts opened": "the queue of calls of that library, per socket of munged",
  "src/qmgr/language/grammar.ts parser": "reset by each line",
  "src/qmgr/language/tokens.ts lexer": "constant",
  "src/qmgr/language/tokens.ts lookup_now": "set by each line",
};

/** All files that may be loaded for a command, starting from the table of the resident. */
function loadedForCommands(): readonly SourceFile[] {
  const files = new Map(sources("src").map((file) => [file.path, file]));
  const found = new Map<string, SourceFile>();
  const walk = (path: string): void => {
    const file = files.get(path);
    if (file === undefined || found.has(path) || path.endsWith(".tsx") || NOT_LOADED.includes(path)) return;
    found.set(path, file);
    for (const { specifier, typeOnly } of importsOf(file)) if (!typeOnly) walk(resolveImport(path, specifier) ?? "");
  };
  walk("src/resident/commands.ts");
  return [...found.values()];
}

test("files that commands load do not ask the process for directory, environment or streams, but for those that are named", () => {
  const loaded = loadedForCommands();
  assert.ok(loaded.length > 60, `only ${loaded.length} files found`);
  const problems = loaded.flatMap(({ path, text }) => {
    const lines = codeOf(text).split("\n");
    const found = lines.flatMap((line, index) => [...line.matchAll(/(?<![.\w])process\s*[.[?]/g)].map(() => `${path}:${index + 1}`));
    return found.length === (MENTIONS[path]?.count ?? 0) ? [] : [`${found.join(" ") || path}: ${found.length} mentions of process`];
  });
  assert.deepEqual(problems, [], "take it from io, or name it in MENTIONS with its reason");
});

test("files that commands load show nothing in a locale of the process", () => {
  const problems = loadedForCommands().flatMap(({ path, text }) => {
    const found = /\bIntl\b|\.toLocale\w+\(/.exec(codeOf(text))?.[0];
    return found === undefined ? [] : [`${path}: ${found}`];
  });
  assert.deepEqual(problems, []);
});

test("files that commands load keep nothing from one command to the next, but for what is named", () => {
  const kept = loadedForCommands().flatMap(({ path, text }) =>
    codeOf(text)
      .split("\n")
      .flatMap((line) => {
        const name =
          /^(?:export )?(?:let|var) (\w+)/.exec(line)?.[1] ??
          /^(?:export )?const (\w+) = new (?:Map|Set|WeakMap)(?:<[^>]*>)?\(\);/.exec(line)?.[1];
        return name === undefined ? [] : [`${path} ${name}`];
      }),
  );
  assert.deepEqual([...new Set(kept)].sort(), Object.keys(KEPT).sort());
});
