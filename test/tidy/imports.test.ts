// Imports point down (ARCHITECTURE.md), and pure files stay pure (CONTRIBUTING.md).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ALSO_IMPORTS, LAYERS, MAY_IMPORT_ANYTHING, matches, NEVER_IMPORTS, PURE } from "./rules.ts";
import { allFiles, codeOf, importsOf, ROOT, resolveImport, type SourceFile, sources } from "./tree.ts";

const folderOf = (path: string): string => path.split("/")[1] ?? "";
const levelOf = (folder: string): number => LAYERS.findIndex((layer) => layer.includes(folder));

test("every folder of src has a place in the layers", () => {
  const folders = new Set(sources("src").map(({ path }) => folderOf(path)));
  const unknown = [...folders].filter((folder) => levelOf(folder) === -1);
  assert.deepEqual(unknown, [], "add the folder to LAYERS in test/tidy/rules.ts and to ARCHITECTURE.md");
});

test("imports point down and never into a folder of the same layer", () => {
  const problems = sources("src").flatMap((file) => importsOf(file).flatMap((each) => upward(file, each.specifier, each.line)));
  assert.deepEqual(problems, []);
});

function upward(file: SourceFile, specifier: string, line: number): readonly string[] {
  const target = resolveImport(file.path, specifier);
  if (target === undefined) return [];
  const [from, to] = [folderOf(file.path), folderOf(target)];
  if (!target.startsWith("src/")) return [`${file.path}:${line} imports ${target}: src imports only src and packages`];
  const allowed = from === to || MAY_IMPORT_ANYTHING.includes(from) || ALSO_IMPORTS[from]?.includes(to) || levelOf(to) < levelOf(from);
  if (allowed && !NEVER_IMPORTS[from]?.includes(to)) return [];
  const below = LAYERS.slice(0, levelOf(from))
    .flat()
    .concat(ALSO_IMPORTS[from] ?? []);
  const may = below.filter((folder) => !NEVER_IMPORTS[from]?.includes(folder));
  return [`${file.path}:${line} imports ${target}: ${from} may only import ${may.join(" ")}`];
}

test("imports name existing files, by #folder across folders and by ./ within one", () => {
  const known = new Set(allFiles().map(({ path }) => path));
  const problems = sources("src", "test", "bench").flatMap((file) =>
    importsOf(file).flatMap(({ specifier, line }) => {
      const target = resolveImport(file.path, specifier);
      if (target === undefined) return [];
      if (!known.has(target)) return [`${file.path}:${line} imports ${specifier}: there is no ${target}`];
      const isAcross = target.startsWith("src/") && folderOf(target) !== folderOf(file.path);
      return isAcross && specifier.startsWith(".") ? [`${file.path}:${line}: write "#${target.slice(4)}" for "${specifier}"`] : [];
    }),
  );
  assert.deepEqual(problems, []);
});

test("a .ts file imports a .tsx file only dynamically, so that nothing loads ink that shows nothing", () => {
  const problems = sources("src").flatMap((file) =>
    file.path.endsWith(".tsx") || !/from "[^"]+\.tsx"/.test(file.text)
      ? []
      : importsOf(file)
          .filter(
            ({ specifier, typeOnly, line }) => specifier.endsWith(".tsx") && !typeOnly && !/import\(/.test(file.lines[line - 1] ?? ""),
          )
          .map(({ specifier, line }) => `${file.path}:${line}: write await import("${specifier}")`),
  );
  assert.deepEqual(problems, []);
});

/** Names that a pure file must not mention. Math.random and others are members, which the linter does not detect. */
const IMPURE: readonly (readonly [expression: RegExp, instead: string])[] = [
  [/\bMath\.random\b/, "take a Prng"],
  [/\bDate\b/, "take the time as a parameter"],
  [/\bperformance\b/, "take the time as a parameter"],
  [/\b(setTimeout|setInterval|setImmediate|queueMicrotask)\b/, "timers belong to the shell"],
  [/\bprocess\s*[.[]/, "configuration and environment are parameters"],
  [/\bglobalThis\b/, "pure code has no globals"],
  [/\bconsole\b/, "return log records"],
  [/\bcrypto\b/, "take random values as parameters"],
  [/\bfetch\s*\(/, "the shell talks to the world"],
  [/\bIntl\b|\.toLocale(String|DateString|TimeString)\s*\(/, "the result depends on the machine's locale"],
];

function impurities(file: SourceFile): readonly string[] {
  const code = codeOf(file.text).split("\n");
  const mentions = code.flatMap((line, index) =>
    IMPURE.filter(([expression]) => expression.test(line)).map(([expression, instead]) => {
      return `${file.path}:${index + 1} uses ${expression.exec(line)?.[0]}: ${instead}`;
    }),
  );
  const modules = importsOf(file)
    .filter(({ specifier, typeOnly }) => !typeOnly && specifier.startsWith("node:"))
    .map(({ specifier, line }) => `${file.path}:${line} imports ${specifier}: a pure file is handed data`);
  return [...mentions, ...modules];
}

test("pure files use no clock, no randomness, no timer, no process and no module of node", () => {
  const problems = sources("src")
    .filter(({ path }) => matches(PURE, path))
    .flatMap(impurities);
  assert.deepEqual(
    problems,
    [],
    "if the file is a shell by nature, name it in PURE of test/tidy/rules.ts, in biome.json and in ARCHITECTURE.md",
  );
});

test("pure files import no value from a file that is not pure", () => {
  const files = new Map(sources("src").map((file) => [file.path, file]));
  const problems = [...files.values()]
    .filter(({ path }) => matches(PURE, path))
    .flatMap((file) => {
      const chain = impureChain(file, files, new Set());
      return chain === undefined ? [] : [chain];
    });
  assert.deepEqual(problems, [], "import the type only, or move the pure part to a file of its own");
});

/** The chain of value imports from a pure file to an impure one outside the pure folders. */
function impureChain(file: SourceFile, files: ReadonlyMap<string, SourceFile>, seen: Set<string>): string | undefined {
  for (const { specifier, typeOnly } of importsOf(file)) {
    const target = files.get(resolveImport(file.path, specifier) ?? "");
    if (typeOnly || target === undefined || seen.has(target.path) || matches(PURE, target.path)) continue;
    seen.add(target.path);
    const [first] = impurities(target);
    const rest = first ?? impureChain(target, files, seen);
    if (rest !== undefined) return `${file.path} -> ${rest}`;
  }
  return undefined;
}

test("biome.json and the tidy test agree on which files are pure", () => {
  const config = JSON.parse(readFileSync(`${ROOT}/biome.json`, "utf8")) as { overrides: { includes: string[] }[] };
  const includes = config.overrides.map((each) => each.includes);
  assert.ok(
    includes.some((each) => JSON.stringify(each) === JSON.stringify(PURE)),
    `no override of biome.json has the list PURE of test/tidy/rules.ts: ${JSON.stringify(PURE)}`,
  );
});

test("the scanner of the tidy tests tells code from comments, strings, templates and regular expressions", () => {
  // biome-ignore format: a table
  const rows: readonly (readonly [text: string, code: string])[] = [
    ["a // Date",                "a"],
    ["a /* Date */ b",           "a  b"],
    ['f("Date", \'it\\\'s\') + 1', "f( , ) + 1"],
    ["`Date ${new Date()} Date`", "new Date()"],
    ["`a ${`b ${c}` + d} e` + f", "c + d + f"],
    ["x.replace(/[/\"]Date/g, y)", "x.replace( g, y)"],
    ["a / b / Date",             "a / b / Date"],
  ];
  const squeeze = (text: string): string => text.replace(/\s+/g, "");
  for (const [text, code] of rows) assert.equal(squeeze(codeOf(text)), squeeze(code), text);
});

test("node:tls is loaded when it is needed: a daemon that loads it while it starts can lose files (support/descriptors.ts)", () => {
  // Only programs of interactive jobs load this file, and only when they connect.
  const LOADED_LATE = ["src/protocol/terminal/channel.ts"];
  const eager = /^import (?!type\b)[^;]*from "node:tls"/m;
  const problems = sources("src").filter(({ path }) => !LOADED_LATE.includes(path) && eager.test(readFileSync(`${ROOT}/${path}`, "utf8")));
  assert.deepEqual(
    problems.map(({ path }) => path),
    [],
  );
});
